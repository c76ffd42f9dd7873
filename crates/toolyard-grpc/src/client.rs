//! The tools of a gRPC server.
//!
//! A task (`keeper`) reads them: by server reflection or from a descriptor set, each method a tool, or from a server of
//! the Omnia tool protocol. A single tool can also be defined by the manifest. Each call is one request (`delivery`),
//! whose status becomes an error of the gateway (`status`).

mod channel;
mod codec;
mod delivery;
mod details;
mod file_head;
mod health_check;
mod keeper;
mod method_call;
mod omnia_tools;
mod reflection;
mod service_filter;
mod status;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use toolyard_backends::health::{CheckTimes, ServiceHealth};
use toolyard_core::{
    Backend, BackendPhase, Call, CallTarget, Catalog, ErrorCode, FailureCause, FailureLog, LongWork, Outcome,
    Tool, ToolError,
};
use toolyard_net::budget::ByteBudget;

pub use self::channel::{GrpcChannel, GrpcHttpClient};
pub use self::delivery::GrpcDelivery;
pub use self::keeper::ToolSource;
pub use self::method_call::StreamBounds;
pub use self::status::parse_code;

use self::health_check::GrpcCheck;
use self::keeper::{CallableTool, LoadedTools, ToolsKeeper};
use self::method_call::MethodCaller;
use crate::descriptor::MethodFilter;

/// Configuration of the tools of a server.
pub struct GrpcOptions {
    /// Name of the handler, for logs.
    pub name: Arc<str>,
    /// The tools.
    pub tools: GrpcTools,
    /// Timeouts, retries and size limits of requests.
    pub delivery: GrpcDelivery,
    /// Bounds of collected streams.
    pub bounds: StreamBounds,
    /// Budget that the bytes of larger responses are reserved from.
    pub budget: ByteBudget,
    /// Regular checks of the server.
    pub probe: Option<GrpcProbe>,
    /// The background runner for conversions of large messages. Without one they run on the thread of the call.
    pub long_work: Option<LongWork>,
}

/// The tools of a handler.
pub enum GrpcTools {
    /// One tool of the Omnia tool protocol.
    Defined(Tool),
    /// Those that the server has.
    Discovered(DiscoveryOptions),
}

/// Configuration of the task that reads the tools.
pub struct DiscoveryOptions {
    /// Source of the tools.
    pub source: ToolSource,
    /// The services and methods that become tools.
    pub filter: MethodFilter,
    /// True if `filter` selects services, which may be those of the infrastructure then.
    pub selects_services: bool,
    /// Maximum number of tools.
    pub max_tools: usize,
    /// Time between two reads. `None`: on demand, and after a closed connection.
    pub refresh: Option<Duration>,
    /// Timeout of a read.
    pub read_time: Duration,
    /// Maximum size of all descriptors, in bytes.
    pub description_bytes: usize,
}

/// Regular checks of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcProbe {
    /// Times of the checks.
    pub times: CheckTimes,
    /// The service that the health service is asked about; empty for the whole server.
    pub service: String,
}

/// A backend of the tools of a server.
pub struct GrpcBackend {
    health: ServiceHealth,
    tools: watch::Receiver<Arc<LoadedTools>>,
    refresh: Arc<Notify>,
    caller: MethodCaller,
    /// Aborted when the backend is dropped.
    _keeper: JoinSet<()>,
}

impl GrpcBackend {
    /// Creates a backend. If its tools are discovered, it spawns the task that reads them on the current runtime.
    #[must_use]
    pub fn start(options: GrpcOptions) -> Self {
        let GrpcOptions { name, tools, delivery, bounds, budget, probe, long_work } = options;
        let delivery = Arc::new(delivery);
        let (service, times) = probe.map(|probe| (probe.service, probe.times)).unzip();
        let check = Box::new(GrpcCheck { delivery: delivery.clone(), service });
        let (catalog, loaded, discovery) = match tools {
            GrpcTools::Defined(tool) => {
                let form = tool.output_form();
                let loaded = LoadedTools::from([(tool.name.clone(), CallableTool::Omnia(form))]);
                let tools = vec![Arc::new(tool)];
                (Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() }, loaded, None)
            }
            GrpcTools::Discovered(discovery) => (Catalog::default(), LoadedTools::new(), Some(discovery)),
        };
        let health = ServiceHealth::new(name.clone(), catalog, check, times);
        health.set_target(delivery.channel.origin());
        let (sender, tools) = watch::channel(Arc::new(loaded));
        let refresh = Arc::<Notify>::default();
        let mut keeper = JoinSet::new();
        if let Some(discovery) = discovery {
            let task = ToolsKeeper {
                name,
                options: Arc::new(discovery),
                closed: delivery.channel.client().closed_connections(),
                delivery: delivery.clone(),
                health: health.clone(),
                tools: sender,
                refresh: refresh.clone(),
                last: None,
                rejected: None,
                failures: FailureLog::default(),
            };
            keeper.spawn(task.run());
        }
        let caller = MethodCaller { delivery, health: health.clone(), budget, bounds, long_work };
        Self { health, tools, refresh, caller, _keeper: keeper }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let message = "The tools of the server are not loaded";
        let tools = self.health.loaded(&self.tools, LoadedTools::is_empty, message).await?;
        let tool = match &call.target {
            CallTarget::Tool(name) => tools.get(name),
            _ => None,
        };
        let output = match tool {
            Some(CallableTool::Method(method)) => self.caller.run(&call, method).await?,
            Some(CallableTool::Omnia(form)) => {
                let MethodCaller { delivery, health, budget, .. } = &self.caller;
                omnia_tools::execute(&call, *form, delivery, health, budget).await?
            }
            None => {
                let text = "The server no longer has this tool";
                return Err(ToolError::new(ErrorCode::ToolNotFound, text).unsent());
            }
        };
        Ok(Outcome::Done(output))
    }
}

impl Backend for GrpcBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.health.subscribe()
    }

    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.health.last_failure()
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}
