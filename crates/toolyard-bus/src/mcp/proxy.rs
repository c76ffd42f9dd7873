//! The side of an agent: the index of the servers of a bridge, and calls of their tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{ErrorCode, ToolError};
use toolyard_manifest::BusSettings;

use crate::bus::{BusError, BusErrorKind, Deliveries, Delivery, MessageBus, Subscription};
use crate::caller::{RemoteCall, ToolCaller};
use crate::envelope::{Envelope, InvalidBody};
use crate::headers::{self, ContentTrust};
use crate::message::{
    BusMessage, McpGetServiceDetailsRequest, McpGetServiceDetailsResponse, McpMetadataRefreshRequest,
    McpRegisterServerRequest, McpRegisterServerResponse, McpServerSummary, McpServersIndexed,
    McpUnregisterServerRequest, McpUnregisterServerResponse,
};
use crate::pump::{Backoff, subscribe_when_reachable};
use crate::record::{ToolInvokeRequest, ToolInvokeResponse};
use crate::request::Requester;
use crate::topic::{MCP_MANAGE, TOOL_INVOKE_MCP, TOOL_META_MCP_REFRESH, Topic};

/// Time limit of a request for details, or to remove a server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a request to add a server, which the bridge may have to install.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(150);

/// Time between two requests for the first list of servers.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Time without messages after which the list is requested again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Maximum number of servers in the index. Further ones are ignored.
const MAX_SERVERS: usize = 10_000;

/// The servers of a bridge by their names in lower case.
pub type ServerIndex = BTreeMap<String, Arc<McpServerSummary>>;

/// The servers of a bridge, for one agent. Results of calls arrive on `tool.result.{source}`, to which it subscribes at the
/// first call.
#[derive(Debug)]
pub struct McpToolProxy {
    bus: Arc<dyn MessageBus>,
    settings: BusSettings,
    index: watch::Receiver<Arc<ServerIndex>>,
    calls: OnceCell<ToolCaller>,
    management: OnceCell<Requester>,
    _follower: JoinSet<()>,
}

impl McpToolProxy {
    /// Starts to follow the servers of the bridge. A request to refresh is sent once the bus can be reached, so that a
    /// bridge that has started before sends its servers.
    #[must_use]
    pub fn start(bus: Arc<dyn MessageBus>, settings: &BusSettings) -> Self {
        let (sender, index) = watch::channel(Arc::default());
        let mut follower = JoinSet::new();
        follower.spawn(follow(bus.clone(), settings.clone(), sender));
        let (calls, management) = (OnceCell::new(), OnceCell::new());
        Self { bus, settings: settings.clone(), index, calls, management, _follower: follower }
    }

    /// Returns the servers.
    #[must_use]
    pub fn servers(&self) -> Arc<ServerIndex> {
        self.index.borrow().clone()
    }

    /// Returns the servers, and every change of them.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<ServerIndex>> {
        self.index.clone()
    }

    /// Calls a tool of a server. Dropping the future cancels the call.
    ///
    /// # Errors
    /// As for [`ToolCaller::call`].
    pub async fn invoke(
        &self,
        server: &str,
        request: &ToolInvokeRequest,
        mut call: RemoteCall,
    ) -> Result<ToolInvokeResponse, ToolError> {
        let calls = timeout(call.timeout, self.calls.get_or_try_init(|| self.subscribe_to_results()));
        let late = |_| ToolError::new(ErrorCode::Timeout, "the message bus cannot be reached").unsent();
        let calls = calls.await.map_err(late)??;
        call.topic = Topic::of(TOOL_INVOKE_MCP);
        call.headers.push((headers::MCP_SERVER.to_owned(), server.to_owned()));
        call.headers.push((headers::TOOL_PROVIDER.to_owned(), "mcp".to_owned()));
        calls.call(request, call).await
    }

    async fn subscribe_to_results(&self) -> Result<ToolCaller, BusError> {
        let (bus, source) = (self.bus.clone(), &self.settings.source);
        let topic = Topic::tool_result_of(source).map_err(|_| invalid_name())?;
        ToolCaller::on(bus, source, topic, self.settings.pending_requests).await
    }

    /// Returns the tools of a server.
    ///
    /// # Errors
    /// If no bridge answers.
    pub async fn details(&self, server: &str) -> Result<McpGetServiceDetailsResponse, ToolError> {
        let request = McpGetServiceDetailsRequest { server_name: server.to_owned() };
        self.manage(&request, REQUEST_TIMEOUT).await
    }

    /// Adds a server.
    ///
    /// # Errors
    /// If no bridge answers.
    pub async fn register(
        &self,
        request: &McpRegisterServerRequest,
    ) -> Result<McpRegisterServerResponse, ToolError> {
        self.manage(request, REGISTER_TIMEOUT).await
    }

    /// Removes a server.
    ///
    /// # Errors
    /// If no bridge answers.
    pub async fn unregister(&self, server: &str) -> Result<McpUnregisterServerResponse, ToolError> {
        let request = McpUnregisterServerRequest { server_name: server.to_owned() };
        self.manage(&request, REQUEST_TIMEOUT).await
    }

    async fn manage<Request: BusMessage, Response: BusMessage>(
        &self,
        request: &Request,
        limit: Duration,
    ) -> Result<Response, ToolError> {
        let envelope = Envelope::of(request, &self.settings.source)?
            .header(headers::CONTENT_TRUST, ContentTrust::ToolRequest.as_str())
            .header(headers::TIMEOUT_MS, limit.as_millis().to_string());
        let requesting = async {
            let requester = self.management.get_or_try_init(|| self.subscribe_to_management()).await?;
            requester.request(&Topic::of(MCP_MANAGE), envelope, limit).await
        };
        let late = || BusError::new(BusErrorKind::Timeout, "no bridge has answered in time");
        let reply = timeout(limit, requesting).await.unwrap_or_else(|_| Err(late()))?;
        let invalid = |problem: InvalidBody| {
            ToolError::new(ErrorCode::ExecutionFailed, "the bridge sent an invalid answer").caused_by(problem)
        };
        reply.read().map_err(invalid)
    }

    async fn subscribe_to_management(&self) -> Result<Requester, BusError> {
        let topic = Topic::mcp_manage_response_of(&self.settings.source).map_err(|_| invalid_name())?;
        Requester::on(self.bus.clone(), topic, self.settings.pending_requests).await
    }
}

