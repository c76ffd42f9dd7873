//! Sends agents the servers of a bridge: all of them at first, and later the changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{BackendPhase, Registry};

use super::bridge::BridgeShared;
use crate::bus::{BusError, Delivery, Subscription};
use crate::envelope::{Envelope, now_millis};
use crate::headers::{self, ContentTrust};
use crate::message::{McpMetadataRefreshRequest, McpServerSummary, McpServersIndexed};
use crate::pump::{Backoff, subscribe_when_reachable};
use crate::reply::CLOCK_TOLERANCE;
use crate::topic::{TOOL_META_MCP_REFRESH, Topic};

/// Delay after a change, so that changes that come together make one message.
const SETTLE_DELAY: Duration = Duration::from_millis(100);

/// Least time between two refreshes of the same servers. Requests in between get the lists as they are.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of agents that are known by their requests only. The oldest one is forgotten.
const MAX_REQUESTERS: usize = 256;

/// Maximum number of names of tools in the summary of a server. Its details have all of them.
const MAX_NAMES: usize = 1000;

/// Maximum length of a summary in characters.
const MAX_SUMMARY_LENGTH: usize = 2000;

/// The servers by their names in lower case.
type Summaries = BTreeMap<String, McpServerSummary>;

pub(super) struct IndexPublisher {
    bridge: BridgeShared,
    /// The servers that each agent knows, by its name.
    agents: HashMap<String, AgentIndex>,
    /// Agents that the settings do not name, but that have sent a request, the oldest first.
    requesters: VecDeque<String>,
    /// Time at which the servers were known, in milliseconds since 1970.
    started: u64,
    last_refresh: HashMap<Option<String>, Instant>,
    backoff: Backoff,
}

/// The servers that an agent knows.
#[derive(Default)]
struct AgentIndex {
    servers: Summaries,
    /// `false`: the next message has all servers, because the agent has requested them, or may know none.
    is_current: bool,
}

impl IndexPublisher {
    pub(super) fn new(bridge: BridgeShared) -> Self {
        let agents = bridge
            .settings
            .bridge
            .agents
            .iter()
            .map(|agent| (agent.clone(), AgentIndex::default()))
            .collect();
        let backoff = Backoff::new(&bridge.settings);
        Self {
            bridge,
            agents,
            requesters: VecDeque::new(),
            started: 0,
            last_refresh: HashMap::new(),
            backoff,
        }
    }

    /// Publishes the servers and their changes, for as long as the gateway lasts.
    pub(super) async fn run(mut self) {
        // Before the servers are known, so that no request is lost.
        let subscription = Subscription::alone(Topic::of(TOOL_META_MCP_REFRESH));
        let bus = self.bridge.bus.clone();
        let mut requests = match subscribe_when_reachable(&*bus, &subscription, &mut self.backoff).await {
            Ok(requests) => requests,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                return tracing::error!(error, "the broker refuses the requests for lists of servers");
            }
        };
        let mut registry = self.bridge.gateway.watch();
        self.bridge.gateway.settled().await;
        self.started = now_millis();
        loop {
            let is_done = self.publish().await;
            let retry = if is_done { Duration::MAX } else { self.backoff.next() };
            if is_done {
                self.backoff.reset();
            }
            tokio::select! {
                changed = registry.changed() => match changed {
                    Ok(()) => sleep(SETTLE_DELAY).await,
                    // The gateway has ended.
                    Err(_) => return,
                },
                Some(request) = requests.next() => self.refresh(request).await,
                () = sleep(retry), if !is_done => {}
            }
        }
    }

    /// Lists servers again, and sends all of them to the sender of the request.
    async fn refresh(&mut self, delivery: Delivery) {
        let envelope = delivery.envelope.clone();
        drop(delivery.ack().await);
        let request: McpMetadataRefreshRequest = match envelope.read() {
            Ok(request) => request,
            Err(problem) => return tracing::debug!(%problem, "dropped a request to refresh"),
        };
        self.add_requester(&envelope.source);
        let tolerance = u64::try_from(CLOCK_TOLERANCE.as_millis()).unwrap_or(u64::MAX);
        // The lists of the start are newer than a request that has waited for it.
        if envelope.timestamp != 0 && envelope.timestamp.saturating_add(tolerance) < self.started {
            return;
        }
        let server = request.server_name.map(|name| name.trim().to_lowercase());
        let is_recent = |last: &Instant| last.elapsed() < REFRESH_INTERVAL;
        self.last_refresh.retain(|_, last| is_recent(last));
        if self.last_refresh.contains_key(&server) || self.last_refresh.contains_key(&None) {
            return;
        }
        self.bridge.servers.reconnect(server.as_deref()).await;
        self.last_refresh.insert(server, Instant::now());
    }

    /// Adds the sender of a request to the agents. Its name grants no rights: the messages reach every reader of the topic.
    fn add_requester(&mut self, agent: &str) {
        if Topic::mcp_metadata_of(agent).is_err() {
            return;
        }
        if !self.agents.contains_key(agent) {
            self.requesters.push_back(agent.to_owned());
            if self.requesters.len() > MAX_REQUESTERS
                && let Some(oldest) = self.requesters.pop_front()
            {
                self.agents.remove(&oldest);
            }
        }
        self.agents.entry(agent.to_owned()).or_default().is_current = false;
    }

    /// Sends each agent the servers that it does not know. Returns `false` if a message was not sent.
    async fn publish(&mut self) -> bool {
        let caller = match self.bridge.principal.caller().await {
            Ok(caller) => caller,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot send agents the servers yet");
                return false;
            }
        };
        let registry = Registry::view_for(self.bridge.gateway.registry(), &caller);
        let current = summaries(&registry, &self.bridge);
        let mut is_done = true;
        for (agent, known) in &mut self.agents {
            match send_changes(&self.bridge, agent, known, &current).await {
                Ok(()) => *known = AgentIndex { servers: current.clone(), is_current: true },
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, agent, "cannot send an agent the servers yet");
                    is_done = false;
                }
            }
        }
        is_done
    }
}

