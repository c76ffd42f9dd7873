//! Support for the tests of the other crates, which depend on it in their tests only. It depends on none of them, so
//! that even their unit tests can use it.
//!
//! - [`wait`]: waiting for conditions;
//! - [`process`], [`process_tree`]: child processes, and all processes that come of one program;
//! - [`users`]: commands that run as other users;
//! - [`peers`]: third-party programs and servers;
//! - [`scripted_server`]: an MCP server on stdio that follows a script;
//! - [`manifest`], [`messages`]: manifests of a gateway, and JSON-RPC messages of clients;
//! - [`pages`]: pages of the documentation, whose commands are run;
//! - [`postgres`]: a PostgreSQL server;
//! - [`http`]: HTTP requests of tests that block;
//! - [`line_pipe`]: a client on a pipe;
//! - [`wire_client`], [`upstream`]: MCP clients and servers on HTTP that send exactly the bytes that a test specifies,
//!   and [`http1`], [`json`], the parsers of such peers. A library would repair, reorder or refuse what tests check.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "it is part of tests, whose programs are not the gateway's"
)]

pub mod http;
pub mod http1;
pub mod json;
pub mod line_pipe;
pub mod manifest;
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
