//! The run of a task: the message to the agent, the wait for its result, and the places of the result.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use toolyard_agent::memory::{FullKey, NewEntry, RoomPolicy, WorkingMemory};
use toolyard_manifest::AgentSettings;

use super::push::PushSubscription;
use super::running::TaskSlot;
use super::{Agents, NewAgentTask, TaskCaller};
use crate::bus::{AgentBus, BusTask};
use crate::client::endpoint::AgentEndpoint;
use crate::client::error::AgentError;
use crate::client::progress::TaskProgress;
use crate::client::random_id;
use crate::directory::{millis, refresh};
use crate::tasks::{ABANDONED, AgentTask, AgentTaskOwner, CUT_MARK};
use crate::wire::message::Message;
use crate::wire::rpc::code;
use crate::wire::task::{TaskEvent, TaskState};

/// Time after the limit of a task in which its end is recorded: the cancellation and the writes.
pub(super) const END_TIME: Duration = Duration::from_secs(30);

/// Maximum time of a cancellation.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// Multiple of the time between two checks of a task whose agent notifies the gateway.
const PUSH_FACTOR: u32 = 15;

/// Least time between two checks of such a task.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// Text of a task that its caller has cancelled.
const CANCELLED: &str = "The task was cancelled.";

/// Category of results in working memory.
const CATEGORY: &str = "agent-result";

/// A task that has started.
pub(super) struct DispatchedTask {
    pub(super) owner: AgentTaskOwner,
    pub(super) task: AgentTask,
    pub(super) way: TaskWay,
    pub(super) result_place: Option<ResultPlace>,
    pub(super) settings: Arc<AgentSettings>,
    /// Held until the end is recorded.
    pub(super) slot: TaskSlot,
}

/// The way of a task to its agent.
pub(super) enum TaskWay {
    /// A2A over HTTP.
    Http(AgentEndpoint),
    /// The message bus.
    Bus(Arc<dyn AgentBus>),
}

/// The place of a result in working memory.
pub(super) struct ResultPlace {
    memory: WorkingMemory,
    address: String,
    pub(super) key: FullKey,
}

/// The run of a task.
pub(super) struct TaskRun {
    pub(super) agents: Agents,
    pub(super) dispatched: DispatchedTask,
    pub(super) new: NewAgentTask,
}

/// Returns the place of a result; `None` if the caller has no working memory.
pub(super) async fn result_place(caller: &TaskCaller, agent: &str, id: &str) -> Option<ResultPlace> {
    let (memory, memory_caller) = caller.memory.clone()?;
    let access = memory.access(memory_caller).await.ok()?;
    let key = access.place(&format!("a2a/{}/{id}/result", segment(agent))).ok()?;
    Some(ResultPlace { address: access.address(), memory, key })
}

/// Returns a name as one segment of a key.
fn segment(name: &str) -> String {
    name.chars().map(|letter| if matches!(letter, '/' | '*') { '_' } else { letter }).collect()
}

impl AgentTask {
    /// Returns the task after the end of its gateway.
    pub(super) fn abandoned(mut self, now: u64) -> Self {
        (self.state, self.ended) = (TaskState::Failed, Some(now));
        ABANDONED.clone_into(&mut self.text);
        self
    }
}

impl TaskRun {
    /// Runs the task to its end, and records it.
    pub(super) async fn run_to_end(self) {
        let Self { agents, mut dispatched, new } = self;
        let deadline = Instant::now() + new.time;
        let mut progress = TaskProgress::new(dispatched.settings.result_bytes);
        let cancellation = dispatched.slot.cancellation.clone();
        let outcome = tokio::select! {
            outcome = timeout_at(deadline, dispatched.exchange(&agents, &new, deadline, &mut progress)) => {
                outcome.unwrap_or(Err(AgentError::Slow)).map_err(|error| (TaskState::Failed, failure(&error, new.time)))
            }
            () = cancellation.notified() => Err((TaskState::Canceled, CANCELLED.to_owned())),
        };
        let (state, text) = match outcome {
            Ok(()) => (progress.state(), progress.to_text()),
            Err((state, reason)) => {
                let text = dispatched.give_up(&agents, &progress, &reason).await;
                tracing::info!(agent = new.agent.card.name, reason, "a task of an agent has no result");
                (state, text)
            }
        };
        dispatched.finish(&agents, state, &text).await;
    }
}

