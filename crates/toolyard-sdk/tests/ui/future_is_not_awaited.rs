//! The future of `serve_stdio` is not awaited.

#![deny(unused_must_use)]

use toolyard_sdk::Server;

fn main() {
    Server::new("test", "1.0.0").serve_stdio();
}
