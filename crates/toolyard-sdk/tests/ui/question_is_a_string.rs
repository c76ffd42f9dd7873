//! A question to the client must be one of the types for it.

use toolyard_sdk::{Context, InputRequired};

async fn greet(_ctx: Context) -> InputRequired {
    InputRequired::new().ask("name", "What is your name?")
}

fn main() {
    let _ = greet;
}
