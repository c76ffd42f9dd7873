//! Announcements of workers: their state regularly, and their tools at the start, after each change and on request.
//!
//! The types are not RockBot's. A catalog may exceed the limit of a message, so that its tools come in parts. Every
//! program with the right to write to the topic can announce tools: a receiver limits the number and the size of those that
//! it keeps, and calls go to the topic of a group, never to one that a message names.

use serde::{Deserialize, Serialize};

use crate::record::members::{BadRecord, RecordMembers};

/// The state of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct WorkerState {
    /// Id of the worker, new with each start.
    pub worker_id: String,
    /// Name of its group.
    pub group: String,
    /// Number of the changes of its tools, which [`WorkerTools`] repeats.
    pub revision: i64,
    /// Number of messages that its tools take.
    pub parts: i64,
    /// Time until its next announcement, in milliseconds.
    pub interval_ms: i64,
    /// A [`WorkerPhase`].
    pub phase: String,
}

/// The phase of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerPhase {
    /// It takes calls.
    Serving,
    /// It takes no further calls, and finishes those that run.
    Stopping,
    /// It has ended.
    Stopped,
}

/// A part of the tools of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct WorkerTools {
    /// Id of the worker.
    pub worker_id: String,
    /// Number of the changes of its tools.
    pub revision: i64,
    /// Number of the part, from 0.
    pub part: i64,
    /// Definitions of tools as MCP has them, each the text of a JSON object.
    pub tools: Vec<String>,
}

/// A request to all workers to announce themselves with their tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct WorkerQuery {
    /// Id of the only worker that is asked. `None`: all workers.
    pub worker_id: Option<String>,
}

impl WorkerPhase {
    /// Returns the word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// Reads the word. A worker in a phase of a later version takes no calls.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "serving" => Self::Serving,
            "stopped" => Self::Stopped,
            _ => Self::Stopping,
        }
    }
}

/// Divides definitions into messages of at most this size. A definition that is larger is left out, and counted.
#[must_use]
pub fn divide(tools: &[String], max_bytes: usize) -> (Vec<Vec<String>>, usize) {
    let (mut parts, mut part, mut bytes, mut left_out) = (Vec::new(), Vec::new(), 0, 0);
    for tool in tools {
        // As JSON writes it, with quotes and a comma.
        let size = serde_json::to_string(tool).map_or(usize::MAX, |text| text.len() + 1);
        if size > max_bytes {
            left_out += 1;
            continue;
        }
        if bytes + size > max_bytes {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += size;
        part.push(tool.clone());
    }
    // At least one, so that a worker without tools is complete.
    parts.push(part);
    (parts, left_out)
}

impl TryFrom<RecordMembers> for WorkerState {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            worker_id: members.text("workerId")?,
            group: members.text("group")?,
            revision: members.number("revision")?,
            parts: members.number("parts")?,
            interval_ms: members.number("intervalMs")?,
            phase: members.text("phase")?,
        })
    }
}

impl TryFrom<RecordMembers> for WorkerTools {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            worker_id: members.text("workerId")?,
            revision: members.number("revision")?,
            part: members.number("part")?,
            tools: members.texts("tools")?,
        })
    }
}

impl TryFrom<RecordMembers> for WorkerQuery {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self { worker_id: members.optional("workerId")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_divided_by_their_size_on_the_wire() {
        #[track_caller]
        fn check(tools: &[&str], max_bytes: usize, expected: &[&[&str]], expected_left_out: usize) {
            let tools: Vec<_> = tools.iter().map(|&tool| tool.to_owned()).collect();
            let (parts, left_out) = divide(&tools, max_bytes);
            assert_eq!(
                (parts, left_out),
                (
                    expected.iter().map(|part| part.iter().map(|&tool| tool.to_owned()).collect()).collect(),
                    expected_left_out
                ),
                "{tools:?}"
            );
        }
        check(&[], 10, &[&[]], 0);
        check(&["aa", "bb"], 10, &[&["aa", "bb"]], 0);
        check(&["aa", "bb", "cc"], 10, &[&["aa", "bb"], &["cc"]], 0);
        check(&["aa", "a longer one", "bb"], 10, &[&["aa", "bb"]], 1);
        check(&["\"\"\"", "b"], 10, &[&["\"\"\""], &["b"]], 0);
    }

    #[test]
    fn phase_of_a_later_version_takes_no_calls() {
        for phase in [WorkerPhase::Serving, WorkerPhase::Stopping, WorkerPhase::Stopped] {
            assert_eq!(WorkerPhase::parse(phase.as_str()), phase);
        }
        assert_eq!(WorkerPhase::parse("paused"), WorkerPhase::Stopping);
    }
}
