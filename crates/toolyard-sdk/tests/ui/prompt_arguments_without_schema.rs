//! The arguments of a prompt do not implement `JsonSchema`.

use serde::Deserialize;
use toolyard_sdk::Server;

#[derive(Deserialize)]
struct Args {
    code: String,
}

async fn review(args: Args) -> String {
    args.code
}

fn main() {
    let _ = Server::new("test", "1.0.0").prompt("review", "Asks for a review.", review);
}
