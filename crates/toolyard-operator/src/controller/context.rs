//! Shared state of the controllers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use super::{ClusterFacts, OperatorConfig, OperatorMetrics, RestoredObjects, RetryDelays, ToolDiscovery};
use crate::text::shortened;

/// Maximum length of the note of an event in bytes.
const NOTE_BYTES: usize = 1000;

/// Shared state of the controllers.
pub struct Context {
    /// Client of the cluster.
    pub client: Client,
    /// Configuration of the operator.
    pub config: OperatorConfig,
    /// Abilities of the server of the cluster.
    pub facts: ClusterFacts,
    /// Lists the tools of servers.
    pub tools: Arc<dyn ToolDiscovery>,
    /// Counters.
    pub metrics: Arc<OperatorMetrics>,
    /// Delays between failed reconciliations.
    pub retries: RetryDelays,
    /// Delays between writes that other managers undo.
    pub restored: RestoredObjects,
    recorder: Recorder,
}

impl Context {
    /// Creates a context.
    #[must_use]
    pub fn new(
        client: Client,
        config: OperatorConfig,
        facts: ClusterFacts,
        tools: Arc<dyn ToolDiscovery>,
        metrics: Arc<OperatorMetrics>,
    ) -> Self {
        let instance = config.leader_election.as_ref().map(|election| election.identity.clone());
        let reporter = Reporter { controller: config.manager.clone(), instance };
        let recorder = Recorder::new(client.clone(), reporter);
        let (retries, restored) = (RetryDelays::default(), RestoredObjects::default());
        Self { client, config, facts, tools, metrics, retries, restored, recorder }
    }

    /// Publishes an event about an object. Events are information: a failure is logged only.
    pub async fn publish(
        &self,
        object: &ObjectReference,
        kind: EventType,
        action: &str,
        reason: &str,
        note: &str,
    ) {
        let event = Event {
            type_: kind,
            reason: reason.to_owned(),
            note: Some(shortened(note, NOTE_BYTES)),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, object).await {
            tracing::debug!(%error, reason, "an event was not published");
        }
    }
}
