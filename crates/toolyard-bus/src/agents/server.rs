//! An agent of this process: takes tasks from its topic, and answers them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolyard_manifest::BusSettings;

use super::announcer::AgentAnnouncer;
use super::record::{
    AgentMessage, AgentTaskError, AgentTaskRequest, AgentTaskResult, AgentTaskState, AgentTaskStatusUpdate,
    AnnouncedCard, codes,
};
use super::topics_of;
use crate::bus::{BusError, Delivery, MessageBus, Subscription};
use crate::consumer::{
    AcknowledgedRequest, AtMostOnce, Consumer, ConsumerOptions, RequestHandler, RunningRequests, log_failure,
};
use crate::envelope::Envelope;
use crate::headers::{self, ContentTrust};
use crate::reply::{ReplyRoute, reply_to, reply_topic, time_left, time_limit};
use crate::topic::{AGENT_RESPONSE, AGENT_TASK_STATUS, Topic};

/// Time for a result after the deadline of its sender.
const LAST_RESULT_TIME: Duration = Duration::from_secs(5);

/// The end of a task.
pub type AgentTaskOutcome = Result<AgentTaskResult, AgentTaskError>;

/// Runs tasks.
pub trait AgentTaskHandler: Send + Sync + 'static {
    /// Runs a task, and sets its progress meanwhile. Dropping the future cancels the task.
    fn run(
        &self,
        request: AgentTaskRequest,
        progress: watch::Sender<String>,
    ) -> BoxFuture<'_, AgentTaskOutcome>;
}

/// An agent of this process: takes tasks, and announces itself once it does. Dropping it ends both at once.
pub struct BusAgent {
    consumer: Consumer,
    announcer: Arc<AgentAnnouncer>,
    announcing: JoinSet<()>,
}

struct AgentShared {
    bus: Arc<dyn MessageBus>,
    handler: Arc<dyn AgentTaskHandler>,
    /// Name of the agent, which is the source of its messages.
    name: String,
    running: RunningRequests,
    at_most_once: AtMostOnce,
}

/// A task that was read from its message.
struct ReceivedTask {
    envelope: Arc<Envelope>,
    request: AgentTaskRequest,
    reply_topic: Topic,
    /// Time at which the sender stops waiting, if the message has it.
    deadline: Option<Instant>,
}

impl BusAgent {
    /// Starts an agent. It subscribes once the broker can be reached. At most `concurrent` tasks run at a time; further ones
    /// stay in the queue.
    ///
    /// # Errors
    /// [`Invalid`](crate::BusErrorKind::Invalid) if the name of the agent cannot be part of a topic.
    pub fn start(
        bus: Arc<dyn MessageBus>,
        card: AnnouncedCard,
        handler: Arc<dyn AgentTaskHandler>,
        concurrent: usize,
        settings: &BusSettings,
    ) -> Result<Self, BusError> {
        let [topic, cancel_topic] = topics_of(&card.agent_name)?;
        let subscription = Subscription::of_group(&card.agent_name, topic).prefetching(concurrent);
        let options = ConsumerOptions {
            subscriptions: vec![subscription],
            concurrent,
            cancellations: Some(cancel_topic),
        };
        let shared = Arc::new(AgentShared {
            bus: bus.clone(),
            handler,
            name: card.agent_name.clone(),
            running: RunningRequests::default(),
            at_most_once: AtMostOnce::default(),
        });
        let consumer = Consumer::start(bus.clone(), shared, options, settings);
        let announcer = Arc::new(AgentAnnouncer { bus, card, settings: settings.clone() });
        let mut announcing = JoinSet::new();
        let (subscribed, announced) = (consumer.subscribed(), announcer.clone());
        announcing.spawn(async move {
            if subscribed.await {
                announced.run().await;
            }
        });
        Ok(Self { consumer, announcer, announcing })
    }

    /// Returns once the agent takes tasks; `false` if the broker refuses that.
    pub async fn subscribed(&self) -> bool {
        self.consumer.subscribed().await
    }

    /// Announces that the agent stops, takes no further tasks, and waits for the running ones.
    pub async fn stop(mut self, drain: Duration) {
        self.announcing.shutdown().await;
        self.announcer.say_farewell().await;
        self.consumer.stop(drain).await;
    }
}

impl RequestHandler for AgentShared {
    fn handle(self: Arc<Self>, delivery: Delivery) -> BoxFuture<'static, ()> {
        async move { self.run_at_most_once(delivery).await }.boxed()
    }

    fn cancel(&self, id: &str) {
        self.running.cancel(id);
    }
}

