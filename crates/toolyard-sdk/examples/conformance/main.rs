//! The server that the MCP conformance suite is run against: the tools, prompts and resources that its scenarios name.
//!
//! `cargo run --package toolyard-sdk --example conformance -- --listen 127.0.0.1:4000`
//!
//! Everything here is plain functions over typed values. Which revision of the protocol a client speaks, and whether it
//! is asked within its call, by rounds or by way of a task, is the library's concern.

mod ask;
mod input;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::future::pending;

use toolyard_sdk::{Result, Server};

/// A picture: one red pixel.
const PIXEL: &[u8] = include_bytes!("pixel.png");

#[tokio::main]
#[expect(clippy::print_stdout, reason = "who starts this reads where it listens")]
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

/// What follows `--listen`; a free port of this machine where nothing does.
fn address() -> String {
    let given = std::env::args().skip_while(|argument| argument != "--listen").nth(1);
    given.unwrap_or_else(|| "127.0.0.1:0".to_owned())
}
