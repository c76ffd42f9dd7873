//! What clients can be asked has a type of its own.

use toolyard_sdk::{Context, InputRequired};

async fn greet(_ctx: Context) -> InputRequired {
    InputRequired::new().ask("name", "What is your name?")
}

fn main() {
    let _ = greet;
}
