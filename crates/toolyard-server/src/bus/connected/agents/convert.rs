//! Records of the bus as messages of A2A, and the other way.

use serde_json::{Value, json};
use toolyard_a2a::bus::{AgentAnnouncement, BusTask};
use toolyard_a2a::client::error::AgentError;
use toolyard_a2a::wire::card::AgentCard;
use toolyard_a2a::wire::message::{Message, Part, parts_text};
use toolyard_a2a::wire::task::{Artifact, StatusUpdate, Task, TaskEvent, TaskState, TaskStatus};
use toolyard_bus::agents::AgentAnswer;
use toolyard_bus::agents::record::{
    AgentArtifact, AgentMessage, AgentMessagePart, AgentTaskRequest, AgentTaskResult, AgentTaskState,
    AnnouncedCard, AnnouncedSkill,
};
use toolyard_manifest::A2aSettings;

/// Kinds of parts.
const TEXT: &str = "text";
const DATA: &str = "data";

/// Name of the artifact with what a message cannot contain.
const RESULT: &str = "result";

/// Returns an announcement as others read it; `None` if its card has no usable name.
pub(super) fn announcement(card: AnnouncedCard) -> Option<AgentAnnouncement> {
    let is_leaving = card.is_deregistering;
    let AnnouncedCard { agent_name, description, version, skills, .. } = card;
    let skills = skills.into_iter().map(|skill| {
        let AnnouncedSkill { id, name, description, tags, examples } = skill;
        json!({"id": id, "name": name, "description": description, "tags": tags, "examples": examples})
    });
    let card = json!({
        "name": agent_name, "description": description, "version": version,
        "skills": skills.collect::<Vec<_>>(),
    });
    match AgentCard::of_value(card) {
        Ok(card) => Some(AgentAnnouncement { card, is_leaving }),
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "dropped the announcement of an agent");
            None
        }
    }
}

