//! Subagents as stored, so that every gateway of a store lists them, also after a restart.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use toolyard_core::Caller;
use toolyard_core::store::{
    KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, StoredValue, WriteCondition,
};
use toolyard_core::timestamp::iso_8601;

use crate::texts;

/// Space of the records. Their keys are the owner and the id.
const SUBAGENTS: KeySpace = KeySpace("subagents");

/// Time for which a store keeps a record after its last change.
pub(crate) const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Time between two signs of life of a running subagent.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time without a sign of life after which the gateway of a subagent is known to have ended.
const SILENCE: Duration = Duration::from_secs(20);

/// Maximum number of attempts to change a record that others change concurrently.
const ATTEMPTS: usize = 16;

/// Maximum number of records of an owner that are read.
const MAX_LISTED: usize = 200;

/// Maximum number of ended subagents of an owner whose records are kept when it starts another one.
const MAX_ENDED: usize = 99;

/// Owner of subagents: a key, or all callers without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubagentOwner(String);

impl SubagentOwner {
    /// Returns the owner of the subagents of a caller.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self(caller.principal.as_ref().map_or_else(|| "keyless".to_owned(), |id| format!("key/{id}")))
    }

    fn prefix(&self) -> String {
        format!("{}/", self.0)
    }
}

/// State of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentState {
    /// It works.
    Running,
    /// It has a result.
    Succeeded,
    /// It has ended without a result.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Its time is over.
    TimedOut,
}

/// A subagent as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentRecord {
    /// Id: 12 hexadecimal digits.
    pub id: String,
    /// Beginning of the description.
    pub description: String,
    /// State.
    pub state: SubagentState,
    /// Start, in milliseconds since 1970.
    pub started: u64,
    /// Last sign of life, or the end.
    pub changed: u64,
    /// Last report of progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// True if the cancellation was requested at another gateway.
    #[serde(default)]
    pub is_cancelled: bool,
    /// The result, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SubagentResult>,
}

/// The message with the result of a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentResult {
    /// Id of the subagent.
    pub task_id: String,
    /// Namespace of the subagent: `subagent/` and its id.
    pub subagent_session_id: String,
    /// Namespace of the caller in working memory. `None` for a caller without one.
    pub primary_session_id: Option<String>,
    /// Last message of the subagent; empty if it has failed.
    pub output: String,
    /// True if there is a result.
    pub is_success: bool,
    /// Reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time of the end, in ISO 8601.
    pub timestamp: String,
}

impl SubagentRecord {
    /// Returns the record as of a time: a running subagent without a sign of life has failed.
    #[must_use]
    pub fn as_of(mut self, now: SystemTime) -> Self {
        let is_silent = milliseconds(now) > self.changed.saturating_add(in_milliseconds(SILENCE));
        if self.state == SubagentState::Running && is_silent {
            let seen = SystemTime::UNIX_EPOCH + Duration::from_millis(self.changed);
            self.state = SubagentState::Failed;
            self.result = Some(SubagentResult::without_output(&self.id, texts::LOST, seen));
        }
        self
    }
}

impl SubagentResult {
    /// Returns the result of a subagent that has ended at a time without a last message.
    pub(crate) fn without_output(id: &str, reason: &str, ended: SystemTime) -> Self {
        Self {
            task_id: id.to_owned(),
            subagent_session_id: format!("subagent/{id}"),
            primary_session_id: None,
            output: String::new(),
            is_success: false,
            error: Some(reason.to_owned()),
            timestamp: iso_8601(ended),
        }
    }
}

/// The records of a store.
#[derive(Clone)]
pub(crate) struct SubagentStore(Arc<dyn KeyValueStore>);

impl SubagentStore {
    pub(crate) fn new(values: Arc<dyn KeyValueStore>) -> Self {
        Self(values)
    }

    /// Stores a new record.
    pub(crate) async fn add(&self, owner: &SubagentOwner, record: &SubagentRecord) -> Result<(), StoreError> {
        self.write(owner, record, WriteCondition::Absent).await.map(drop)
    }

