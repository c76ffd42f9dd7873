//! `toolyard demo-server`: a small MCP server on stdio for the quick start.

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::Server;

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    /// Text to return
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct ReverseArgs {
    /// The string to reverse
    input: String,
}

#[derive(Deserialize, JsonSchema)]
struct AddArgs {
    /// Summand
    a: f64,
    /// Summand
    b: f64,
}

pub(crate) async fn run() -> anyhow::Result<ExitCode> {
    Server::new("toolyard-demo", env!("CARGO_PKG_VERSION"))
        .tool("echo", "Returns the text that it is given.", async |args: EchoArgs| args.text)?
        .tool("reverse_string", "Reverses the input string.", reverse)?
        .tool("add", "Adds two numbers.", async |args: AddArgs| (args.a + args.b).to_string())?
        .serve_stdio()
        .await?;
    Ok(ExitCode::SUCCESS)
}

async fn reverse(args: ReverseArgs) -> String {
    args.input.chars().rev().collect()
}
