//! A handler of the manifest becomes a backend. A new kind of handler is one more arm here.

mod auth;
mod builtins;
mod function;
mod http;
mod mcp;
mod names;
mod not_yet;
mod openapi;

use std::io;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{Backend, Json, Object, Retry, Secrets, Tool};
use toolyard_manifest::{
    self as manifest, HandlerKind, McpTransport, Process, RetryPolicy, Secret, ToolDefinition,
};
use toolyard_net::client::Client;
use toolyard_process::Processes;

use crate::hosting::Hosting;
pub use builtins::Yard;
pub use function::Functions;
use not_yet::NotYet;

/// Builds handlers, of what all of them share. A backend starts to connect when it is built; nothing is waited for.
pub struct Builder {
    process: Process,
    client: Client,
    has_roots: bool,
    processes: Processes,
    functions: Option<Arc<dyn Functions>>,
    hosting: Option<Hosting>,
    yard: Option<Yard>,
}

impl Builder {
    /// A builder of handlers with the bounds of this process, whose programs are started by `processes`.
    ///
    /// # Errors
    /// When the TLS library is unusable.
    pub fn new(process: Process, processes: Processes) -> io::Result<Self> {
        let client = Client::without_roots()?;
        Ok(Self { process, client, has_roots: false, processes, functions: None, hosting: None, yard: None })
    }

    /// The same with functions that this gateway hosts.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn Functions>) -> Self {
        Self { functions: Some(functions), ..self }
    }

    /// The same with what runs other people's code here.
    #[must_use]
    pub fn with_hosting(self, hosting: Hosting) -> Self {
        Self { hosting: Some(hosting.clone()), ..self.with_functions(Arc::new(hosting)) }
    }

    /// The same with what the gateway's own tools reach of the gateway.
    #[must_use]
    pub fn with_yard(self, yard: Yard) -> Self {
        Self { yard: Some(yard), ..self }
    }

    /// Gets what building these handlers may fail of: the system's root certificates, if one of them needs these.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn prepare<'a>(
        &mut self,
        handlers: impl IntoIterator<Item = &'a manifest::Handler>,
    ) -> io::Result<()> {
        if !self.has_roots && handlers.into_iter().any(uses_tls) {
            self.client = Client::with_system_roots()?;
            self.has_roots = true;
        }
        Ok(())
    }

    /// A handler of the manifest, as it runs.
    #[must_use]
    pub fn build(&self, handler: &manifest::Handler) -> Handler {
        let (name, secrets) = (handler.name.as_str(), Secrets::new(handler.secrets()));
        // Each attempt has the handler's time, so that a call may take several times as long.
        let timeout = retry(handler.kind.retry()).budget(handler.timeout);
        let backend: Arc<dyn Backend> = match &handler.kind {
            HandlerKind::Mcp(mcp) => Arc::new(self.mcp(handler, mcp, &secrets)),
            HandlerKind::Http(http) => {
                Arc::new(http::backend(http, handler.timeout, &self.process, &self.client, &secrets))
            }
            HandlerKind::Grpc(grpc) => {
                Arc::new(NotYet::new(handler.kind.name(), Some(explicit_tool(&grpc.tool))))
            }
            HandlerKind::OpenApi(openapi) => Arc::new(self.openapi(handler, openapi, &secrets)),
            HandlerKind::Builtins(builtins) => self.builtins(builtins),
            HandlerKind::Function(function) => self.function(handler, function, &secrets),
            HandlerKind::CortexOne(function) => self.cortexone(handler, function, &secrets),
        };
        let limits = &self.process.limits;
        let size = GateSize { running: limits.concurrent_calls_per_handler, waiting: limits.queued_calls };
        let limits = Limits { timeout, gate: Gate::new(size) };
        let disclosure = builtins::disclosure(&handler.kind);
        named(handler, Handler { secrets, disclosure, ..Handler::new(name, backend, limits) })
    }
}

/// A handler that publishes its tools as the manifest has it.
pub(crate) fn named(declared: &manifest::Handler, handler: Handler) -> Handler {
    let prefix = names::prefix(declared.prefix);
    let overrides = Arc::new(names::overrides(&declared.overrides));
    // What is pinned may be others now.
    handler.secrets.set(declared.secrets());
    let (price, chunking) = (declared.price, declared.chunking);
    let [display_name, description] =
        [&declared.display_name, &declared.description].map(|text| text.as_deref().map(Into::into));
    Handler { prefix, overrides, price, display_name, description, chunking, ..handler }
}

fn uses_tls(handler: &manifest::Handler) -> bool {
    match &handler.kind {
        HandlerKind::Mcp(mcp) => match &mcp.transport {
            McpTransport::Http(http) => http.endpoint.is_tls(),
            McpTransport::Stdio { .. } => false,
        },
        HandlerKind::Http(http) => http.url.is_tls(),
        HandlerKind::OpenApi(openapi) => openapi::uses_tls(openapi),
        HandlerKind::CortexOne(function) => function.base_url.is_tls(),
        HandlerKind::Grpc(_) | HandlerKind::Function(_) | HandlerKind::Builtins(_) => false,
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

const fn retry(policy: &RetryPolicy) -> Retry {
    Retry {
        attempts: policy.max_attempts,
        initial_backoff: policy.initial_backoff,
        multiplier: policy.backoff_multiplier,
        max_backoff: policy.max_backoff,
    }
}

/// Headers as the manifest has them, which has only values that can be one.
pub(crate) fn headers(headers: &[(HeaderName, Secret)]) -> HeaderMap {
    let header = |(name, text): &(HeaderName, Secret)| {
        let mut value = HeaderValue::from_str(text.expose()).ok()?;
        value.set_sensitive(true);
        Some((name.clone(), value))
    };
    headers.iter().filter_map(header).collect()
}
