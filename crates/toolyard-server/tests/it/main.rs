//! The whole gateway in process, between raw clients and raw servers on real sockets.
//!
//! Both sides are written here byte by byte, because a library would repair, reorder or refuse what these tests check.
//! `json` and `http1` are the parsers of such peers, `upstream` is the server (`sse_upstream` one of HTTP+SSE),
//! `client` the client, and `json_values` generates arbitrary JSON.

#![cfg(test)]

mod added_servers;
mod api_keys;
mod audit;
mod bad_upstreams;
mod broken_streams;
mod budget;
mod call_notifications;
mod catalog_server;
mod changed_definitions;
mod client;
mod clusters;
mod complete_example;
mod connections;
mod fidelity;
mod floods;
mod forwarding;
mod functions;
mod hosted_functions;
mod http1;
mod http_tools;
mod http_upstreams;
mod json;
mod json_values;
mod keyed_gateway;
mod legacy_sse;
mod list_caching;
mod lists;
mod load;
mod log_levels;
mod lost_sessions;
mod malformed_requests;
mod manifest_edits;
mod resource_subscriptions;
mod resource_uris;
mod rest;
mod restarts;
mod search;
mod session_shares;
mod sessions;
mod sse_upstream;
mod status;
mod stdio;
mod telemetry;
mod tool_lists;
mod tool_names;
mod upstream;

use std::net::SocketAddr;

use toolyard_manifest::Manifest;
use toolyard_server::{GatewayOptions, RunningGateway};

/// A gateway in front of these servers, after their first lists have arrived.
async fn gateway(handlers: &[(&str, SocketAddr, &str)], process: &str) -> RunningGateway {
    started(&manifest(handlers, process)).await
}

/// The manifest of such a gateway. Each handler is a name, an address and further fields with a trailing comma;
/// `process` is the content of the `Toolyard` document after the address.
fn manifest(handlers: &[(&str, SocketAddr, &str)], process: &str) -> Manifest {
    let handler = |(name, address, rest): &(&str, SocketAddr, &str)| {
        entry(name, rest, &format!("transport: streamable-http, endpoint: 'http://{address}/mcp'"))
    };
    manifest_of(&handlers.iter().map(handler).collect::<String>(), process)
}

/// A gateway with these handler entries, after their first lists have arrived.
async fn gateway_of(handlers: &str, process: &str) -> RunningGateway {
    started(&manifest_of(handlers, process)).await
}

/// The manifest entry of a handler: its name, further fields with a trailing comma, and the content of `mcpConfig`.
fn entry(name: &str, rest: &str, config: &str) -> String {
    format!("    - {{name: {name}, type: mcp, {rest} mcpConfig: {{{config}}}}}\n")
}

fn manifest_of(handlers: &str, process: &str) -> Manifest {
    let text = format!(
        "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:0', {process}}}\n---\n\
         apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\n\
         spec:\n  handlers:\n{handlers}"
    );
    let source = toolyard_manifest::ManifestSource { name: "test.yaml".into(), text };
    toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"))
}

async fn started(manifest: &Manifest) -> RunningGateway {
    let running = toolyard_server::start(manifest, &GatewayOptions::default()).await.unwrap();
    // A client that listens before the first list arrives gets a notification of it.
    running.gateway().settled().await;
    running
}
