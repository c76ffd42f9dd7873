//! A handler of the manifest becomes a backend. A new kind of handler is one more arm here.

mod http;

use std::io;
use std::sync::Arc;

use toolyard_core::Backend;
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::registry::{Handler, Limits};
use toolyard_manifest::{self as manifest, HandlerKind, Manifest, McpTransport, Process};
use toolyard_mcp::client::{ClientOptions, Endpoint, McpBackend};
use toolyard_net::client::Client;
use toolyard_process::Program;

/// Starts the backends of a manifest, in its order. None of them is waited for.
///
/// # Errors
/// When the system's root certificates are needed and cannot be read.
pub fn handlers(manifest: &Manifest) -> io::Result<Vec<Handler>> {
    let client = if manifest.handlers.iter().any(uses_tls) {
        Client::with_system_roots()?
    } else {
        Client::without_roots()?
    };
    Ok(manifest.handlers.iter().map(|handler| build(handler, &manifest.process, &client)).collect())
}

fn uses_tls(handler: &manifest::Handler) -> bool {
    match &handler.kind {
        HandlerKind::Mcp(McpTransport::StreamableHttp { endpoint }) => endpoint.is_tls(),
        HandlerKind::Mcp(McpTransport::Stdio { .. }) => false,
        HandlerKind::Http(http) => http.url.is_tls(),
    }
}

fn build(handler: &manifest::Handler, process: &Process, client: &Client) -> Handler {
    let name = handler.name.as_str();
    let mut timeout = handler.timeout;
    let backend: Arc<dyn Backend> = match &handler.kind {
        HandlerKind::Mcp(transport) => {
            Arc::new(McpBackend::start(name, endpoint(transport, client), client_options(process)))
        }
        HandlerKind::Http(http) => {
            // Each attempt has the handler's time, so that a call may take several times as long.
            timeout = http::retry(&http.retry).budget(handler.timeout);
            Arc::new(http::backend(http, handler.timeout, process, client))
        }
    };
    let running = process.limits.concurrent_calls_per_handler;
    let gate = Gate::new(GateSize { running, waiting: process.limits.queued_calls });
    Handler { name: name.into(), backend, limits: Arc::new(Limits { timeout, gate }) }
}

fn endpoint(transport: &McpTransport, client: &Client) -> Endpoint {
    match transport {
        McpTransport::StreamableHttp { endpoint } => {
            Endpoint::Http { url: endpoint.uri().clone(), client: client.clone() }
        }
        McpTransport::Stdio { command, args, work_dir, env } => Endpoint::Stdio(Program {
            command: command.into(),
            args: args.iter().map(Into::into).collect(),
            work_dir: work_dir.clone(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }),
    }
}

fn client_options(process: &Process) -> ClientOptions {
    ClientOptions {
        name: "toolyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        message_bytes: process.limits.response_bytes,
        tools: process.limits.tools_per_handler,
        connect_time: process.timeouts.connect,
        probe_time: process.timeouts.era_probe,
    }
}
