//! Texts that models read.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolyard_core::timestamp::iso_8601;

use crate::record::{SubagentRecord, SubagentState};
use crate::subagents::{Cancellation, StartedSubagent};

/// Reason of a subagent that was cancelled.
pub(crate) const CANCELLED: &str = "the subagent was cancelled";

/// Reason of a subagent whose gateway has ended.
pub(crate) const LOST: &str = "the gateway that ran the subagent has ended";

/// Returns the instructions of a subagent.
pub(crate) fn instructions(id: &str) -> String {
    format!(
        "You are a subagent that works on one task on behalf of another agent, without any further questions. Use your \
        tools until the task is done. Report what you have reached with report_progress before long steps. Keep \
        intermediate results that are long in working memory under keys that begin with `subagent/{id}/`, if you have \
        tools for it. Your last message, which requests no tool, is the result that the other agent reads: state what \
        you found or did, and what you could not do and why."
    )
}

/// Returns the first message to a subagent.
pub(crate) fn task(description: &str, context: Option<&str>) -> String {
    match context.map(str::trim).filter(|context| !context.is_empty()) {
        Some(context) => format!("{}\n\n# Context\n\n{context}", description.trim()),
        None => description.trim().to_owned(),
    }
}

/// Returns the reason of a subagent whose time is over.
pub(crate) fn timed_out(timeout: Duration) -> String {
    format!("the subagent did not end within {}", minutes(timeout))
}

pub(crate) fn started(started: &StartedSubagent) -> String {
    let StartedSubagent { id, timeout, has_memory } = started;
    let memory = match has_memory {
        true => format!(", and in working memory under `subagent/{id}/result` for 60 minutes"),
        false => String::new(),
    };
    format!(
        "Started subagent {id}. It has {}. Continue with other work: list_subagents shows its progress, and its result will \
        be in the resource toolyard://subagents/{id}{memory}.",
        minutes(*timeout)
    )
}

pub(crate) fn cancelled(id: &str, cancellation: Cancellation) -> String {
    match cancellation {
        Cancellation::Done => format!("Cancelled subagent {id}."),
        Cancellation::Requested => format!("Requested the end of subagent {id}, which another gateway runs."),
        Cancellation::NotRunning => format!("There is no running subagent {id}. list_subagents shows all."),
    }
}

/// Returns the list of the subagents of an owner.
pub(crate) fn list(records: &[SubagentRecord]) -> String {
    if records.is_empty() {
        return "There are no subagents.".to_owned();
    }
    let mut text = String::new();
    for record in records {
        let state = record.state;
        let started = iso_8601(SystemTime::UNIX_EPOCH + Duration::from_millis(record.started));
        // Writing into a text cannot fail.
        let _ =
            writeln!(text, "- {} {} since {started}: {}", record.id, word(state), line(&record.description));
        if let (SubagentState::Running, Some(progress)) = (state, &record.progress) {
            let _ = writeln!(text, "  Progress: {}", line(progress));
        }
        if let Some(reason) = reason(record) {
            let _ = writeln!(text, "  Reason: {}", line(reason));
        }
        if state == SubagentState::Succeeded {
            let _ = writeln!(text, "  Result: toolyard://subagents/{}", record.id);
        }
    }
    text
}

/// Returns one subagent with its result.
pub(crate) fn details(record: &SubagentRecord) -> String {
    let mut text = list(std::slice::from_ref(record));
    if let Some(result) = &record.result {
        let json = serde_json::to_string_pretty(result).unwrap_or_default();
        let _ = write!(text, "\n```json\n{json}\n```\n");
    }
    text
}

/// Returns the reason why a subagent has ended without a result.
pub(crate) fn reason(record: &SubagentRecord) -> Option<&str> {
    record.result.as_ref()?.error.as_deref()
}

const fn word(state: SubagentState) -> &'static str {
    match state {
        SubagentState::Running => "is running",
        SubagentState::Succeeded => "has succeeded, started",
        SubagentState::Failed => "has failed, started",
        SubagentState::Cancelled => "was cancelled, started",
        SubagentState::TimedOut => "has timed out, started",
    }
}

pub(crate) fn written(key: &str) -> String {
    format!("Wrote `{}`.", line(key))
}

pub(crate) fn no_key(key: &str) -> String {
    format!("The whiteboard has no `{}`. whiteboard_list shows its keys.", line(key))
}

pub(crate) fn deleted(key: &str, is_removed: bool) -> String {
    if is_removed { format!("Deleted `{}`.", line(key)) } else { no_key(key) }
}

pub(crate) fn board_list(entries: &[(String, String)]) -> String {
    if entries.is_empty() {
        return "The whiteboard is empty.".to_owned();
    }
    entries.iter().map(|(key, preview)| format!("- {key}: {preview}\n")).collect()
}

/// Returns a value of a whiteboard: a text as it is, and anything else as JSON.
pub(crate) fn board_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        60 => "1 minute".to_owned(),
        seconds if seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    }
}

/// Returns a text in one line.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