/// Returns the tools of a server by name, as the caller of the bridge sees them.
pub(super) fn tools_of<'a>(registry: &'a Registry, server: &str) -> Vec<&'a Arc<RegistryEntry>> {
    let entries = registry.entries(EntryKind::Tools).iter();
    entries.filter(|entry| !entry.handler.is_builtin && *entry.handler.name == *server).collect()
}

/// Returns the servers whose tools are listed. Servers without tools are left out.
fn summaries(registry: &Registry, bridge: &BridgeShared) -> Summaries {
    let summary = |(name, _): &(Arc<str>, BackendPhase)| {
        let tools = tools_of(registry, name);
        let handler = &tools.first()?.handler;
        let names: Vec<&str> = tools.iter().map(|entry| &**entry.service_name()).collect();
        let text = bridge.servers.summary(handler, &names);
        let summary = McpServerSummary {
            server_name: name.to_string(),
            display_name: handler.display_name.as_deref().map(str::to_owned),
            summary: Some(text.chars().take(MAX_SUMMARY_LENGTH).collect()),
            tool_count: i64::try_from(names.len()).unwrap_or(i64::MAX),
            tool_names: names.into_iter().take(MAX_NAMES).map(str::to_owned).collect(),
        };
        Some((name.to_lowercase(), summary))
    };
    registry.phases().iter().filter_map(summary).collect()
}

/// Sends an agent the difference between the servers that it knows and the current ones.
async fn send_changes(
    bridge: &BridgeShared,
    agent: &str,
    known: &AgentIndex,
    current: &Summaries,
) -> Result<(), BusError> {
    let removed = known.servers.iter().filter(|(name, _)| !current.contains_key(*name));
    let removed: Vec<_> = removed.map(|(_, server)| server.server_name.clone()).collect();
    let is_new = |(name, server): &(&String, &McpServerSummary)| {
        !known.is_current || known.servers.get(*name) != Some(*server)
    };
    let changed: Vec<_> = current.iter().filter(is_new).map(|(_, server)| server.clone()).collect();
    if removed.is_empty() && changed.is_empty() && known.is_current {
        return Ok(());
    }
    let topic = Topic::mcp_metadata_of(agent)
        .map_err(|_| BusError::invalid("the name of an agent cannot be part of a topic"))?;
    let mut removed = Some(removed);
    // Each message adds servers, so that a long list is several messages.
    for servers in batches(changed, bridge.settings.max_message_bytes / 2) {
        let message = McpServersIndexed { servers, removed_servers: removed.take().unwrap_or_default() };
        let mut envelope = Envelope::of(&message, &format!("mcp-bridge.{agent}"))?
            .header(headers::CONTENT_TRUST, ContentTrust::System.as_str());
        envelope.destination = Some(agent.to_owned());
        bridge.bus.broadcast(&topic, envelope).await?;
    }
    Ok(())
}

/// Divides servers into messages of this size. There is one message at least.
fn batches(servers: Vec<McpServerSummary>, limit: usize) -> Vec<Vec<McpServerSummary>> {
    let (mut batches, mut size) = (vec![Vec::new()], 0);
    for mut server in servers {
        let mut bytes = encoded_len(&server);
        if bytes > limit {
            // The details still have the names.
            server.tool_names.clear();
            bytes = encoded_len(&server);
        }
        if size + bytes > limit && size > 0 {
            batches.push(Vec::new());
            size = 0;
        }
        size += bytes;
        if let Some(batch) = batches.last_mut() {
            batch.push(server);
        }
    }
    batches
}

fn encoded_len(server: &McpServerSummary) -> usize {
    serde_json::to_vec(server).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_several_messages() {
        let server = |name: &str, names: usize| McpServerSummary {
            server_name: name.to_owned(),
            tool_names: vec!["x".repeat(10); names],
            ..McpServerSummary::default()
        };
        let check = |servers: &[usize], expected: &[usize]| {
            let servers = servers.iter().map(|names| server("a", *names)).collect();
            let sizes: Vec<_> = batches(servers, 500).iter().map(Vec::len).collect();
            assert_eq!(sizes, expected);
        };
        check(&[], &[0]);
        check(&[1], &[1]);
        check(&[10, 10, 10], &[2, 1]);
        check(&[1000, 1], &[2]);
    }
}
