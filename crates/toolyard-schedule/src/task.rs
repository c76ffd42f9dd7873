//! Tasks and runs as stored. Times are in milliseconds since 1970.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolyard_core::Caller;

/// Maximum length of a name in characters.
pub const MAX_NAME_LENGTH: usize = 100;

/// Prefix of the owner of a key.
const KEY: &str = "key/";

/// Owner of tasks: a key, or all callers without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduleOwner(String);

impl ScheduleOwner {
    /// Returns the owner of the tasks of a caller.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self(caller.principal.as_ref().map_or_else(|| "keyless".to_owned(), |id| format!("{KEY}{id}")))
    }

    pub(crate) const fn from_stored(key: String) -> Self {
        Self(key)
    }

    /// Returns the id of the key; `None` for callers without one.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.0.strip_prefix(KEY)
    }

    /// Returns the key in the store.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A scheduled task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledTask {
    /// Id, which a task that replaces this one does not share.
    pub id: String,
    /// Name as given, with single spaces. Names that differ only in case are equal.
    pub name: String,
    /// Cron expression.
    pub cron: String,
    /// Instruction for the time of the run.
    pub description: String,
    /// `true` for a task that is removed after it has fired.
    #[serde(default)]
    pub run_once: bool,
    /// Time at which it was scheduled.
    pub created_at: i64,
    /// Next run. `None` while the only run is running.
    pub next_at: Option<i64>,
    /// Name of the time zone in which the next run was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The run that a gateway has claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<ClaimedRun>,
    /// The last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// A run that a gateway has claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedRun {
    /// Id of the run, which names its lease.
    pub id: String,
    /// Time at which it was due.
    pub due: i64,
}

/// Outcome of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// Time at which it was due.
    pub due: i64,
    /// Outcome.
    pub outcome: TaskRunOutcome,
}

/// A run in the history of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRun {
    /// Name of the task.
    pub task: String,
    /// Time at which it was due.
    pub due: i64,
    /// Time at which it ended.
    pub ended_at: i64,
    /// Outcome.
    pub outcome: TaskRunOutcome,
    /// Result, or the reason of the outcome.
    pub result: String,
}

impl TaskRun {
    /// Returns `true` for a run of this task, or of an earlier one of the same name.
    #[must_use]
    pub fn is_of(&self, task: &ScheduledTask) -> bool {
        folded(&self.task) == folded(&task.name)
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskRunOutcome {
    /// The action has succeeded.
    Succeeded,
    /// The action has failed, or was refused.
    Failed,
    /// No gateway could fire the task at the time.
    Missed,
    /// The run before was still running.
    Skipped,
    /// The gateway ended while the task was running.
    Interrupted,
}

impl TaskRunOutcome {
    /// Returns the word of the outcome.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Skipped => "skipped",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Returns a name with single spaces. `None` if it is empty, too long or not one line, or has characters that hide or
/// reorder others.
pub(crate) fn checked_name(text: &str) -> Option<String> {
    let is_hidden = |c: char| {
        let is_bidirectional =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || is_bidirectional || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
    };
    let text = text.trim();
    let name = single_spaced(text);
    let is_valid = !name.is_empty() && name.chars().count() <= MAX_NAME_LENGTH && !text.contains(is_hidden);
    is_valid.then_some(name)
}

/// Normalizes a name for comparison.
pub(crate) fn folded(name: &str) -> String {
    single_spaced(name).to_lowercase()
}

/// Returns a text in one line, with single spaces.
pub(crate) fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the time of a stored number.
pub(crate) fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}
