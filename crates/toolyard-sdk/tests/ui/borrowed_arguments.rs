//! The arguments borrow their strings.

use serde::Deserialize;
use toolyard_sdk::{JsonSchema, Server};

#[derive(Deserialize, JsonSchema)]
struct Args<'a> {
    text: &'a str,
}

async fn echo(args: Args<'static>) -> String {
    args.text.to_owned()
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", echo);
}
