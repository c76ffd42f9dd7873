//! Tasks for other agents.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use toolyard_manifest::BusSettings;

use super::record::{
    AgentTaskCancelRequest, AgentTaskError, AgentTaskRequest, AgentTaskResult, AgentTaskStatusUpdate,
};
use super::topics_of;
use crate::bus::{BusError, BusErrorKind, MessageBus};
use crate::envelope::{Envelope, InvalidBody};
use crate::headers::{self, ContentTrust};
use crate::request::{PendingRequest, Requester};
use crate::stored_results::{self, StoredResultError};
use crate::topic::{AGENT_TASK_STATUS, Topic};

/// Maximum time of a cancellation.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// Gives tasks to agents. Their results arrive on `agent.response.{source}`, to which it subscribes at the first task.
#[derive(Debug)]
pub struct AgentCaller {
    bus: Arc<dyn MessageBus>,
    settings: BusSettings,
    requester: OnceCell<Requester>,
}

/// A message about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAnswer {
    /// The task runs.
    Status(AgentTaskStatusUpdate),
    /// The task has ended.
    Result(AgentTaskResult),
    /// The task was not run, or has failed.
    Error(AgentTaskError),
}

/// A task that was sent. Dropping it before its end cancels the task.
pub struct SentTask {
    bus: Arc<dyn MessageBus>,
    pending: PendingRequest,
    cancellation: Option<Cancellation>,
}

struct Cancellation {
    bus: Arc<dyn MessageBus>,
    topic: Topic,
    envelope: Envelope,
}

impl AgentCaller {
    /// Returns a caller of the agents on a bus.
    #[must_use]
    pub fn new(bus: Arc<dyn MessageBus>, settings: &BusSettings) -> Self {
        Self { bus, settings: settings.clone(), requester: OnceCell::new() }
    }

    /// Sends a task, and returns once the broker has stored it. It waits there for an agent that is not running.
    ///
    /// # Errors
    /// As for [`MessageBus::publish`], and [`Invalid`](BusErrorKind::Invalid) if the name of the agent cannot be part of a
    /// topic.
    pub async fn send(
        &self,
        agent: &str,
        request: &AgentTaskRequest,
        time: Duration,
    ) -> Result<SentTask, BusError> {
        let [topic, cancel_topic] = topics_of(agent)?;
        let requester = self.requester.get_or_try_init(|| self.subscribe()).await?;
        let source = &self.settings.source;
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut envelope = Envelope::of(request, source)?
            .correlated(&*request.task_id)
            .header(headers::CONTENT_TRUST, ContentTrust::AgentMessage.as_str())
            .header(headers::TIMEOUT_MS, millis.to_string());
        envelope.destination = Some(agent.to_owned());
        if self.bus.stored_results().is_some() {
            envelope = envelope.header(headers::RESULT_STORE, "true");
        }
        let AgentTaskRequest { task_id, context_id, .. } = request.clone();
        let cancel = Envelope::of(&AgentTaskCancelRequest { task_id, context_id }, source)?
            .correlated(&*request.task_id)
            .replying_to(requester.topic());
        let pending = requester.send(&topic, envelope).await.map_err(|error| match error.kind() {
            BusErrorKind::NoRoute => BusError::new(
                BusErrorKind::NoRoute,
                format!("no agent {agent:?} has ever taken tasks on the bus"),
            ),
            _ => error,
        })?;
        let cancellation = Cancellation { bus: self.bus.clone(), topic: cancel_topic, envelope: cancel };
        Ok(SentTask { bus: self.bus.clone(), pending, cancellation: Some(cancellation) })
    }

    async fn subscribe(&self) -> Result<Requester, BusError> {
        let invalid =
            |_| BusError::invalid("the name of this process, `bus.source`, cannot be part of a topic");
        let topic = Topic::agent_response_of(&self.settings.source).map_err(invalid)?;
        let notices = Topic::of(AGENT_TASK_STATUS);
        Requester::with_notices(self.bus.clone(), topic, notices, self.settings.pending_requests).await
    }
}

impl SentTask {
    /// Returns the next message about the task. After its end there is none.
    ///
    /// # Errors
    /// If the bus has ended, or the message is none of a task.
    pub async fn next(&mut self) -> Result<AgentAnswer, BusError> {
        let envelope = self.pending.next().await?;
        if envelope.is::<AgentTaskStatusUpdate>() {
            return Ok(AgentAnswer::Status(envelope.read().map_err(invalid)?));
        }
        self.cancellation = None;
        let envelope = stored_results::resolve(&*self.bus, envelope).await.map_err(lost)?;
        if envelope.is::<AgentTaskError>() {
            return Ok(AgentAnswer::Error(envelope.read().map_err(invalid)?));
        }
        Ok(AgentAnswer::Result(envelope.read().map_err(invalid)?))
    }
}

impl Drop for SentTask {
    fn drop(&mut self) {
        let Some(Cancellation { bus, topic, envelope }) = self.cancellation.take() else { return };
        // Outside of a runtime there is no bus any more.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(timeout(CANCEL_TIME, async move {
            if let Err(error) = bus.broadcast(&topic, envelope).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "cannot cancel the task of an agent"
                );
            }
        }));
    }
}

impl fmt::Debug for SentTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentTask").field("pending", &self.pending).finish_non_exhaustive()
    }
}

fn invalid(problem: InvalidBody) -> BusError {
    BusError::invalid(format!("the agent sent an invalid answer: {problem}"))
}

fn lost(error: StoredResultError) -> BusError {
    BusError::invalid(format!("the result of the agent cannot be read from the store: {error}"))
}
