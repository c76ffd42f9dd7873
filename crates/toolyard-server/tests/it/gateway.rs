//! Starting the gateway in process.

use std::net::SocketAddr;
use std::sync::Arc;

use toolyard_core::store::Store;
use toolyard_core::{Call, Json, Outcome, ToolError};
use toolyard_manifest::Manifest;
use toolyard_server::{GatewayOptions, RunningGateway};

/// A gateway in front of these servers, after their first lists have arrived.
pub(crate) async fn gateway(handlers: &[(&str, SocketAddr, &str)], process: &str) -> RunningGateway {
    started(&manifest(handlers, process)).await
}

/// The manifest of such a gateway. Each handler is a name, an address and further fields with a trailing comma;
/// `process` is the content of the `Toolyard` document after the address.
pub(crate) fn manifest(handlers: &[(&str, SocketAddr, &str)], process: &str) -> Manifest {
    let handler = |(name, address, rest): &(&str, SocketAddr, &str)| {
        entry(name, rest, &format!("transport: streamable-http, endpoint: 'http://{address}/mcp'"))
    };
    manifest_of(&handlers.iter().map(handler).collect::<String>(), process)
}

/// A gateway with these handler entries, after their first lists have arrived.
pub(crate) async fn gateway_of(handlers: &str, process: &str) -> RunningGateway {
    started(&manifest_of(handlers, process)).await
}

/// The manifest entry of a handler: its name, further fields with a trailing comma, and the content of `mcpConfig`.
pub(crate) fn entry(name: &str, rest: &str, config: &str) -> String {
    format!("    - {{name: {name}, type: mcp, {rest} mcpConfig: {{{config}}}}}\n")
}

/// The manifest of such a gateway, from handler entries.
pub(crate) fn manifest_of(handlers: &str, process: &str) -> Manifest {
    let text = format!(
        "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:0', {process}}}\n---\n\
         apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\n\
         spec:\n  handlers:\n{handlers}"
    );
    let source = toolyard_manifest::ManifestSource { name: "test.yaml".into(), text };
    toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A gateway with this manifest, after its first lists have arrived.
pub(crate) async fn started(manifest: &Manifest) -> RunningGateway {
    started_with(manifest, &GatewayOptions::default()).await
}

/// A gateway that keeps its state in this store, after its first lists have arrived.
pub(crate) async fn started_on(store: &Arc<dyn Store>, manifest: &Manifest) -> RunningGateway {
    let options = GatewayOptions { store: Some(store.clone()), ..GatewayOptions::default() };
    started_with(manifest, &options).await
}

pub(crate) async fn started_with(manifest: &Manifest, options: &GatewayOptions) -> RunningGateway {
    let running = toolyard_server::start(manifest, options).await.unwrap();
    // A client that listens before the first list arrives gets a notification of it.
    running.gateway().settled().await;
    running
}

/// Calls a tool past the frontends, and returns the text of its result.
pub(crate) async fn call(running: &RunningGateway, tool: &str, arguments: &str) -> Result<String, ToolError> {
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    result_text(running.gateway().invoke(Call::tool(tool, arguments)).await)
}

/// The text of a complete result.
pub(crate) fn result_text(outcome: Result<Outcome, ToolError>) -> Result<String, ToolError> {
    match outcome? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}
