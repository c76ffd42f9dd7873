//! The arguments do not implement `Deserialize`.

use toolyard_sdk::{JsonSchema, Server};

#[derive(JsonSchema)]
struct Args {
    text: String,
}

async fn echo(args: Args) -> String {
    args.text
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", echo);
}
