//! A subagent as a task of its client (SEP-2663).

use std::time::{Duration, SystemTime};

use toolyard_core::{Call, CallOutput, Json, Object, TaskDescription, TaskStatus};

use super::Subagents;
use crate::record::{LIFETIME, SubagentOwner, SubagentRecord, SubagentState};
use crate::texts;

/// Interval at which a client is told to poll.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Subagents {
    /// Returns true if a subagent that this call starts is the task of the call.
    pub(crate) fn are_tasks_for(&self, call: &Call) -> bool {
        self.parts.deps.model.needs_task(call)
    }

    /// Returns the requests of a subagent for the model of its client.
    pub(crate) fn open_requests(&self, owner: &SubagentOwner, id: &str) -> Option<Object> {
        let running = self.parts.running();
        running.get(&(owner.clone(), id.to_owned()))?.questions.as_ref()?.requests()
    }

    /// Passes answers of the client's model on to a subagent. One that has ended ignores them.
    pub(crate) fn answer(&self, owner: &SubagentOwner, id: &str, answers: &Object) {
        let running = self.parts.running();
        let entry = running.get(&(owner.clone(), id.to_owned()));
        if let Some(questions) = entry.and_then(|entry| entry.questions.as_ref()) {
            questions.answer(answers);
        }
    }
}

/// Returns the task of a subagent with its open requests.
pub(crate) fn describe(record: &SubagentRecord, requests: Option<Object>) -> TaskDescription<'_> {
    let time = |milliseconds: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
    let state = record.state;
    let status = match (state, requests) {
        (SubagentState::Running, Some(requests)) => TaskStatus::InputRequired(requests.to_json()),
        (SubagentState::Running, None) => TaskStatus::Working,
        (SubagentState::Cancelled, _) => TaskStatus::Cancelled,
        (SubagentState::Succeeded | SubagentState::Failed | SubagentState::TimedOut, _) => {
            TaskStatus::Completed(result(record))
        }
    };
    TaskDescription {
        id: &record.id,
        status,
        message: record.progress.as_deref().filter(|_| state == SubagentState::Running),
        created: time(record.started),
        changed: time(record.changed),
        ttl: LIFETIME,
        poll_interval: POLL_INTERVAL,
    }
}

/// Returns the result of the call that started a subagent.
fn result(record: &SubagentRecord) -> Json {
    let output = record.result.as_ref().map(|result| &*result.output).unwrap_or_default();
    let output = match texts::reason(record) {
        None => CallOutput::text(output),
        Some(reason) => {
            let id = &record.id;
            CallOutput::failure(&format!("The subagent {id} ended without a result: {reason}"))
        }
    };
    output.body.with("resultType", Json::string("complete")).to_json()
}

#[cfg(test)]
mod tests;
