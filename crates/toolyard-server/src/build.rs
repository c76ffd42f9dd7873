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
use toolyard_process::{Processes, Program};

/// Starts the backends of a manifest, in its order, and their programs by way of `processes`. None of them is
/// waited for.
///
/// # Errors
/// When the system's root certificates are needed and cannot be read.
pub fn handlers(manifest: &Manifest, processes: &Processes) -> io::Result<Vec<Handler>> {
    let client = if manifest.handlers.iter().any(uses_tls) {
        Client::with_system_roots()?
    } else {
        Client::without_roots()?
    };
    let yard = Yard { process: &manifest.process, client, processes };
    Ok(manifest.handlers.iter().map(|handler| yard.build(handler)).collect())
}

fn uses_tls(handler: &manifest::Handler) -> bool {
    match &handler.kind {
        HandlerKind::Mcp(McpTransport::StreamableHttp { endpoint }) => endpoint.is_tls(),
        HandlerKind::Mcp(McpTransport::Stdio { .. }) => false,
        HandlerKind::Http(http) => http.url.is_tls(),
    }
}

/// What all handlers share.
struct Yard<'a> {
    process: &'a Process,
    client: Client,
    processes: &'a Processes,
}

impl Yard<'_> {
    fn build(&self, handler: &manifest::Handler) -> Handler {
        let name = handler.name.as_str();
        let mut timeout = handler.timeout;
        let backend: Arc<dyn Backend> = match &handler.kind {
            HandlerKind::Mcp(transport) => {
                Arc::new(McpBackend::start(name, self.endpoint(transport), self.client_options()))
            }
            HandlerKind::Http(http) => {
                // Each attempt has the handler's time, so that a call may take several times as long.
                timeout = http::retry(&http.retry).budget(handler.timeout);
                Arc::new(http::backend(http, handler.timeout, self.process, &self.client))
            }
        };
        let limits = &self.process.limits;
        let size = GateSize { running: limits.concurrent_calls_per_handler, waiting: limits.queued_calls };
        let limits = Limits { timeout, gate: Gate::new(size) };
        Handler { name: name.into(), backend, limits: Arc::new(limits) }
    }

    fn endpoint(&self, transport: &McpTransport) -> Endpoint {
        match transport {
            McpTransport::StreamableHttp { endpoint } => {
                Endpoint::Http { url: endpoint.uri().clone(), client: self.client.clone() }
            }
            McpTransport::Stdio { command, args, work_dir, env } => {
                let program = Program {
                    command: command.into(),
                    args: args.iter().map(Into::into).collect(),
                    work_dir: work_dir.clone(),
                    env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                    memory_bytes: self.process.limits.process_memory_bytes.map(|bytes| bytes as u64),
                };
                Endpoint::Stdio { program, processes: self.processes.clone() }
            }
        }
    }

    fn client_options(&self) -> ClientOptions {
        let Process { limits, timeouts, .. } = self.process;
        ClientOptions {
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message_bytes: limits.response_bytes,
            tools: limits.tools_per_handler,
            connect_time: timeouts.connect,
            probe_time: timeouts.era_probe,
            idle_time: timeouts.process_idle,
        }
    }
}