/// Returns the announcement of the gateway.
pub(super) fn announced(settings: &A2aSettings) -> AnnouncedCard {
    let skills = settings.skills.iter().map(|skill| AnnouncedSkill {
        id: skill.id().to_owned(),
        name: skill.name.clone().unwrap_or_else(|| skill.id().to_owned()),
        description: Some(skill.description.clone()),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
    });
    AnnouncedCard {
        agent_name: settings.name.clone(),
        description: Some(settings.description.clone()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        skills: skills.collect(),
        is_deregistering: false,
    }
}

/// Returns the message with a task.
pub(super) fn request(task: BusTask) -> AgentTaskRequest {
    let BusTask { id, skill, message, .. } = task;
    AgentTaskRequest { task_id: id, context_id: None, skill, message: AgentMessage::of_text("user", message) }
}

/// Returns the event of a message about a task.
pub(super) fn event(answer: AgentAnswer) -> Result<TaskEvent, AgentError> {
    match answer {
        AgentAnswer::Status(update) => Ok(TaskEvent::StatusUpdate(StatusUpdate {
            task_id: update.task_id,
            context_id: update.context_id.unwrap_or_default(),
            status: status(update.state, update.message),
        })),
        AgentAnswer::Result(result) => {
            let AgentTaskResult { task_id, context_id, state, artifacts, message } = result;
            let artifacts = artifacts.into_iter().enumerate().map(|(at, artifact)| Artifact {
                artifact_id: format!("{at}"),
                name: artifact.name,
                parts: artifact.parts.into_iter().map(part).collect(),
            });
            // Agents on the bus write the result into the message.
            let (message, result) = match state {
                AgentTaskState::Completed => (None, message),
                _ => (message, None),
            };
            let result = result.map(|message| Artifact {
                artifact_id: "message".to_owned(),
                parts: message.parts.into_iter().map(part).collect(),
                ..Artifact::default()
            });
            Ok(TaskEvent::Task(Task {
                id: task_id,
                context_id: context_id.unwrap_or_default(),
                status: status(state, message),
                artifacts: result.into_iter().chain(artifacts).collect(),
                ..Task::default()
            }))
        }
        AgentAnswer::Error(error) => {
            Err(AgentError::RefusedTask { code: error.code, message: error.message })
        }
    }
}

/// Returns true for an event that another one follows.
pub(super) const fn is_progress(event: &TaskEvent) -> bool {
    matches!(event, TaskEvent::StatusUpdate(_))
}

/// Returns the message of a task of an agent on the bus.
pub(super) fn message(request: &AgentTaskRequest) -> Message {
    let parts = request.message.parts.iter().cloned().map(part).collect();
    let mut message = Message { parts, ..Message::of_user(request.task_id.clone(), "") };
    message.context_id = request.context_id.clone().unwrap_or_default();
    let skill = request.skill.trim();
    if !skill.is_empty() {
        message.metadata.insert("skill".to_owned(), skill.into());
    }
    message
}

/// Returns the end of a task as agents on the bus read it: its texts are the message, and its other parts an artifact.
pub(super) fn result(request: &AgentTaskRequest, task: Task) -> AgentTaskResult {
    let state = match task.status.state {
        TaskState::Completed => AgentTaskState::Completed,
        TaskState::Canceled => AgentTaskState::Canceled,
        _ => AgentTaskState::Failed,
    };
    let text = match state {
        AgentTaskState::Completed => None,
        _ => Some(task.to_text()),
    };
    let parts = task.artifacts.into_iter().flat_map(|artifact| artifact.parts);
    let (texts, others): (Vec<_>, Vec<_>) = parts.partition(|part| part.text.is_some());
    let text = text.unwrap_or_else(|| parts_text(&texts));
    let others: Vec<_> = others.into_iter().map(record_part).collect();
    let artifact = AgentArtifact { name: RESULT.to_owned(), description: None, parts: others };
    AgentTaskResult {
        task_id: request.task_id.clone(),
        context_id: request.context_id.clone(),
        state,
        artifacts: [artifact].into_iter().filter(|artifact| !artifact.parts.is_empty()).collect(),
        message: (!text.is_empty()).then(|| AgentMessage::of_text("agent", text)),
    }
}

fn status(state: AgentTaskState, message: Option<AgentMessage>) -> TaskStatus {
    let state = match state {
        AgentTaskState::Submitted => TaskState::Submitted,
        AgentTaskState::Working => TaskState::Working,
        AgentTaskState::InputRequired => TaskState::InputRequired,
        AgentTaskState::Completed => TaskState::Completed,
        AgentTaskState::Failed => TaskState::Failed,
        AgentTaskState::Canceled => TaskState::Canceled,
    };
    let message = message.map(|message| Message {
        parts: message.parts.into_iter().map(part).collect(),
        ..Message::of_agent(String::new(), "")
    });
    TaskStatus { state, message, timestamp: None }
}

fn part(record: AgentMessagePart) -> Part {
    let AgentMessagePart { kind, text, data, mime_type } = record;
    let media_type = mime_type.unwrap_or_default();
    match (text, data) {
        (Some(text), None) => Part { media_type, ..Part::of_text(text) },
        (_, Some(data)) if kind.eq_ignore_ascii_case(DATA) => {
            let value = serde_json::from_str(&data).unwrap_or(Value::String(data));
            Part { media_type, ..Part::of_data(value) }
        }
        (_, data) => Part { raw: data, media_type, ..Part::default() },
    }
}

fn record_part(part: Part) -> AgentMessagePart {
    let mime_type = (!part.media_type.is_empty()).then(|| part.media_type.clone());
    match (part.data, part.raw) {
        (Some(data), _) => AgentMessagePart {
            kind: DATA.to_owned(),
            data: Some(data.to_string()),
            mime_type,
            ..AgentMessagePart::default()
        },
        (None, Some(raw)) => AgentMessagePart {
            kind: "file".to_owned(),
            data: Some(raw),
            mime_type,
            ..AgentMessagePart::default()
        },
        (None, None) => AgentMessagePart {
            kind: TEXT.to_owned(),
            text: part.url,
            mime_type,
            ..AgentMessagePart::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(parts: &Value) -> Task {
        let artifact = json!({"artifactId": "result", "parts": parts});
        let task = json!({"id": "1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]});
        serde_json::from_value(task).expect("a task")
    }

    /// Returns a result as its receiver reads it.
    fn told(task: Task) -> String {
        let request = AgentTaskRequest { task_id: "t".to_owned(), ..AgentTaskRequest::default() };
        let record = result(&request, task);
        let parts = record.artifacts.iter().flat_map(|artifact| &artifact.parts);
        let kinds: Vec<_> = parts.map(|part| part.kind.clone()).collect();
        match event(AgentAnswer::Result(record)) {
            Ok(TaskEvent::Task(task)) => {
                format!("{} {}: {} {kinds:?}", task.id, task.status.state.word(), task.to_text())
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn results_cross_the_bus() {
        let check = |task: Task, expected: &str| assert_eq!(told(task), expected);
        check(completed(&json!([{"text": "a"}, {"text": "b"}])), "t completed: a\nb []");
        check(
            completed(&json!([{"text": "a"}, {"data": {"n": 1}}])),
            "t completed: a\n\n{\"n\":1} [\"data\"]",
        );
        check(
            completed(&json!([{"raw": "AAAA", "mediaType": "image/png"}])),
            "t completed: [file image/png] [\"file\"]",
        );
        check(completed(&json!([])), "t completed:  []");
        let message = json!({"parts": [{"text": "It broke."}]});
        let failed = json!({"id": "1", "status": {"state": "TASK_STATE_FAILED", "message": message}});
        check(serde_json::from_value(failed).expect("a task"), "t failed: It broke. []");
    }

    #[test]
    fn messages_of_the_bus_have_skill_and_parts() {
        let data = AgentMessagePart {
            kind: DATA.to_owned(),
            data: Some("{\"n\":1}".to_owned()),
            ..AgentMessagePart::default()
        };
        let parts = vec![AgentMessagePart::of_text("hi"), data];
        let request = AgentTaskRequest {
            task_id: "t".to_owned(),
            context_id: Some("c".to_owned()),
            skill: " echo ".to_owned(),
            message: AgentMessage { role: "user".to_owned(), parts },
        };
        let message = serde_json::to_value(message(&request)).expect("JSON");
        let expected = json!({
            "messageId": "t", "contextId": "c", "role": "ROLE_USER", "metadata": {"skill": "echo"},
            "parts": [{"text": "hi"}, {"data": {"n": 1}}],
        });
        assert_eq!(message, expected);
    }
}
