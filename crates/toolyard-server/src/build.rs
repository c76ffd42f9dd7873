//! A handler of the manifest becomes a backend. A new kind of handler is one more arm here.

mod http;
mod names;
mod not_yet;

use std::io;
use std::sync::Arc;

use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{Backend, Json, Object, Tool};
use toolyard_manifest::{self as manifest, HandlerKind, McpTransport, Process, ToolDefinition};
use toolyard_mcp::client::{ClientOptions, Endpoint, McpBackend};
use toolyard_net::client::Client;
use toolyard_process::{Processes, Program};

use not_yet::NotYet;

/// Builds handlers, of what all of them share. A backend starts to connect when it is built; nothing is waited for.
pub struct Builder {
    process: Process,
    client: Client,
    has_roots: bool,
    processes: Processes,
}

impl Builder {
    /// A builder of handlers with the bounds of this process, whose programs are started by `processes`.
    ///
    /// # Errors
    /// When the TLS library is unusable.
    pub fn new(process: Process, processes: Processes) -> io::Result<Self> {
        Ok(Self { process, client: Client::without_roots()?, has_roots: false, processes })
    }

    /// Gets what building these handlers may fail of: the system's root certificates, if one of them needs these.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn prepare(&mut self, handlers: &[manifest::Handler]) -> io::Result<()> {
        if !self.has_roots && handlers.iter().any(uses_tls) {
            self.client = Client::with_system_roots()?;
            self.has_roots = true;
        }
        Ok(())
    }

    /// A handler of the manifest, as it runs.
    #[must_use]
    pub fn build(&self, handler: &manifest::Handler) -> Handler {
        let name = handler.name.as_str();
        let mut timeout = handler.timeout;
        let backend: Arc<dyn Backend> = match &handler.kind {
            HandlerKind::Mcp(transport) => {
                Arc::new(McpBackend::start(name, self.endpoint(transport), self.client_options()))
            }
            HandlerKind::Http(http) => {
                // Each attempt has the handler's time, so that a call may take several times as long.
                timeout = http::retry(&http.retry).budget(handler.timeout);
                Arc::new(http::backend(http, handler.timeout, &self.process, &self.client))
            }
            HandlerKind::Grpc(grpc) => {
                Arc::new(NotYet::new(handler.kind.name(), Some(explicit_tool(&grpc.tool))))
            }
            HandlerKind::OpenApi(_) => Arc::new(NotYet::new(handler.kind.name(), None)),
        };
        let limits = &self.process.limits;
        let size = GateSize { running: limits.concurrent_calls_per_handler, waiting: limits.queued_calls };
        let limits = Limits { timeout, gate: Gate::new(size) };
        Handler {
            prefix: names::prefix(handler.prefix),
            overrides: Arc::new(names::overrides(&handler.overrides)),
            ..Handler::new(name, backend, limits)
        }
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
        let Process { limits, timeouts, .. } = &self.process;
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

fn uses_tls(handler: &manifest::Handler) -> bool {
    match &handler.kind {
        HandlerKind::Mcp(McpTransport::StreamableHttp { endpoint }) => endpoint.is_tls(),
        HandlerKind::Mcp(McpTransport::Stdio { .. }) => false,
        HandlerKind::Http(http) => http.url.is_tls(),
        HandlerKind::Grpc(_) | HandlerKind::OpenApi(_) => false,
    }
}

/// The tool that a manifest describes.
fn explicit_tool(definition: &ToolDefinition) -> Tool {
    let mut published = Object::new()
        .with("description", Json::string(&definition.description))
        .with("inputSchema", Json::from_value(&definition.input_schema));
    if let Some(schema) = &definition.output_schema {
        published.set("outputSchema", Json::from_value(schema));
    }
    Tool::named(&definition.name, published)
}
