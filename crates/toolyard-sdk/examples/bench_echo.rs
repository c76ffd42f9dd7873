//! The trivial tool of `cargo xtask bench --only sdk`, on a port that the system chooses and that is printed first.
//!
//! The same tool on rmcp is `fixtures/rmcp-server/src/bin/echo.rs`. Everything is as the SDK has it by default.

use std::error::Error;
use std::io::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::Server;

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    /// What to say
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
