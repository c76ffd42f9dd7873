//! The trivial tool of `cargo xtask bench --only sdk`, on a port that the system chooses and the program prints first.
//!
//! The same tool on rmcp is `fixtures/rmcp-server/src/bin/echo.rs`. All options are the defaults of the SDK.

use std::error::Error;
use std::io::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::Server;

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    /// The text to return
    text: String,
}

async fn echo(args: EchoArgs) -> String {
    args.text
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::new("echo", "1.0.0").tool("echo", "Says what it is told.", echo)?;
    let running = server.listen("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "listening on {}", running.url())?;
    std::future::pending().await
}
