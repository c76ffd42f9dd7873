//! A task of an agent as a task of its MCP client (SEP-2663).

use std::time::{Duration, UNIX_EPOCH};

use toolyard_core::{CallOutput, Json, TaskDescription, TaskStatus};
use toolyard_manifest::AgentSettings;

use crate::tasks::AgentTask;
use crate::texts;
use crate::wire::task::TaskState;

/// Returns the description of a task under these settings.
pub(crate) fn describe<'a>(task: &'a AgentTask, settings: &AgentSettings) -> TaskDescription<'a> {
    let time = |milliseconds: u64| UNIX_EPOCH + Duration::from_millis(milliseconds);
    let status = match (task.ended, task.state) {
        (None, _) => TaskStatus::Working,
        (Some(_), TaskState::Canceled) => TaskStatus::Cancelled,
        (Some(_), _) => TaskStatus::Completed(result(task)),
    };
    TaskDescription {
        id: &task.id,
        status,
        message: task.ended.is_none().then(|| task.state.word()),
        created: time(task.started),
        changed: time(task.ended.unwrap_or(task.started)),
        // It is known for longer, unless its owner starts many others.
        ttl: settings.result_ttl,
        poll_interval: settings.poll,
    }
}

/// Returns the result of the call that has started the task.
fn result(task: &AgentTask) -> Json {
    let text = texts::task_answer(task);
    let output = match task.state {
        TaskState::Completed => CallOutput::text(&text),
        _ => CallOutput::failure(&text),
    };
    output.body.with("resultType", Json::string("complete")).to_json()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn task_of_an_agent_is_a_task_with_its_state() {
        let task = |state: TaskState, text: &str| AgentTask {
            id: "5f2d".to_owned(),
            agent: "Helper".to_owned(),
            skill: "echo".to_owned(),
            state,
            started: 1_000,
            ends_by: 9_000,
            ended: state.is_at_rest().then_some(5_000),
            text: text.to_owned(),
            result_key: Some("key/k1/r".to_owned()),
        };
        let lines = [
            task(TaskState::Submitted, ""),
            task(TaskState::Working, ""),
            task(TaskState::Completed, "Done."),
            task(TaskState::Completed, "Begun\n[cut]"),
            task(TaskState::InputRequired, "Which one?"),
            task(TaskState::Rejected, "Not my job."),
            task(TaskState::Failed, "It broke."),
            task(TaskState::Canceled, "It was cancelled."),
        ]
        .map(|task| describe(&task, &AgentSettings::default()).to_object().to_json().as_text().to_owned());
        assert_snapshot!(lines.join("\n"), @r#"
        {"resultType":"complete","taskId":"5f2d","status":"working","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:01.000Z","ttlMs":3600000,"pollIntervalMs":2000,"statusMessage":"submitted"}
        {"resultType":"complete","taskId":"5f2d","status":"working","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:01.000Z","ttlMs":3600000,"pollIntervalMs":2000,"statusMessage":"working"}
        {"resultType":"complete","taskId":"5f2d","status":"completed","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"Done."}],"resultType":"complete"}}
        {"resultType":"complete","taskId":"5f2d","status":"completed","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"Begun\n[cut]\n\nThe whole result is in working memory under the key `key/k1/r`."}],"resultType":"complete"}}
        {"resultType":"complete","taskId":"5f2d","status":"completed","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"Which one?"}],"isError":true,"resultType":"complete"}}
        {"resultType":"complete","taskId":"5f2d","status":"completed","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"Not my job."}],"isError":true,"resultType":"complete"}}
        {"resultType":"complete","taskId":"5f2d","status":"completed","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000,"result":{"content":[{"type":"text","text":"It broke."}],"isError":true,"resultType":"complete"}}
        {"resultType":"complete","taskId":"5f2d","status":"cancelled","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":3600000,"pollIntervalMs":2000}
        "#);
    }
}
