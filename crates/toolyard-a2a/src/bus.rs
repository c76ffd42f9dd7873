//! Agents on a message bus, as they are used here. Messages and brokers are not part of this: see `toolyard-bus`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::client::error::AgentError;
use crate::wire::card::AgentCard;
use crate::wire::task::TaskEvent;

/// A message bus with agents.
pub trait AgentBus: Send + Sync {
    /// Returns the announcements of agents, until it is dropped.
    fn announcements(&self) -> BoxStream<'static, AgentAnnouncement>;

    /// Sends a task, and returns its events. Dropping them before the end of the task cancels it.
    ///
    /// # Errors
    /// If the bus does not take the task.
    fn send(&self, task: BusTask) -> BoxFuture<'_, Result<BusEvents, AgentError>>;
}

/// The events of a task. The last one is its end.
pub type BusEvents = BoxStream<'static, Result<TaskEvent, AgentError>>;

/// An announcement of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAnnouncement {
    /// The card, without an address.
    pub card: AgentCard,
    /// True if the agent is stopping.
    pub is_leaving: bool,
}

/// A task for an agent on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusTask {
    /// Name of the agent.
    pub agent: String,
    /// Id of the task.
    pub id: String,
    /// Id of the skill.
    pub skill: String,
    /// Text of the message.
    pub message: String,
    /// Time limit.
    pub time: Duration,
}

#[cfg(test)]
mod tests;
