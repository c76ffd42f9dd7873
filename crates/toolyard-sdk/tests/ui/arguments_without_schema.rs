//! The arguments do not implement `JsonSchema`.

use serde::Deserialize;
use toolyard_sdk::Server;

#[derive(Deserialize)]
struct Args {
    text: String,
}

async fn echo(args: Args) -> String {
    args.text
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", echo);
}
