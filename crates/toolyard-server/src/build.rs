//! Builds a backend for each handler of the manifest, by the file of its kind.

mod auth;
mod builtins;
mod bus;
mod cortexone;
mod function;
mod grpc;
mod http;
mod mcp;
mod names;
mod openapi;
mod selector;
mod unsupported;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::ResultChecks;
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{Backend, Json, LongWork, Object, RetrySchedule, SecretRedactor, Tool};
use toolyard_manifest::{
    self as manifest, GrpcToolSettings, HandlerKind, OutboundSettings, ProcessSettings, ProxyChoice,
    RetryPolicy, SecretString, ToolDefinition,
};
use toolyard_mcp::client::InstallQueues;
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::HttpClient;
use toolyard_net::proxy::ProxySettings;
use toolyard_process::ProcessTable;

pub(crate) use auth::source as credential_source;
pub(crate) use builtins::tool_group;

use crate::hosting::CodeHosting;
pub use builtins::BuiltinDeps;
pub use function::FunctionExchanges;
use unsupported::UnsupportedBackend;

/// Builds handlers from shared parts. A built backend starts to connect at once, and the builder does not wait for it.
pub struct HandlerBuilder {
    process: ProcessSettings,
    client: HttpClient,
    has_roots: bool,
    processes: ProcessTable,
    functions: Option<Arc<dyn FunctionExchanges>>,
    hosting: Option<CodeHosting>,
    builtin_deps: Option<BuiltinDeps>,
    budget: ByteBudget,
    long_work: Option<LongWork>,
    install_queues: InstallQueues,
    /// Names of the handlers whose servers the same command has started before.
    installed: HashSet<String>,
}

impl HandlerBuilder {
    /// Creates a builder with the limits of this process. `processes` starts the programs.
    ///
    /// # Errors
    /// If the TLS library is unusable.
    pub fn new(process: ProcessSettings, processes: ProcessTable) -> io::Result<Self> {
        let client = HttpClient::without_roots()?;
        Ok(Self {
            install_queues: InstallQueues::new(process.timeouts.install_queue),
            process,
            client,
            has_roots: false,
            processes,
            functions: None,
            hosting: None,
            builtin_deps: None,
            budget: ByteBudget::default(),
            long_work: None,
            installed: HashSet::new(),
        })
    }

    /// Sets the budget from which large responses take their bytes.
    #[must_use]
    pub fn with_budget(self, budget: ByteBudget) -> Self {
        Self { budget, ..self }
    }

    /// Sets the slots for slow work.
    #[must_use]
    pub fn with_long_work(self, long_work: LongWork) -> Self {
        Self { long_work: Some(long_work), ..self }
    }

    /// Sets the hosted functions.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn FunctionExchanges>) -> Self {
        Self { functions: Some(functions), ..self }
    }

    /// Sets the host of functions and scripts.
    #[must_use]
    pub fn with_hosting(self, hosting: CodeHosting) -> Self {
        Self { hosting: Some(hosting.clone()), ..self.with_functions(Arc::new(hosting)) }
    }

    /// Sets what the built-in tools need of the gateway.
    #[must_use]
    pub fn with_builtin_deps(self, builtin_deps: BuiltinDeps) -> Self {
        Self { builtin_deps: Some(builtin_deps), ..self }
    }

    /// Sets the names of the handlers whose servers need no installation.
    pub(crate) fn set_installed(&mut self, installed: HashSet<String>) {
        self.installed = installed;
    }

    /// Returns the budget for the messages of a handler's server, which has a share of its own like a caller.
    fn budget_of(&self, handler: &manifest::HandlerConfig) -> ByteBudget {
        self.budget.owned_by(&format!("handler {}", handler.name.as_str()).into())
    }

    /// Returns the client for a handler with these settings.
    ///
    /// # Errors
    /// The reason, if the certificate authorities cannot be read or the proxy cannot be used.
    fn outbound_client(&self, outbound: &OutboundSettings) -> Result<HttpClient, String> {
        let client = match (&outbound.authority, outbound.skips_verification) {
            (_, true) => HttpClient::without_verification().map_err(|error| error.to_string())?,
            (Some(file), false) => HttpClient::with_authorities(file)
                .map_err(|error| format!("tlsCAPath: cannot read {}: {error}", file.display()))?,
            (None, false) => self.client.clone(),
        };
        Ok(match &outbound.proxy {
            None => client,
            Some(ProxyChoice::Direct) => client.with_proxies(ProxySettings::none()),
            // The manifest has checked the URL. Without its proxy the handler must not connect.
            Some(ProxyChoice::Url(url)) => {
                client.with_proxies(ProxySettings::all(url.expose()).ok_or("proxy: cannot use this URL")?)
            }
        })
    }

    /// Loads the system's root certificates if one of these handlers needs them, so that building cannot fail later.
    ///
    /// # Errors
    /// If the root certificates cannot be read.
    pub fn prepare<'a>(
        &mut self,
        handlers: impl IntoIterator<Item = &'a manifest::HandlerConfig>,
    ) -> io::Result<()> {
        if !self.has_roots && handlers.into_iter().any(|handler| handler.kind.uses_tls()) {
            self.client = HttpClient::with_system_roots()?;
            self.has_roots = true;
        }
        Ok(())
    }

    /// Builds a handler of the manifest.
    #[must_use]
    pub fn build(&self, handler: &manifest::HandlerConfig) -> HandlerEntry {
        let secrets = SecretRedactor::new(handler.secrets());
        let backend = self.backend(handler, &secrets);
        self.entry(handler, backend, secrets)
    }

    /// Builds a handler of the manifest that connects to nothing and offers nothing.
    pub(crate) fn build_disabled(&self, handler: &manifest::HandlerConfig) -> HandlerEntry {
        let reason = "disabled by an administrator: restart the handler to enable it";
        let backend = Arc::new(UnsupportedBackend::because(reason, None));
        self.entry(handler, backend, SecretRedactor::new(handler.secrets()))
    }

    /// Returns the entry of a handler with this backend.
    fn entry(
        &self,
        handler: &manifest::HandlerConfig,
        backend: Arc<dyn Backend>,
        secrets: SecretRedactor,
    ) -> HandlerEntry {
        let name = handler.name.as_str();
        // Each attempt has the handler's timeout, so a call with retries may take several times as long.
        let timeout = retry(handler.kind.retry()).budget(handler.timeout);
        let limits = &self.process.limits;
        let size = GateSize { running: limits.concurrent_calls_per_handler, waiting: limits.queued_calls };
        let limits = CallLimits { timeout, gate: CallGate::new(size) };
        let disclosure = builtins::disclosure(&handler.kind);
        let is_builtin = matches!(handler.kind, HandlerKind::Builtins(_));
        let is_on_bus = matches!(handler.kind, HandlerKind::Bus(_));
        let result_checks = result_checks(&handler.kind);
        let entry = HandlerEntry::new(name, backend, limits);
        let model_tools = builtins::model_tools(&handler.kind);
        let entry = HandlerEntry { model_tools, ..entry };
        let entry = HandlerEntry { secrets, disclosure, is_builtin, is_on_bus, result_checks, ..entry };
        with_declaration(handler, entry)
    }

    /// Builds the backend of a handler.
    fn backend(&self, handler: &manifest::HandlerConfig, secrets: &SecretRedactor) -> Arc<dyn Backend> {
        match &handler.kind {
            HandlerKind::Mcp(mcp) => self.mcp(handler, mcp, secrets),
            HandlerKind::Http(http) => self.http(handler, http, secrets),
            HandlerKind::Grpc(grpc) => self.grpc(handler, grpc, secrets),
            HandlerKind::OpenApi(openapi) => self.openapi(handler, openapi, secrets),
            HandlerKind::Function(function) => self.function(handler, function, secrets),
            HandlerKind::CortexOne(function) => self.cortexone(handler, function, secrets),
            HandlerKind::Bus(bus) => self.bus(handler, bus),
            HandlerKind::Selector(_) => selector::backend(),
            HandlerKind::Builtins(builtins) => self.builtins(builtins, secrets),
        }
    }
}

