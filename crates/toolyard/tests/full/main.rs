//! The built binary with third-party MCP servers and clients in a user's environment, and small servers that misbehave
//! deliberately.
//!
//! Every test has its own gateway on a free port and its own directory.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of tests are tests too")]

mod agent_tools;
mod bare_requests;
mod broken_store;
mod bus;
mod bus_kills;
mod bus_large_results;
mod bus_processes;
mod canaries;
mod cancellation;
mod code_mode;
mod command_line;
mod complete_example;
mod corpus;
mod dedicated_connections;
mod documentation;
mod embeddings;
mod eras;
mod examples;
mod fastmcp_results;
mod faulty_servers;
mod functions;
mod keyless_memory;
mod large_answers;
mod large_results;
mod lifecycle;
mod listener;
mod lost_keys;
mod management;
mod manifest_edits;
mod memory_owners;
mod nesting;
mod openapi;
mod openrouter;
mod outbound;
mod overrides;
mod pass_through;
mod processes;
mod progress;
mod real_servers;
mod rest_clients;
mod result_bounds;
mod result_forms;
mod schemathesis;
mod sdk_examples;
mod search;
mod skills;
mod sse_servers;
mod stdio;
mod stream_resumption;
mod support;
mod telemetry;
mod troubleshooting;
mod two_gateways;
mod web;
mod widgets;
mod wisps;
mod working_memory;