impl AgentShared {
    /// Runs the task of a delivery and sends its result. It is acknowledged first, and not run if it may have been run
    /// before, because its tool may have effects. A message that is no task is a dead letter.
    async fn run_at_most_once(&self, delivery: Delivery) {
        let task = match ReceivedTask::read(&delivery) {
            Ok(task) => task,
            Err(reason) => return log_failure(delivery.dead_letter(reason).await),
        };
        let outcome = match self.at_most_once.acknowledge(delivery).await {
            None => return,
            Some(AcknowledgedRequest::New) => self.run(&task).await,
            Some(AcknowledgedRequest::MayHaveRun) => {
                task.failure("The task was delivered before and may have run; it is not run a second time.")
            }
        };
        let state = outcome.as_ref().map(|result| result.state).unwrap_or(AgentTaskState::Failed);
        tracing::info!(skill = task.request.skill, ?state, "the task of an agent on the bus has ended");
        log_failure(self.send(&task, outcome).await);
    }

    /// Runs a task until its end, its cancellation, or the end of its time.
    async fn run(&self, task: &ReceivedTask) -> AgentTaskOutcome {
        let (_running, cancelled) = self.running.register(&task.request.task_id);
        let late = || task.failure("The time limit of the task has ended.");
        if task.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return late();
        }
        self.send_state(task, None).await;
        let (progress, mut states) = watch::channel(String::new());
        let mut work = self.handler.run(task.request.clone(), progress);
        let work = async {
            loop {
                tokio::select! {
                    outcome = &mut work => return outcome,
                    Ok(()) = states.changed() => {
                        let text = states.borrow_and_update().clone();
                        self.send_state(task, Some(text)).await;
                    }
                }
            }
        };
        let limited = async {
            match task.deadline {
                None => work.await,
                Some(deadline) => timeout_at(deadline, work).await.unwrap_or_else(|_| late()),
            }
        };
        tokio::select! {
            outcome = limited => outcome,
            Ok(()) = cancelled => Ok(task.cancelled()),
        }
    }

    /// Tells everyone that the task runs.
    async fn send_state(&self, task: &ReceivedTask, progress: Option<String>) {
        let AgentTaskRequest { task_id, context_id, .. } = task.request.clone();
        let message = progress.map(|text| AgentMessage::of_text("agent", text));
        let update = AgentTaskStatusUpdate { task_id, context_id, state: AgentTaskState::Working, message };
        let sent = async {
            let envelope = self.labelled(reply_to(&task.envelope, &update, &self.name)?);
            self.bus.broadcast(&Topic::of(AGENT_TASK_STATUS), envelope).await
        };
        if let Err(error) = sent.await {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot send the state of a task");
        }
    }

    async fn send(&self, task: &ReceivedTask, outcome: AgentTaskOutcome) -> Result<(), BusError> {
        let until = task.deadline.unwrap_or_else(Instant::now).max(Instant::now()) + LAST_RESULT_TIME;
        let too_large =
            |reason: String| task.failure(&format!("The result is too large for the bus: {reason}"));
        let envelope = |outcome: &AgentTaskOutcome| {
            let reply = match outcome {
                Ok(result) => reply_to(&task.envelope, result, &self.name)?,
                Err(error) => reply_to(&task.envelope, error, &self.name)?,
            };
            Ok(self.labelled(reply))
        };
        let route = ReplyRoute { bus: &*self.bus, request: &task.envelope, topic: &task.reply_topic, until };
        route.send(outcome, envelope, too_large).await
    }

    fn labelled(&self, envelope: Envelope) -> Envelope {
        envelope.header(headers::CONTENT_TRUST, ContentTrust::AgentMessage.as_str())
    }
}

impl ReceivedTask {
    /// Reads a task, or returns the reason why the message is none.
    fn read(delivery: &Delivery) -> Result<Self, String> {
        let envelope = delivery.envelope.clone();
        let request = envelope.read().map_err(|problem| problem.to_string())?;
        let reply_topic = reply_topic(&envelope, AGENT_RESPONSE)?;
        let limit = time_limit(&envelope);
        let deadline = limit.map(|limit| Instant::now() + time_left(&envelope, limit));
        Ok(Self { envelope, request, reply_topic, deadline })
    }

    fn failure(&self, message: &str) -> AgentTaskOutcome {
        let AgentTaskRequest { task_id, context_id, .. } = self.request.clone();
        Err(AgentTaskError {
            task_id,
            context_id,
            code: codes::EXECUTION_FAILED.to_owned(),
            message: message.to_owned(),
            is_retryable: false,
        })
    }

    fn cancelled(&self) -> AgentTaskResult {
        let AgentTaskRequest { task_id, context_id, .. } = self.request.clone();
        AgentTaskResult { task_id, context_id, state: AgentTaskState::Canceled, ..AgentTaskResult::default() }
    }
}

impl fmt::Debug for BusAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusAgent").field("name", &self.announcer.card.agent_name).finish_non_exhaustive()
    }
}
