//! The server under test of the MCP conformance suite, with the tools, prompts and resources that its scenarios use.
//!
//! `cargo run --package toolyard-sdk --example conformance -- --listen 127.0.0.1:4000`
//!
//! All handlers are plain functions over typed values. The SDK handles the protocol revisions, and asks clients within
//! the call, in several rounds or through a task.

mod ask;
mod input;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::future::pending;

use toolyard_sdk::{Result, Server};

/// An image: one red pixel.
const PIXEL: &[u8] = include_bytes!("pixel.png");

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the caller reads the address from standard output")]
async fn main() -> Result<()> {
    let server = Server::new("conformance", env!("CARGO_PKG_VERSION"))
        .title("Conformance fixture")
        .instructions("Offers what the scenarios of the MCP conformance suite ask for.");
    let server = tools::register(server)?;
    let server = ask::register(server)?;
    let server = input::register(server)?;
    let server = tasks::register(server)?;
    let server = prompts::register(server)?;
    let server = resources::register(server)?;

    let serving = server.listen(address()).await?;
    println!("listening on {}", serving.url());
    pending().await
}

/// The value of `--listen`; by default a free port of this machine.
fn address() -> String {
    let value = std::env::args().skip_while(|argument| argument != "--listen").nth(1);
    value.unwrap_or_else(|| "127.0.0.1:0".to_owned())
}
