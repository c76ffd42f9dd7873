//! The messages of agents. RockBot writes the states of tasks as numbers.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::record::members::{BadRecord, RecordMembers};

/// The announcement of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AnnouncedCard {
    /// Name of the agent.
    pub agent_name: String,
    /// Purpose of the agent.
    pub description: Option<String>,
    /// Version of the agent.
    pub version: Option<String>,
    /// Abilities of the agent.
    pub skills: Vec<AnnouncedSkill>,
    /// True if the agent is stopping.
    pub is_deregistering: bool,
}

/// An ability of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AnnouncedSkill {
    /// Id of the skill.
    pub id: String,
    /// Name of the skill.
    pub name: String,
    /// Purpose of the skill.
    pub description: Option<String>,
    /// Keywords.
    pub tags: Vec<String>,
    /// Example messages.
    pub examples: Vec<String>,
}

/// A task for an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentTaskRequest {
    /// Id of the task, which its caller has chosen.
    pub task_id: String,
    /// Conversation that the task belongs to.
    pub context_id: Option<String>,
    /// Id of the skill.
    pub skill: String,
    /// The message.
    pub message: AgentMessage,
}

/// A message to an agent, or from one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentMessage {
    /// `user` or `agent`.
    pub role: String,
    /// Content.
    pub parts: Vec<AgentMessagePart>,
}

/// A part of a message or of an artifact.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentMessagePart {
    /// Kind, such as `text` or `data`.
    pub kind: String,
    /// Text.
    pub text: Option<String>,
    /// Data as text, such as that of a JSON value.
    pub data: Option<String>,
    /// Media type of the data.
    pub mime_type: Option<String>,
}

/// The end of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentTaskResult {
    /// Id of the task.
    pub task_id: String,
    /// Conversation that the task belongs to.
    pub context_id: Option<String>,
    /// State of the task.
    pub state: AgentTaskState,
    /// Results beside the message.
    pub artifacts: Vec<AgentArtifact>,
    /// Result, or the reason of a failure.
    pub message: Option<AgentMessage>,
}

/// A result of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentArtifact {
    /// Name.
    pub name: String,
    /// Purpose.
    pub description: Option<String>,
    /// Content.
    pub parts: Vec<AgentMessagePart>,
}

/// The state of a running task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentTaskStatusUpdate {
    /// Id of the task.
    pub task_id: String,
    /// Conversation that the task belongs to.
    pub context_id: Option<String>,
    /// State of the task.
    pub state: AgentTaskState,
    /// Progress.
    pub message: Option<AgentMessage>,
}

/// A task that was not run, or has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentTaskError {
    /// Id of the task.
    pub task_id: String,
    /// Conversation that the task belongs to.
    pub context_id: Option<String>,
    /// One of [`codes`].
    pub code: String,
    /// Message.
    pub message: String,
    /// True if the task can be sent again.
    pub is_retryable: bool,
}

/// A request to stop a running task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct AgentTaskCancelRequest {
    /// Id of the task.
    pub task_id: String,
    /// Conversation that the task belongs to.
    pub context_id: Option<String>,
}

/// Codes of [`AgentTaskError`].
pub mod codes {
    /// There is no such task.
    pub const TASK_NOT_FOUND: &str = "task_not_found";
    /// The task cannot be cancelled.
    pub const TASK_NOT_CANCELABLE: &str = "task_not_cancelable";
    /// The agent does not have the skill.
    pub const SKILL_NOT_SUPPORTED: &str = "skill_not_supported";
    /// The task has failed.
    pub const EXECUTION_FAILED: &str = "execution_failed";
    /// The message is invalid.
    pub const INVALID_REQUEST: &str = "invalid_request";
}

/// State of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentTaskState {
    /// The agent has accepted it.
    #[default]
    Submitted,
    /// The agent works on it.
    Working,
    /// The agent waits for another message.
    InputRequired,
    /// It has succeeded.
    Completed,
    /// It has failed.
    Failed,
    /// It was cancelled.
    Canceled,
}

/// The states by their numbers, with their names.
const STATES: [(AgentTaskState, &str); 6] = [
    (AgentTaskState::Submitted, "Submitted"),
    (AgentTaskState::Working, "Working"),
    (AgentTaskState::InputRequired, "InputRequired"),
    (AgentTaskState::Completed, "Completed"),
    (AgentTaskState::Failed, "Failed"),
    (AgentTaskState::Canceled, "Canceled"),
];

impl AgentTaskState {
    fn read(members: &mut RecordMembers) -> Result<Self, BadRecord> {
        let names = STATES.map(|(_, name)| name);
        Ok(members.one_of("state", &names)?.map(|at| STATES[at].0).unwrap_or_default())
    }
}

