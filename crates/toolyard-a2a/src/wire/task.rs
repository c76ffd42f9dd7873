//! Tasks, their states, and the events of a stream.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::message::{Message, Part, parts_text};
use super::or_default;

/// State of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// The agent has accepted it.
    #[serde(rename = "TASK_STATE_SUBMITTED", alias = "submitted")]
    Submitted,
    /// The agent works on it.
    #[serde(rename = "TASK_STATE_WORKING", alias = "working")]
    Working,
    /// It has succeeded.
    #[serde(rename = "TASK_STATE_COMPLETED", alias = "completed")]
    Completed,
    /// It has failed.
    #[serde(rename = "TASK_STATE_FAILED", alias = "failed")]
    Failed,
    /// It was cancelled.
    #[serde(rename = "TASK_STATE_CANCELED", alias = "canceled")]
    Canceled,
    /// The agent waits for another message.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED", alias = "input-required")]
    InputRequired,
    /// The agent has refused it.
    #[serde(rename = "TASK_STATE_REJECTED", alias = "rejected")]
    Rejected,
    /// The agent waits for authentication.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED", alias = "auth-required")]
    AuthRequired,
    /// Unknown, such as a state of a later version.
    #[default]
    #[serde(rename = "TASK_STATE_UNSPECIFIED", other)]
    Unspecified,
}

impl TaskState {
    /// Returns the word for a model.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::InputRequired => "input-required",
            Self::Rejected => "rejected",
            Self::AuthRequired => "auth-required",
            Self::Unspecified => "unknown",
        }
    }

    /// Returns true if the task has ended.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Returns true if the task has ended, or waits for its client.
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        self.is_final() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// State of a task, with a message about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The state.
    #[serde(default, deserialize_with = "or_default")]
    pub state: TaskState,
    /// Message of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Time of the state (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// A result of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Id, unique in its task.
    #[serde(default, deserialize_with = "or_default")]
    pub artifact_id: String,
    /// Name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Content.
    #[serde(default, deserialize_with = "or_default")]
    pub parts: Vec<Part>,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id, which the agent has chosen.
    pub id: String,
    /// Conversation that the task belongs to.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub context_id: String,
    /// State.
    #[serde(default, deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// Results.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Messages, oldest first.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
}

impl Task {
    /// Returns the result as a model reads it: the artifacts, or else the message of the state.
    #[must_use]
    pub fn to_text(&self) -> String {
        let texts = self.artifacts.iter().map(|artifact| parts_text(&artifact.parts));
        let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        match (text.is_empty() || !matches!(self.status.state, TaskState::Completed), &self.status.message) {
            (false, _) | (true, None) => text,
            (true, Some(message)) if text.is_empty() => message.to_text(),
            (true, Some(message)) => format!("{}\n\n{text}", message.to_text()),
        }
    }
}

/// Change of the state of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// Id of the task.
    #[serde(default, deserialize_with = "or_default")]
    pub task_id: String,
    /// Conversation of the task.
    #[serde(default, deserialize_with = "or_default")]
    pub context_id: String,
    /// The new state.
    #[serde(default, deserialize_with = "or_default")]
    pub status: TaskStatus,
}

/// An artifact, or a part of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// Id of the task.
    #[serde(default, deserialize_with = "or_default")]
    pub task_id: String,
    /// Conversation of the task.
    #[serde(default, deserialize_with = "or_default")]
    pub context_id: String,
    /// The artifact.
    #[serde(default, deserialize_with = "or_default")]
    pub artifact: Artifact,
    /// True if the parts follow those of an artifact with the same id.
    #[serde(default, deserialize_with = "or_default")]
    pub append: bool,
    /// True for the last part of an artifact.
    #[serde(default, deserialize_with = "or_default")]
    pub last_chunk: bool,
}

/// The answer to a message, or an event of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskEvent {
    /// A task.
    Task(Task),
    /// A message without a task.
    Message(Message),
    /// A change of the state.
    StatusUpdate(StatusUpdate),
    /// An artifact.
    ArtifactUpdate(ArtifactUpdate),
}

/// An event that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a task, a message or an update: {0}")]
pub struct InvalidEvent(String);

impl TaskEvent {
    /// Reads an event, of version 1.0, whose only member names its kind, or of 0.3, where it has the member `kind`.
    ///
    /// # Errors
    /// If it is none.
    pub fn of_value(mut value: Value) -> Result<Self, InvalidEvent> {
        if let Some(kind) = value.get("kind").and_then(Value::as_str) {
            let name = match kind {
                "status-update" => "statusUpdate",
                "artifact-update" => "artifactUpdate",
                kind => kind,
            };
            let name = name.to_owned();
            value = json!({ name: value });
        }
        serde_json::from_value(value).map_err(|error| InvalidEvent(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(value: Value) -> String {
        match TaskEvent::of_value(value) {
            Ok(TaskEvent::Task(task)) => {
                format!("task {} {}: {}", task.id, task.status.state.word(), task.to_text())
            }
            Ok(TaskEvent::Message(message)) => format!("message: {}", message.to_text()),
            Ok(TaskEvent::StatusUpdate(update)) => format!("status {}", update.status.state.word()),
            Ok(TaskEvent::ArtifactUpdate(update)) => {
                format!("artifact {} {}", parts_text(&update.artifact.parts), update.append)
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn events_of_both_versions_are_read() {
        let check = |value: Value, expected: &str| assert_eq!(event(value), expected);
        let text = |text: &str| json!({"text": text});
        check(json!({"task": {"id": "1", "status": {"state": "TASK_STATE_WORKING"}}}), "task 1 working: ");
        check(
            json!({"task": {"id": "1", "status": {"state": "TASK_STATE_COMPLETED", "message": {"parts": [text("done")]}},
                "artifacts": [{"parts": [text("a"), text("b")]}, {"parts": [text("c")]}]}}),
            "task 1 completed: a\nb\n\nc",
        );
        check(
            json!({"task": {"id": "1", "status": {"state": "TASK_STATE_FAILED", "message": {"parts": [text("no")]}},
                "artifacts": [{"parts": [text("a")]}]}}),
            "task 1 failed: no\n\na",
        );
        check(
            json!({"kind": "task", "id": "1", "status": {"state": "input-required", "message":
                {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "which?"}]}}}),
            "task 1 input-required: which?",
        );
        check(json!({"message": {"role": "ROLE_AGENT", "parts": [text("hi")]}}), "message: hi");
        check(json!({"kind": "message", "role": "agent", "parts": [text("hi")]}), "message: hi");
        check(
            json!({"statusUpdate": {"status": {"state": "TASK_STATE_AUTH_REQUIRED"}}}),
            "status auth-required",
        );
        check(
            json!({"kind": "status-update", "status": {"state": "submitted"}, "final": false}),
            "status submitted",
        );
        check(json!({"statusUpdate": {"status": {"state": "TASK_STATE_NEW"}}}), "status unknown");
        check(
            json!({"artifactUpdate": {"artifact": {"parts": [text("a")]}, "append": true}}),
            "artifact a true",
        );
        check(json!({"kind": "artifact-update", "artifact": {"parts": [text("a")]}}), "artifact a false");
    }

    #[test]
    fn other_values_are_no_events() {
        for value in [
            json!(null),
            json!({}),
            json!({"kind": "x"}),
            json!({"task": {}}),
            json!({"task": 1, "message": 2}),
        ] {
            let problem = event(value);
            assert!(problem.starts_with("expected a task, a message or an update"), "{problem}");
        }
    }
}
