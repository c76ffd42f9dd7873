//! The built binary among real peers: MCP servers and clients that other people wrote, as a user has them, and
//! small servers that misbehave on purpose.
//!
//! Every test has its own gateway, on a port that the system chose, and its own folder.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the helpers of tests are tests too"
)]

mod agent_tools;
mod bare_requests;
mod broken_store;
mod canaries;
mod cancellation;
mod command_line;
mod corpus;
mod edits;
mod examples;
mod functions;
mod lanes;
mod life;
mod listener;
mod management;
mod openapi;
mod overrides;
mod passing;
mod processes;
mod progress;
mod real_servers;
mod resuming;
mod schemathesis;
mod sdk_examples;
mod search;
mod skills;
mod sse_servers;
mod stdio;
mod support;
mod telemetry;
mod two_gateways;
mod unruly_servers;
mod working_memory;
