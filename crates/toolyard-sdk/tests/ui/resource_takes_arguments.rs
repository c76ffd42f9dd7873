//! A resource handler takes no arguments.

use serde::Deserialize;
use toolyard_sdk::{JsonSchema, Resource, Server};

#[derive(Deserialize, JsonSchema)]
struct Args {
    line: u32,
}

async fn line(args: Args) -> String {
    args.line.to_string()
}

fn main() {
    let _ = Server::new("test", "1.0.0").resource(Resource::new("file:///a", "a"), line);
}
