//! The context must be the first parameter.

use serde::Deserialize;
use toolyard_sdk::{Context, JsonSchema, Server};

#[derive(Deserialize, JsonSchema)]
struct Args {
    text: String,
}

async fn echo(args: Args, _ctx: Context) -> String {
    args.text
}

fn main() {
    let _ = Server::new("test", "1.0.0").tool("echo", "Echoes.", echo);
}
