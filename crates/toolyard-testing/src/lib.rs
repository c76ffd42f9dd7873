//! Support for the tests of the other crates, which depend on it in their tests only. It depends on the core alone, so
//! that even the unit tests of those above can use it.
//!
//! - [`wait`]: waiting for conditions;
//! - [`process`], [`process_tree`]: child processes, and all processes that come of one program;
//! - [`users`]: commands that run as other users;
//! - [`peers`]: third-party programs and servers; [`corpora`]: real documents and recordings;
//! - [`scripted_server`]: an MCP server on stdio that follows a script;
//! - [`manifest`], [`messages`]: manifests of a gateway, and JSON-RPC messages of clients;
//! - [`pages`]: pages of the documentation, whose commands are run;
//! - [`postgres`]: a PostgreSQL server; [`brokers`]: RabbitMQ and NATS; [`memory_store`]: a store in memory;
//! - [`http`]: HTTP requests of tests that block;
//! - [`line_pipe`]: a client on a pipe;
//! - [`wire_client`], [`upstream`]: MCP clients and servers on HTTP that send exactly the bytes that a test specifies,
//!   and [`http1`], [`json`], the parsers of such peers. A library would repair, reorder or refuse what tests check.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it is part of tests, whose programs are not the gateway's"
)]

pub mod brokers;
pub mod corpora;
pub mod http;
pub mod http1;
pub mod json;
pub mod line_pipe;
pub mod manifest;
pub mod memory_store;
pub mod messages;
pub mod pages;
pub mod peers;
pub mod postgres;
pub mod process;
pub mod process_tree;
pub mod scripted_server;
pub mod upstream;
pub mod users;
pub mod wait;
pub mod wire_client;