    /// Returns the record of an id.
    pub(crate) async fn get(
        &self,
        owner: &SubagentOwner,
        id: &str,
    ) -> Result<Option<SubagentRecord>, StoreError> {
        let stored = self.0.get(SUBAGENTS, &key(owner, id)).await?;
        let record = stored.as_ref().map(read).transpose()?;
        Ok(record.map(|record| record.as_of(SystemTime::now())))
    }

    /// Returns the records of an owner, newest first.
    pub(crate) async fn list(&self, owner: &SubagentOwner) -> Result<Vec<SubagentRecord>, StoreError> {
        let stored = self.0.list(SUBAGENTS, &owner.prefix(), None, MAX_LISTED).await?;
        let now = SystemTime::now();
        let records = stored.iter().map(|(_, value)| Ok(read(value)?.as_of(now)));
        let mut records = records.collect::<Result<Vec<_>, StoreError>>()?;
        records.sort_by_key(|record| std::cmp::Reverse(record.started));
        Ok(records)
    }

    /// Removes the oldest records of ended subagents, so that an owner has a limited number of records.
    pub(crate) async fn remove_oldest(&self, owner: &SubagentOwner) -> Result<(), StoreError> {
        let records = self.list(owner).await?;
        let ended = records.iter().filter(|record| record.state != SubagentState::Running);
        for record in ended.skip(MAX_ENDED) {
            self.0.delete(SUBAGENTS, &key(owner, &record.id)).await?;
        }
        Ok(())
    }

    /// Changes a running subagent, and returns it; `None` if it runs no longer.
    pub(crate) async fn change_running(
        &self,
        owner: &SubagentOwner,
        id: &str,
        change: impl Fn(&mut SubagentRecord),
    ) -> Result<Option<SubagentRecord>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some(stored) = self.0.get(SUBAGENTS, &key(owner, id)).await? else { return Ok(None) };
            let mut record = read(&stored)?;
            if record.state != SubagentState::Running {
                return Ok(None);
            }
            change(&mut record);
            if self.write(owner, &record, WriteCondition::Version(stored.version)).await? {
                return Ok(Some(record));
            }
        }
        Err(StoreError::new(StoreErrorKind::Unavailable, "the record of a subagent changes too often"))
    }

    async fn write(
        &self,
        owner: &SubagentOwner,
        record: &SubagentRecord,
        condition: WriteCondition,
    ) -> Result<bool, StoreError> {
        let bytes =
            serde_json::to_vec(record).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        let expires = Some(SystemTime::now() + LIFETIME);
        let put = PutRequest { condition, expires, ..PutRequest::always(bytes) };
        Ok(self.0.put(SUBAGENTS, &key(owner, &record.id), put).await?.is_some())
    }
}

/// Returns a time in milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    in_milliseconds(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn in_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn key(owner: &SubagentOwner, id: &str) -> String {
    format!("{}{id}", owner.prefix())
}

fn read(stored: &StoredValue) -> Result<SubagentRecord, StoreError> {
    serde_json::from_slice(&stored.bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subagent_without_a_sign_of_life_has_failed() {
        let check = |state: SubagentState, silence: Duration, expected: (SubagentState, Option<&str>)| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let record = SubagentRecord {
                id: "a".into(),
                description: "d".into(),
                state,
                started: 0,
                changed: milliseconds(now - silence),
                progress: None,
                is_cancelled: false,
                result: None,
            };
            let seen = record.as_of(now);
            let reason = seen.result.and_then(|result| result.error);
            assert_eq!((seen.state, reason.as_deref()), (expected.0, expected.1), "{state:?} {silence:?}");
        };
        let (running, lost) = ((SubagentState::Running, None), (SubagentState::Failed, Some(texts::LOST)));
        check(SubagentState::Running, HEARTBEAT, running);
        check(SubagentState::Running, SILENCE, running);
        check(SubagentState::Running, SILENCE + Duration::from_millis(1), lost);
        check(SubagentState::Succeeded, SILENCE * 2, (SubagentState::Succeeded, None));
    }
}