impl DispatchedTask {
    /// Sends the message, and follows the task until it is at rest.
    async fn exchange(
        &mut self,
        agents: &Agents,
        new: &NewAgentTask,
        deadline: Instant,
        progress: &mut TaskProgress,
    ) -> Result<(), AgentError> {
        match &self.way {
            TaskWay::Http(endpoint) => {
                let endpoint = endpoint.clone();
                self.exchange_over_http(agents, new, &endpoint, deadline, progress).await
            }
            TaskWay::Bus(bus) => {
                let bus = bus.clone();
                self.exchange_over_bus(agents, new, &*bus, progress).await
            }
        }
    }

    async fn exchange_over_bus(
        &mut self,
        agents: &Agents,
        new: &NewAgentTask,
        bus: &dyn AgentBus,
        progress: &mut TaskProgress,
    ) -> Result<(), AgentError> {
        let task = BusTask {
            agent: new.agent.card.name.clone(),
            id: self.task.id.clone(),
            skill: new.skill.clone(),
            message: new.message.clone(),
            time: new.time,
        };
        let mut events = bus.send(task).await?;
        while let Some(event) = events.next().await {
            self.note(agents, progress, event?).await;
            if progress.state().is_at_rest() {
                return Ok(());
            }
        }
        Err(AgentError::Broken)
    }

