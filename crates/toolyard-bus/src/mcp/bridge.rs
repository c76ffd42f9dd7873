//! The bridge: a process that has MCP servers for others.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use toolyard_core::Gateway;
use toolyard_core::registry::HandlerEntry;
use toolyard_manifest::BusSettings;

use super::index::IndexPublisher;
use super::management::BridgeManagement;
use crate::bus::{BusError, MessageBus, Subscription};
use crate::consumer::{Consumer, ConsumerOptions};
use crate::topic::{MCP_MANAGE, Topic};
use crate::worker::{BusWorker, CallRouting, WorkerPrincipal};

/// Number of management requests at a time. Adding a server takes seconds.
const MANAGEMENT_REQUESTS: usize = 4;

/// The servers of a bridge, beside their tools in the registry.
pub trait BridgeServers: Send + Sync {
    /// Connects to a server again, and lists its tools; `None`: to all servers. Returns after they have answered or
    /// failed, within some seconds.
    fn reconnect<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, ()>;

    /// Returns a summary of a server with these tools. It must not block.
    fn summary(&self, server: &HandlerEntry, tools: &[&str]) -> String;
}

/// A bridge. Dropping it stops it at once.
#[derive(Debug)]
pub struct McpBridge {
    calls: BusWorker,
    management: Consumer,
    _index: JoinSet<()>,
}

/// The parts of a bridge that all of its requests use.
#[derive(Clone)]
pub(super) struct BridgeShared {
    pub(super) bus: Arc<dyn MessageBus>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) principal: Arc<dyn WorkerPrincipal>,
    pub(super) servers: Arc<dyn BridgeServers>,
    pub(super) settings: BusSettings,
}

impl McpBridge {
    /// Starts a bridge, whose servers are all handlers of the gateway that the principal can use. It subscribes once the
    /// broker can be reached.
    ///
    /// # Errors
    /// As for [`BusWorker::start`].
    pub fn start(
        bus: Arc<dyn MessageBus>,
        gateway: Arc<Gateway>,
        principal: Arc<dyn WorkerPrincipal>,
        servers: Arc<dyn BridgeServers>,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        let routing = CallRouting::Servers(servers.clone());
        let calls =
            BusWorker::start_with(bus.clone(), gateway.clone(), principal.clone(), routing, settings)?;
        let shared =
            BridgeShared { bus: bus.clone(), gateway, principal, servers, settings: settings.clone() };
        let subscription = Subscription::of_group(&settings.bridge.group, Topic::of(MCP_MANAGE));
        let options = ConsumerOptions {
            subscriptions: vec![subscription.prefetching(MANAGEMENT_REQUESTS)],
            concurrent: MANAGEMENT_REQUESTS,
            cancellations: None,
        };
        let management = Arc::new(BridgeManagement::new(shared.clone()));
        let management = Consumer::start(bus, management, options, settings);
        let mut index = JoinSet::new();
        index.spawn(IndexPublisher::new(shared).run());
        Ok(Self { calls, management, _index: index })
    }

    /// Returns once the bridge takes calls; `false` if the broker refuses that.
    pub async fn subscribed(&self) -> bool {
        self.calls.subscribed().await && self.management.subscribed().await
    }

    /// Takes no further requests, and waits for the running ones.
    pub async fn stop(self, drain: Duration) {
        let Self { calls, management, _index } = self;
        tokio::join!(calls.stop(drain), management.stop(drain));
    }
}

impl fmt::Debug for BridgeShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeShared").field("bus", &self.bus).finish_non_exhaustive()
    }
}
