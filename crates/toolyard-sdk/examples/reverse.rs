//! A typed function as a tool. Its schema is derived from the type of its arguments.
//!
//! ```sh
//! cargo run -p toolyard-sdk --example reverse                       # on standard input and output
//! cargo run -p toolyard-sdk --example reverse -- 127.0.0.1:8080     # on http://127.0.0.1:8080/mcp
//! ```

mod support;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Result, Server, ToolFailure};

#[derive(Deserialize, JsonSchema)]
struct ReverseArgs {
    /// The string to reverse
    input: String,
}

async fn reverse(args: ReverseArgs) -> Result<String, ToolFailure> {
    Ok(args.input.chars().rev().collect())
}

#[tokio::main]
async fn main() -> Result<()> {
    let server =
        Server::new("MyToolServer", "1.0.0").tool("reverse_string", "Reverses the input string.", reverse)?;
    support::serve(server).await
}
