//! The worker: runs calls that arrive on the bus, through the gateway of its process.
//!
//! A call runs as the caller that the worker is given. No header, `source` or session of a message changes its rights.
//!
//! - `announcer`: announces the worker and its tools to gateways;
//! - `call`: one call, from its delivery to its answer;
//! - `client`: progress and log messages of a running call.

mod announcer;
mod call;
mod client;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{Caller, Gateway, ToolError};
use toolyard_manifest::BusSettings;

use crate::announcement::WorkerPhase;
use crate::bus::{BusError, Delivery, MessageBus, Subscription};
use crate::consumer::{AtMostOnce, Consumer, ConsumerOptions, RequestHandler, RunningRequests};
use crate::mcp::BridgeServers;
use crate::topic::{TOOL_CANCEL, TOOL_INVOKE, TOOL_INVOKE_MCP, Topic};

/// Time for the announcement that the worker has ended.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// The caller of all calls of a worker.
pub trait WorkerPrincipal: Send + Sync {
    /// Returns the caller with its current rights.
    ///
    /// # Errors
    /// If it has none any more, such as for a key that was revoked.
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>>;
}

/// A worker. Dropping it stops it at once: its calls are cancelled, and those that are not acknowledged go to others.
#[derive(Debug)]
pub struct BusWorker {
    calls: Consumer,
    phase: watch::Sender<WorkerPhase>,
    announcing: JoinSet<()>,
}

/// The tools that a worker is for.
#[derive(Clone)]
pub(crate) enum CallRouting {
    /// Tools by their published names.
    Tools,
    /// Tools of the servers of a bridge.
    Servers(Arc<dyn BridgeServers>),
}

impl CallRouting {
    /// Returns the subscriptions to calls: those for the group, and those on the topic that all groups share.
    fn subscriptions(&self, settings: &BusSettings) -> Result<Vec<Subscription>, BusError> {
        let worker = &settings.worker;
        let (group, topics) = match self {
            Self::Tools => {
                let of_group = Topic::tool_invoke_of_group(&worker.group)
                    .map_err(|_| BusError::invalid("the name of the group cannot be part of a topic"))?;
                let shared = worker.shared_topic.then(|| Topic::of(TOOL_INVOKE));
                (&worker.group, [Some(of_group), shared])
            }
            Self::Servers(_) => (&settings.bridge.group, [Some(Topic::of(TOOL_INVOKE_MCP)), None]),
        };
        let calls = |topic| Subscription::of_group(group, topic).prefetching(worker.concurrent_calls);
        Ok(topics.into_iter().flatten().map(calls).collect())
    }
}

/// The parts that all calls of a worker use.
struct WorkerShared {
    bus: Arc<dyn MessageBus>,
    gateway: Arc<Gateway>,
    principal: Arc<dyn WorkerPrincipal>,
    routing: CallRouting,
    settings: BusSettings,
    running: RunningRequests,
    at_most_once: AtMostOnce,
}

impl BusWorker {
    /// Starts a worker. It subscribes once the broker can be reached.
    ///
    /// # Errors
    /// [`Invalid`](crate::BusErrorKind::Invalid) if the name of the group cannot be part of a topic.
    pub fn start(
        bus: Arc<dyn MessageBus>,
        gateway: Arc<Gateway>,
        principal: Arc<dyn WorkerPrincipal>,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        Self::start_with(bus, gateway, principal, CallRouting::Tools, settings)
    }

    /// Starts a worker for these tools.
    pub(crate) fn start_with(
        bus: Arc<dyn MessageBus>,
        gateway: Arc<Gateway>,
        principal: Arc<dyn WorkerPrincipal>,
        routing: CallRouting,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        let options = ConsumerOptions {
            subscriptions: routing.subscriptions(settings)?,
            concurrent: settings.worker.concurrent_calls,
            cancellations: Some(Topic::of(TOOL_CANCEL)),
        };
        let shared = Arc::new(WorkerShared {
            bus: bus.clone(),
            gateway,
            principal,
            routing,
            settings: settings.clone(),
            running: RunningRequests::default(),
            at_most_once: AtMostOnce::default(),
        });
        let calls = Consumer::start(bus, shared.clone(), options, settings);
        let phase = watch::Sender::new(WorkerPhase::Serving);
        let mut announcing = JoinSet::new();
        // A bridge sends agents its servers instead.
        if let CallRouting::Tools = shared.routing {
            let (subscribed, phase) = (calls.subscribed(), phase.subscribe());
            announcing.spawn(async move {
                if subscribed.await {
                    announcer::announce(shared, phase).await;
                }
            });
        }
        Ok(Self { calls, phase, announcing })
    }

    /// Returns once the worker has subscribed; `false` if the broker refuses that.
    pub async fn subscribed(&self) -> bool {
        self.calls.subscribed().await
    }

    /// Takes no further calls, and waits for the running ones.
    pub async fn stop(self, drain: Duration) {
        let Self { calls, phase, mut announcing } = self;
        // Announced before the queue is left, so that gateways send this worker no further calls.
        phase.send_replace(WorkerPhase::Stopping);
        calls.stop(drain).await;
        phase.send_replace(WorkerPhase::Stopped);
        drop(timeout(LEAVE_TIME, announcing.join_next()).await);
    }
}

impl RequestHandler for WorkerShared {
    fn handle(self: Arc<Self>, delivery: Delivery) -> BoxFuture<'static, ()> {
        call::handle(self, delivery).boxed()
    }

    fn cancel(&self, id: &str) {
        self.running.cancel(id);
    }
}

impl fmt::Debug for WorkerShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerShared").field("bus", &self.bus).finish_non_exhaustive()
    }
}