/// Applies the names, overrides, secrets and prices of a declaration to a handler.
pub(crate) fn with_declaration(declared: &manifest::HandlerConfig, handler: HandlerEntry) -> HandlerEntry {
    let prefix = names::prefix(declared.prefix);
    let overrides = Arc::new(names::overrides(&declared.overrides));
    // Pinned values may have changed.
    handler.secrets.set(declared.secrets());
    let (price, chunking) = (declared.price, declared.chunking);
    let is_mcp = matches!(declared.kind, HandlerKind::Mcp(_));
    let renames_arguments = declared.rename_arguments.unwrap_or(!is_mcp);
    let [display_name, description] =
        [&declared.display_name, &declared.description].map(|text| text.as_deref().map(Into::into));
    HandlerEntry {
        prefix,
        overrides,
        renames_arguments,
        price,
        display_name,
        description,
        chunking,
        ..handler
    }
}

/// Returns the checks of results: the manifest declares the schema of a single tool, while other schemas are those of
/// the server.
const fn result_checks(kind: &HandlerKind) -> ResultChecks {
    let has_tool = match kind {
        HandlerKind::Http(_) => true,
        HandlerKind::Function(function) => function.tool.is_some(),
        HandlerKind::CortexOne(function) => function.tool.is_some(),
        HandlerKind::Grpc(grpc) if matches!(grpc.tools, GrpcToolSettings::Defined(_)) => true,
        HandlerKind::Grpc(_) | HandlerKind::OpenApi(_) => return ResultChecks::Nesting,
        HandlerKind::Mcp(_) | HandlerKind::Bus(_) | HandlerKind::Selector(_) | HandlerKind::Builtins(_) => {
            false
        }
    };
    if has_tool { ResultChecks::Schema } else { ResultChecks::None }
}

/// Returns the tool that a manifest defines.
fn explicit_tool(definition: &ToolDefinition) -> Tool {
    let mut members = Object::new()
        .with("description", Json::string(&definition.description))
        .with("inputSchema", Json::from_value(&definition.input_schema));
    if let Some(schema) = &definition.output_schema {
        members.set("outputSchema", Json::from_value(schema));
    }
    Tool::named(&definition.name, members)
}

const fn retry(policy: &RetryPolicy) -> RetrySchedule {
    RetrySchedule {
        attempts: policy.max_attempts,
        initial_backoff: policy.initial_backoff,
        multiplier: policy.backoff_multiplier,
        max_backoff: policy.max_backoff,
    }
}

/// Converts the headers of a manifest. Validation has checked the values.
pub(crate) fn headers(headers: &[(HeaderName, SecretString)]) -> HeaderMap {
    let header = |(name, text): &(HeaderName, SecretString)| {
        let mut value = HeaderValue::from_str(text.expose()).ok()?;
        value.set_sensitive(true);
        Some((name.clone(), value))
    };
    headers.iter().filter_map(header).collect()
}