    async fn exchange_over_http(
        &mut self,
        agents: &Agents,
        new: &NewAgentTask,
        endpoint: &AgentEndpoint,
        deadline: Instant,
        progress: &mut TaskProgress,
    ) -> Result<(), AgentError> {
        let (client, limits) = (&agents.0.client, refresh::limits(&self.settings));
        let mut push = None;
        let mut message = Message::of_user(random_id()?, new.message.as_str());
        message.metadata.insert("skill".to_owned(), new.skill.as_str().into());
        if new.agent.card.capabilities.streaming {
            let mut events = client.stream(endpoint, &message, limits).await?;
            loop {
                match events.next().await {
                    Ok(Some(event)) => self.note(agents, progress, event).await,
                    Ok(None) => break,
                    // The agent knows the task, so that it can be asked for it.
                    Err(AgentError::Broken) if progress.id().is_some() => break,
                    Err(error) => return Err(error),
                }
                if progress.state().is_at_rest() {
                    return Ok(());
                }
            }
        } else {
            push = self.subscription(agents, new)?;
            let target = push.as_ref().map(PushSubscription::target);
            let event = match client.send(endpoint, &message, target, limits, deadline).await {
                Err(AgentError::Refused(error))
                    if push.is_some() && error.code == code::PUSH_NOT_SUPPORTED =>
                {
                    push = None;
                    client.send(endpoint, &message, None, limits, deadline).await?
                }
                event => event?,
            };
            self.note(agents, progress, event).await;
        }
        while !progress.state().is_at_rest() {
            let id =
                progress.id().ok_or_else(|| AgentError::Malformed("it has no task".to_owned()))?.to_owned();
            self.wait(push.as_ref(), &id).await;
            match client.task(endpoint, &id, limits).await {
                Ok(task) => self.note(agents, progress, TaskEvent::Task(task)).await,
                // The agent may work on: it is asked again, up to the time limit.
                Err(error) if error.is_transient() => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "cannot ask for a task of an agent"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns a subscription to notifications of a task; `None` if the agent or the manifest does not have them.
    fn subscription(
        &self,
        agents: &Agents,
        new: &NewAgentTask,
    ) -> Result<Option<PushSubscription>, AgentError> {
        let url = self.settings.push_url.as_ref().filter(|_| new.agent.card.capabilities.push_notifications);
        url.map(|url| agents.0.push.subscribe(&url.uri().to_string())).transpose()
    }

    /// Waits until the task is to be asked for.
    async fn wait(&self, push: Option<&PushSubscription>, id: &str) {
        let poll = self.settings.poll;
        match push {
            None => sleep(poll).await,
            Some(push) => {
                push.name(id);
                // An agent that notifies all the time must not be asked all the time.
                sleep(poll.min(LEAST_PAUSE)).await;
                // A notification may be lost.
                let _lost = timeout(poll.saturating_mul(PUSH_FACTOR), push.arrived()).await;
            }
        }
    }

    /// Adds an event, and records a new state.
    async fn note(&mut self, agents: &Agents, progress: &mut TaskProgress, event: TaskEvent) {
        progress.add(event);
        let state = progress.state();
        if state != self.task.state && !state.is_at_rest() && state != TaskState::Unspecified {
            self.task.state = state;
            agents.record(&self.owner, &self.task).await;
        }
    }

    /// Cancels a task that has not ended at its agent, and returns the text about it.
    async fn give_up(&self, agents: &Agents, progress: &TaskProgress, reason: &str) -> String {
        // A task on the bus is cancelled by the end of its events.
        if let (TaskWay::Http(endpoint), Some(id)) = (&self.way, progress.id()) {
            let limits = refresh::limits(&self.settings);
            let cancel = agents.0.client.cancel(endpoint, id, limits);
            // A failure leaves the task to the agent.
            let _not_cancelled = timeout(CANCEL_TIME, cancel).await;
        }
        match progress.to_text() {
            text if text.is_empty() => reason.to_owned(),
            text => format!("{reason} Until then it had answered:\n\n{text}"),
        }
    }

    /// Saves the result, and records the end.
    async fn finish(mut self, agents: &Agents, state: TaskState, text: &str) {
        let whole = match state {
            TaskState::InputRequired | TaskState::AuthRequired => {
                format!(
                    "The agent waits for input ({}), which a new task has to give.\n\n{text}",
                    state.word()
                )
            }
            _ => text.to_owned(),
        };
        if let Some(place) = &self.result_place
            && let Err(reason) = place.save(&whole, self.settings.result_ttl).await
        {
            tracing::warn!(reason, "cannot save the result of an agent in working memory");
            self.task.result_key = None;
        }
        let now = millis(agents.directory().now());
        (self.task.state, self.task.ended) = (state, Some(now));
        self.task.text = beginning(&whole, self.settings.history_bytes);
        agents.record(&self.owner, &self.task).await;
    }
}

impl ResultPlace {
    /// Saves the result, of which the end may be cut off.
    async fn save(&self, text: &str, ttl: Duration) -> Result<(), String> {
        let value = beginning(text, self.memory.limits().value_bytes);
        let entry = NewEntry {
            key: &self.key.path,
            value: &value,
            category: Some(CATEGORY),
            tags: &[],
            ttl: Some(ttl),
            chunks: None,
            place: None,
        };
        let (memory, namespace, entries) = (&self.memory, &self.key.namespace, [entry]);
        let saved = memory.save_with(&self.address, namespace, &entries, RoomPolicy::DropResults).await;
        saved.map(drop).map_err(|error| error.to_string())
    }
}

/// Returns the reason of a failure.
fn failure(error: &AgentError, time: Duration) -> String {
    match error {
        AgentError::Slow => format!("The agent did not finish within {}.", minutes(time)),
        error => format!("The task failed: {error}."),
    }
}

/// Returns the beginning of a text of at most so many bytes, marked if it is cut.
fn beginning(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub(CUT_MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT_MARK}", &text[..end])
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match (time.as_secs(), time.as_secs() % 60, time.subsec_nanos()) {
        (60, _, 0) => "1 minute".to_owned(),
        (60.., 0, 0) => format!("{} minutes", time.as_secs() / 60),
        _ => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let check = |text: &str, bytes: usize, expected: &str| assert_eq!(beginning(text, bytes), expected);
        check("abc", 3, "abc");
        check("abcdefghij", 9, "abc\n[cut]");
        check("äöüßäöü", 9, "ä\n[cut]");
        check("abcdefghij", 2, "\n[cut]");
    }

    #[test]
    fn durations() {
        let check = |seconds: f64, expected: &str| {
            assert_eq!(minutes(Duration::from_secs_f64(seconds)), expected);
        };
        check(60.0, "1 minute");
        check(300.0, "5 minutes");
        check(0.5, "0.5 seconds");
        check(90.0, "90 seconds");
    }
}
