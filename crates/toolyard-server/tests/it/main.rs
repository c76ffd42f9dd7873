//! The whole gateway in process, between raw clients and raw servers on real sockets.
//!
//! `gateway` starts it. Both sides send exactly the bytes that a test specifies: `toolyard_testing::wire_client` is the
//! client and `toolyard_testing::upstream` the server (`sse_upstream` is one of HTTP+SSE). `json_values` generates
//! arbitrary JSON.

#![cfg(test)]

mod a2a;
mod a2a_bus;
mod added_servers;
mod api_keys;
mod audit;
mod bad_upstreams;
mod broken_streams;
mod budget;
mod bus;
mod call_notifications;
mod catalog_server;
mod causes;
mod changed_definitions;
mod clusters;
mod complete_example;
mod connections;
mod console;
mod eras;
mod failure_reasons;
mod fidelity;
mod floods;
mod forwarding;
mod functions;
mod gateway;
mod grpc;
mod health;
mod hosted_functions;
mod http_tools;
mod http_upstreams;
mod json_values;
mod keyed_gateway;
mod large_answers;
mod last_lists;
mod launchers;
mod legacy_sse;
mod list_caching;
mod lists;
mod load;
mod log_levels;
mod lost_sessions;
mod malformed_requests;
mod manifest_edits;
mod operator_api;
mod recovery;
mod resource_subscriptions;
mod resource_uris;
mod rest;
mod restarts;
mod sampled_subagents;
mod schedules;
mod search;
mod selectors;
mod session_shares;
mod sessions;
mod shared_streams;
mod sse_upstream;
mod status;
mod stdio;
mod subagents;
mod task_client;
mod telemetry;
mod tool_listings;
mod tool_lists;
mod tool_names;
mod wisps;