fn invalid_name() -> BusError {
    BusError::invalid("the name of this process cannot be part of a topic")
}

/// Follows the servers of the bridge, for as long as the future is polled.
async fn follow(bus: Arc<dyn MessageBus>, settings: BusSettings, index: watch::Sender<Arc<ServerIndex>>) {
    let mut messages = match subscribe(&*bus, &settings).await {
        Ok(messages) => messages,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            return tracing::error!(error, "the broker refuses the lists of servers of the bridge");
        }
    };
    let (mut interval, mut is_due) = (PROBE_INTERVAL, true);
    loop {
        if is_due {
            probe(&*bus, &settings).await;
        }
        let next = timeout(interval, messages.next()).await;
        is_due = next.is_err();
        match next {
            Ok(None) => return,
            Ok(Some(delivery)) => {
                if apply(&index, delivery).await {
                    interval = REFRESH_INTERVAL;
                }
            }
            // The bridge may not have started yet, or messages may have been lost with a connection.
            Err(_) => {}
        }
    }
}

async fn subscribe(bus: &dyn MessageBus, settings: &BusSettings) -> Result<Deliveries, BusError> {
    let topic = Topic::mcp_metadata_of(&settings.source).map_err(|_| invalid_name())?;
    subscribe_when_reachable(bus, &Subscription::alone(topic), &mut Backoff::new(settings)).await
}

/// Requests the servers of the bridge.
async fn probe(bus: &dyn MessageBus, settings: &BusSettings) {
    let request = McpMetadataRefreshRequest { server_name: None };
    let sent = async {
        let envelope = Envelope::of(&request, &settings.source)?
            .header(headers::CONTENT_TRUST, ContentTrust::System.as_str());
        bus.broadcast(&Topic::of(TOOL_META_MCP_REFRESH), envelope).await
    };
    if let Err(error) = sent.await {
        let error = &error as &dyn std::error::Error;
        tracing::debug!(error, "cannot request the servers of the bridge yet");
    }
}

/// Applies a message to the index: removals first, then other servers. Returns `false` for another message.
async fn apply(index: &watch::Sender<Arc<ServerIndex>>, delivery: Delivery) -> bool {
    let envelope = delivery.envelope.clone();
    // Subscriptions without a group do not deliver again.
    drop(delivery.ack().await);
    let message: McpServersIndexed = match envelope.read() {
        Ok(message) => message,
        Err(problem) => {
            tracing::debug!(%problem, "dropped a message about servers");
            return false;
        }
    };
    index.send_modify(|index| *index = Arc::new(updated(index, message)));
    true
}

fn updated(index: &ServerIndex, message: McpServersIndexed) -> ServerIndex {
    let mut index = index.clone();
    for name in &message.removed_servers {
        index.remove(&name.to_lowercase());
    }
    for server in message.servers {
        let name = server.server_name.to_lowercase();
        if index.len() < MAX_SERVERS || index.contains_key(&name) {
            index.insert(name, Arc::new(server));
        }
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_come_before_other_servers() {
        let server = |name: &str, tools: i64| McpServerSummary {
            server_name: name.to_owned(),
            tool_count: tools,
            ..McpServerSummary::default()
        };
        let check = |removed: &[&str], servers: &[(&str, i64)], expected: &[(&str, i64)]| {
            let known = McpServersIndexed {
                servers: vec![server("Weather", 1), server("time", 2)],
                removed_servers: Vec::new(),
            };
            let message = McpServersIndexed {
                servers: servers.iter().map(|(name, tools)| server(name, *tools)).collect(),
                removed_servers: removed.iter().map(|name| (*name).to_owned()).collect(),
            };
            let index = updated(&updated(&ServerIndex::new(), known), message);
            let shown: Vec<_> =
                index.iter().map(|(name, server)| (name.as_str(), server.tool_count)).collect();
            assert_eq!(shown, expected);
        };
        check(&[], &[], &[("time", 2), ("weather", 1)]);
        check(&["WEATHER"], &[], &[("time", 2)]);
        check(&["time"], &[("TIME", 7)], &[("time", 7), ("weather", 1)]);
        check(&["other"], &[("new", 3)], &[("new", 3), ("time", 2), ("weather", 1)]);
    }
}
