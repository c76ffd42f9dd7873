//! The whole gateway in process, between raw clients and raw servers on real sockets.
//!
//! Both sides are written here byte by byte: a library would repair, reorder or refuse what these tests
//! are about. `json` and `http1` are what such peers need, `upstream` is the server (`sse_upstream` one of HTTP+SSE), `client` the client, and
//! `texts` makes arbitrary JSON.

#![cfg(test)]

mod added;
mod audit;
mod bad_upstreams;
mod broken_streams;
mod catalogs;
mod client;
mod clusters;
mod complete_example;
mod door;
mod edits;
mod fidelity;
mod floods;
mod following;
mod freshness;
mod functions;
mod hosted;
mod http1;
mod http_tools;
mod json;
mod keys;
mod legacy_sse;
mod lists;
mod load;
mod log_levels;
mod lost_sessions;
mod malformed;
mod names;
mod notices;
mod passing;
mod reach;
mod rest;
mod restarts;
mod search;
mod sessions;
mod sse_upstream;
mod status;
mod stdio;
mod stocked;
mod telemetry;
mod texts;
mod upstream;
mod uris;

use std::net::SocketAddr;

use toolyard_manifest::Manifest;
use toolyard_server::{Options, Running};

/// A gateway in front of the given servers, whose first list is there.
async fn gateway(handlers: &[(&str, SocketAddr, &str)], process: &str) -> Running {
    started(&manifest(handlers, process)).await
}

/// The manifest of such a gateway: names and addresses of the servers, and what else their entries say, with a comma
/// behind it. `process` is what the `Toolyard` document says beside the address.
fn manifest(handlers: &[(&str, SocketAddr, &str)], process: &str) -> Manifest {
    let handler = |(name, address, rest): &(&str, SocketAddr, &str)| {
        entry(name, rest, &format!("transport: streamable-http, endpoint: 'http://{address}/mcp'"))
    };
    manifest_of(&handlers.iter().map(handler).collect::<String>(), process)
}

/// A gateway of these entries, whose first list is there.
async fn gateway_of(handlers: &str, process: &str) -> Running {
    started(&manifest_of(handlers, process)).await
}

/// An entry of a manifest: its name, what else it says, with a comma behind it, and what its `mcpConfig` says.
fn entry(name: &str, rest: &str, config: &str) -> String {
    format!("    - {{name: {name}, type: mcp, {rest} mcpConfig: {{{config}}}}}\n")
}

fn manifest_of(handlers: &str, process: &str) -> Manifest {
    let text = format!(
        "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:0', {process}}}\n---\n\
         apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\n\
         spec:\n  handlers:\n{handlers}"
    );
    let source = toolyard_manifest::Source { name: "test.yaml".into(), text };
    toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"))
}

async fn started(manifest: &Manifest) -> Running {
    let running = toolyard_server::start(manifest, &Options::default()).await.unwrap();
    // Who listens before the first list is told when it comes.
    running.gateway().settled().await;
    running
}
