//! A server with every feature that the matrix of clients and servers asks for, which speaks one revision only.
//!
//! `cargo run --package toolyard-sdk --example matrix -- 2025-06-18`
//!
//! The tools have the names of those of the Python fixture (`fixtures/matrix`), and do the same.

mod only;
mod tools;

use std::time::Duration;

use toolyard_net::listener::{self, ListenerLimits};
use toolyard_net::workers::Workers;
use toolyard_sdk::{Error, Result, Server};

use only::Only;

const LIMITS: ListenerLimits = ListenerLimits {
    connections: 1000,
    head_bytes: 64 << 10,
    head_time: Duration::from_secs(90),
    drain_time: Duration::ZERO,
};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "who starts this reads where it listens")]
async fn main() -> Result<()> {
    let revision = std::env::args().nth(1).unwrap_or_else(|| "2026-07-28".to_owned());
    let server = tools::register(Server::new("matrix", env!("CARGO_PKG_VERSION")))?;
    let only = Only::new(revision);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(Error::Start)?;
    let address = listener.local_addr().map_err(Error::Start)?;
    println!("listening on http://{address}{}", only.path());
    let workers = Workers::start(1).map_err(Error::Start)?;
    let routes = only.restrict(server.into_router());
    listener::serve(vec![listener.into()], routes, LIMITS, &workers, std::future::pending()).await;
    Ok(())
}
