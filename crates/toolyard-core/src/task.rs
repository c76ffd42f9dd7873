//! Tasks as clients see them: calls that continue after their response (SEP-2663).

use std::time::{Duration, SystemTime};

use crate::timestamp::iso_8601;
use crate::{Json, Object};

/// Status of a task, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task runs.
    Working,
    /// The task waits for answers of its client: the requests by their keys.
    InputRequired(Json),
    /// The call has ended with this result, which may be a failure of the tool.
    Completed(Json),
    /// The call has ended with this JSON-RPC error.
    Failed(Json),
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns `true` if the task has ended.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}

/// Description of a task.
#[derive(Debug, Clone)]
pub struct TaskDescription<'a> {
    /// Id.
    pub id: &'a str,
    /// Status.
    pub status: TaskStatus,
    /// Text about the status.
    pub message: Option<&'a str>,
    /// Time of the start.
    pub created: SystemTime,
    /// Time of the last change.
    pub changed: SystemTime,
    /// Time from the start for which the task is known.
    pub ttl: Duration,
    /// Interval at which the client is told to poll.
    pub poll_interval: Duration,
}

impl TaskDescription<'_> {
    /// Returns the description as the result of `tasks/get`.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let (status, member) = match &self.status {
            TaskStatus::Working => ("working", None),
            TaskStatus::InputRequired(requests) => ("input_required", Some(("inputRequests", requests))),
            TaskStatus::Completed(result) => ("completed", Some(("result", result))),
            TaskStatus::Failed(error) => ("failed", Some(("error", error))),
            TaskStatus::Cancelled => ("cancelled", None),
        };
        let mut task = Object::new()
            .with("resultType", Json::string("complete"))
            .with("taskId", Json::string(self.id))
            .with("status", Json::string(status))
            .with("createdAt", Json::string(&iso_8601(self.created)))
            .with("lastUpdatedAt", Json::string(&iso_8601(self.changed)))
            .with("ttlMs", milliseconds(self.ttl))
            .with("pollIntervalMs", milliseconds(self.poll_interval));
        if let Some(message) = self.message {
            task.set("statusMessage", Json::string(message));
        }
        if let Some((name, value)) = member {
            task.set(name, value.clone());
        }
        task
    }

    /// Returns the description as the result of the call that has become the task.
    #[must_use]
    pub fn to_started(&self) -> Object {
        let mut task = self.to_object();
        task.set("resultType", Json::string("task"));
        task
    }
}

/// Returns the result of `tasks/update` and `tasks/cancel`.
#[must_use]
pub fn acknowledgement() -> Object {
    Object::new().with("resultType", Json::string("complete"))
}

fn milliseconds(time: Duration) -> Json {
    Json::unsigned(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
