//! Hosted functions that are invoked directly: finds them, and runs them as calls of the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::request::Parts;
use tokio::sync::watch;
use toolyard_core::access::CallPrice;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::ResultChecks;
use toolyard_core::names::PrefixPolicy;
use toolyard_core::overrides::ChunkingPolicy;
use toolyard_core::registry::{CallLimits, HandlerEntry, RegistryEntry};
use toolyard_core::{
    Backend, Call, CallOutput, CallTarget, Catalog, ErrorCode, FunctionLookup, Json, Object, Outcome,
    ToolError, function,
};
use toolyard_functions::invoke::calls_handler;
use toolyard_functions::{FunctionError, FunctionHost, LoadedVersion, VersionSelector};

/// Handler name of such calls in the log, in metrics and in the audit trail.
const HANDLER: &str = "functions";

/// Member of an outcome's body with the response. The response of an MCP function may be a list.
pub const ANSWER: &str = "answer";

/// Upper limit of every version's timeout. [`toolyard_functions::project`] checks it.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The functions of a host, for the gateway.
pub struct HostedFunctions {
    host: FunctionHost,
    name: Arc<str>,
    limits: Arc<CallLimits>,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl HostedFunctions {
    /// Creates the functions of this host. `size` limits the concurrent calls of all of them.
    #[must_use]
    pub fn new(host: FunctionHost, size: GateSize) -> Self {
        let limits = Arc::new(CallLimits { timeout: MAX_TIMEOUT, gate: CallGate::new(size) });
        Self { host, name: HANDLER.into(), limits, catalog: watch::Sender::default() }
    }

    /// Returns the entry of a version. The version itself limits its concurrency and time.
    fn entry(&self, loaded: Arc<LoadedVersion>) -> RegistryEntry {
        let name: Arc<str> = format!("{}@{}", loaded.id, loaded.version).into();
        let secrets = loaded.secrets.clone();
        let catalog = self.catalog.subscribe();
        let handler = HandlerEntry {
            name: self.name.clone(),
            backend: Arc::new(HostedVersion { host: self.host.clone(), loaded, catalog }),
            limits: self.limits.clone(),
            prefix: PrefixPolicy::default(),
            overrides: Arc::default(),
            renames_arguments: false,
            result_checks: ResultChecks::None,
            price: None,
            display_name: None,
            description: None,
            chunking: ChunkingPolicy::default(),
            secrets,
            disclosure: None,
            is_builtin: false,
            is_on_bus: false,
            is_added: false,
            model_tools: &[],
        };
        let (own, chunking) = (name.clone(), ChunkingPolicy::default());
        RegistryEntry { own, name, tool: None, additions: None, price: None, chunking, handler }
    }
}

impl FunctionLookup for HostedFunctions {
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<RegistryEntry>, ToolError>> {
        Box::pin(async move {
            let (id, version) = name.split_once('@').unwrap_or((name, "latest"));
            let selector: VersionSelector = version.parse().map_err(|_| function::unknown(name))?;
            match self.host.resolve(id, selector).await {
                Ok(loaded) => Ok(Arc::new(self.entry(loaded))),
                Err(FunctionError::UnknownFunction(_) | FunctionError::UnknownVersion { .. }) => {
                    Err(function::unknown(name))
                }
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Set once a call has reached its function, which then logs the call. It travels in the extensions of the request that
/// is the call's origin.
#[derive(Debug, Clone, Default)]
pub struct ReachedFunction(Arc<AtomicBool>);

impl ReachedFunction {
    /// True if the call has reached its function.
    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(call: &Call) {
        let parts = call.origin.as_ref().and_then(|origin| origin.downcast_ref::<Parts>());
        if let Some(Self(reached)) = parts.and_then(|parts| parts.extensions.get()) {
            reached.store(true, Ordering::Relaxed);
        }
    }
}

/// The error for a function that cannot be loaded. It is an error so that the caller does not pay.
fn load_failure(answer: Json) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "the function cannot be loaded").from_peer(answer).unsent()
}

/// The backend of one version.
struct HostedVersion {
    host: FunctionHost,
    loaded: Arc<LoadedVersion>,
    catalog: watch::Receiver<Arc<Catalog>>,
}

impl Backend for HostedVersion {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    /// An event that does not call the function is free.
    fn price(&self, call: &Call) -> Option<CallPrice> {
        let event = call.arguments();
        let is_free = event.is_some_and(|event| !calls_handler(self.loaded.kind, event));
        Some(if is_free { CallPrice::default() } else { self.loaded.price })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let CallTarget::Function(_) = call.target else {
                return Err(function::unknown(call.target.name()));
            };
            let event = call.arguments().cloned().unwrap_or_else(Json::null);
            ReachedFunction::set(&call);
            let invocation = self.host.invoke(&self.loaded, &event, None, call.deadline).await?;
            if invocation.failure.is_some_and(|failure| !failure.may_have_run()) {
                return Err(load_failure(invocation.reply.to_json()));
            }
            let is_error = invocation.reply.is_failure();
            Ok(Outcome::Done(CallOutput {
                body: Object::new().with(ANSWER, invocation.reply.to_json()),
                is_error,
            }))
        })
    }
}