impl Serialize for AgentTaskState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = STATES.iter().position(|(state, _)| state == self).unwrap_or_default();
        serializer.serialize_u64(u64::try_from(number).unwrap_or_default())
    }
}

impl AgentMessage {
    /// Returns a message with this text.
    #[must_use]
    pub fn of_text(role: &str, text: impl Into<String>) -> Self {
        Self { role: role.to_owned(), parts: vec![AgentMessagePart::of_text(text)] }
    }
}

impl AgentMessagePart {
    /// Returns a part with this text.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { kind: "text".to_owned(), text: Some(text.into()), ..Self::default() }
    }
}

/// Shows the kind. The content may be secret.
impl fmt::Debug for AgentMessagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentMessagePart").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl TryFrom<RecordMembers> for AnnouncedCard {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            agent_name: members.text("agentName")?,
            description: members.optional("description")?,
            version: members.optional("version")?,
            skills: members.records("skills")?,
            is_deregistering: members.flag("isDeregistering")?,
        })
    }
}

impl TryFrom<RecordMembers> for AnnouncedSkill {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            id: members.text("id")?,
            name: members.text_or_empty("name")?,
            description: members.optional("description")?,
            tags: members.texts("tags")?,
            examples: members.texts("examples")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentTaskRequest {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            task_id: members.text("taskId")?,
            context_id: members.optional("contextId")?,
            skill: members.text_or_empty("skill")?,
            message: members.record("message")?.ok_or(BadRecord::Missing("message"))?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentMessage {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self { role: members.text_or_empty("role")?, parts: members.records("parts")? })
    }
}

impl TryFrom<RecordMembers> for AgentMessagePart {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            kind: members.text_or_empty("kind")?,
            text: members.optional("text")?,
            data: members.optional("data")?,
            mime_type: members.optional("mimeType")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentTaskResult {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            task_id: members.text("taskId")?,
            context_id: members.optional("contextId")?,
            state: AgentTaskState::read(&mut members)?,
            artifacts: members.records("artifacts")?,
            message: members.record("message")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentArtifact {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            name: members.text_or_empty("name")?,
            description: members.optional("description")?,
            parts: members.records("parts")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentTaskStatusUpdate {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            task_id: members.text("taskId")?,
            context_id: members.optional("contextId")?,
            state: AgentTaskState::read(&mut members)?,
            message: members.record("message")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentTaskError {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            task_id: members.text("taskId")?,
            context_id: members.optional("contextId")?,
            code: members.text_or_empty("code")?,
            message: members.text_or_empty("message")?,
            is_retryable: members.flag("isRetryable")?,
        })
    }
}

impl TryFrom<RecordMembers> for AgentTaskCancelRequest {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self { task_id: members.text("taskId")?, context_id: members.optional("contextId")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::BusError;
    use crate::envelope::Envelope;

    #[test]
    fn states_are_numbers_or_names() -> Result<(), BusError> {
        let update = |state: &str| {
            let body = format!(r#"{{"TaskId": "t", "State": {state}, "message": null}}"#);
            let envelope =
                Envelope::with_body("RockBot.A2A.AgentTaskStatusUpdate", body.into_bytes().into(), "a")?;
            Ok::<_, BusError>(envelope.read::<AgentTaskStatusUpdate>().map(|update| update.state))
        };
        assert_eq!(update("3")?, Ok(AgentTaskState::Completed));
        assert_eq!(update(r#""inputrequired""#)?, Ok(AgentTaskState::InputRequired));
        assert_eq!(update("null")?, Ok(AgentTaskState::Submitted));
        for unknown in ["6", "-1", r#""Lost""#, "1.5", "[]"] {
            let problem = update(unknown)?.map_err(|problem| problem.to_string());
            assert!(
                problem.is_err_and(|problem| problem.contains("`state` has an unknown value")),
                "{unknown}"
            );
        }
        Ok(())
    }

    #[test]
    fn messages_are_written_as_rockbot_writes_them() {
        let request = AgentTaskRequest {
            task_id: "t".to_owned(),
            context_id: None,
            skill: "echo".to_owned(),
            message: AgentMessage::of_text("user", "hi"),
        };
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(
            text,
            r#"{"taskId":"t","contextId":null,"skill":"echo","message":{"role":"user","parts":[{"kind":"text","text":"hi","data":null,"mimeType":null}]}}"#
        );
        let result = AgentTaskResult { state: AgentTaskState::Canceled, ..AgentTaskResult::default() };
        let text = serde_json::to_string(&result).expect("JSON");
        assert_eq!(text, r#"{"taskId":"","contextId":null,"state":5,"artifacts":[],"message":null}"#);
    }
}
