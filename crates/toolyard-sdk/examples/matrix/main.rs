//! A server for the matrix of clients and servers: it has every feature and supports a single revision.
//!
//! `cargo run --package toolyard-sdk --example matrix -- 2025-06-18`
//!
//! The tools have the names and behavior of those of the Python fixture (`fixtures/matrix`).

mod revision_filter;
mod tools;

use std::time::Duration;

use toolyard_net::listener::{self, ListenerLimits};
use toolyard_net::workers::WorkerPool;
use toolyard_sdk::{Error, Result, Server};

use revision_filter::RevisionFilter;

const LIMITS: ListenerLimits = ListenerLimits {
    connections: 1000,
    connections_per_address: 1000,
    health_paths: &[],
    head_bytes: 64 << 10,
    head_time: Duration::from_secs(90),
    write_time: Duration::from_secs(90),
    drain_time: Duration::ZERO,
};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the caller reads the address from standard output")]
async fn main() -> Result<()> {
    let revision = std::env::args().nth(1).unwrap_or_else(|| "2026-07-28".to_owned());
    let server = tools::register(Server::new("matrix", env!("CARGO_PKG_VERSION")))?;
    let filter = RevisionFilter::new(revision);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(Error::Start)?;
    let address = listener.local_addr().map_err(Error::Start)?;
    println!("listening on http://{address}{}", filter.path());
    let workers = WorkerPool::start(1).map_err(Error::Start)?;
    let routes = filter.restrict(server.into_router());
    listener::serve(vec![listener.into()], routes, LIMITS, &workers, std::future::pending()).await;
    Ok(())
}
