//! Tasks of agents that callers have started, as stored. Times are in milliseconds since 1970.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use toolyard_core::Caller;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, WriteCondition};

use crate::directory::millis;
use crate::wire::task::TaskState;

/// Space of the tasks, where each owner has one key.
const TASKS: KeySpace = KeySpace("agent-tasks");

/// Time for which a store keeps the tasks of an owner without new ones.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// Maximum number of attempts to change a value that others change concurrently.
const ATTEMPTS: usize = 64;

/// Text of a task whose gateway has ended before it.
pub(crate) const ABANDONED: &str = "The gateway was stopped before the agent had answered.";

/// End of a text that is cut.
pub(crate) const CUT_MARK: &str = "\n[cut]";

/// Owner of tasks: a key, or all callers without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentTaskOwner(String);

impl AgentTaskOwner {
    /// Returns the owner of the tasks of a caller.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self(caller.principal.as_ref().map_or_else(|| "keyless".to_owned(), |id| format!("key/{id}")))
    }
}

/// A task of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTask {
    /// Id, by which its caller knows the task.
    pub id: String,
    /// Name of the agent.
    pub agent: String,
    /// Id of the skill.
    pub skill: String,
    /// State.
    pub state: TaskState,
    /// Time of its start.
    pub started: u64,
    /// Time at which it ends at the latest.
    pub ends_by: u64,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Result, or the reason of a failure, perhaps cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Key of the whole result in working memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_key: Option<String>,
}

impl AgentTask {
    /// Returns the task as it is at a time: one that should have ended has failed with its gateway.
    fn at(mut self, now: u64) -> Self {
        if self.ended.is_none() && self.ends_by < now {
            self.state = TaskState::Failed;
            self.ended = Some(self.ends_by);
            ABANDONED.clone_into(&mut self.text);
        }
        self
    }
}

/// The tasks of an owner, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OwnerTasks {
    tasks: Vec<AgentTask>,
}

impl OwnerTasks {
    /// Keeps `limit` tasks, and all that run, whose number has a limit of its own.
    fn trim(&mut self, limit: usize) {
        while self.tasks.len() > limit {
            let Some(at) = self.tasks.iter().position(|task| task.ended.is_some()) else { return };
            self.tasks.remove(at);
        }
    }
}

/// The tasks of all owners. Gateways on one store share them.
#[derive(Clone)]
pub(crate) struct TaskStore(Arc<dyn KeyValueStore>);

impl TaskStore {
    pub(crate) fn new(values: Arc<dyn KeyValueStore>) -> Self {
        Self(values)
    }

    /// Returns the tasks of an owner, newest first, as they are at a time.
    pub(crate) async fn list(
        &self,
        owner: &AgentTaskOwner,
        now: SystemTime,
    ) -> Result<Vec<AgentTask>, StoreError> {
        let (owned, _) = self.read(owner).await?;
        Ok(owned.tasks.into_iter().rev().map(|task| task.at(millis(now))).collect())
    }

    /// Adds a task, or replaces the one with its id. The owner keeps `limit` tasks.
    pub(crate) async fn put(
        &self,
        owner: &AgentTaskOwner,
        task: &AgentTask,
        limit: usize,
    ) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS {
            let (mut owned, version) = self.read(owner).await?;
            match owned.tasks.iter_mut().find(|known| known.id == task.id) {
                Some(known) => *known = task.clone(),
                None => owned.tasks.push(task.clone()),
            }
            owned.trim(limit);
            let bytes = serde_json::to_vec(&owned).map_err(unreadable)?;
            let condition = version.map_or(WriteCondition::Absent, WriteCondition::Version);
            let expires = Some(SystemTime::now() + LIFETIME);
            let put = PutRequest { condition, expires, ..PutRequest::always(bytes) };
            if self.0.put(TASKS, &owner.0, put).await?.is_some() {
                return Ok(());
            }
        }
        Err(StoreError::new(StoreErrorKind::Busy, "the tasks are being changed by others"))
    }

    async fn read(&self, owner: &AgentTaskOwner) -> Result<(OwnerTasks, Option<u64>), StoreError> {
        match self.0.get(TASKS, &owner.0).await? {
            None => Ok((OwnerTasks::default(), None)),
            Some(value) => {
                let owned = serde_json::from_slice(&value.bytes).map_err(unreadable)?;
                Ok((owned, Some(value.version)))
            }
        }
    }
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unreadable, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, is_running: bool) -> AgentTask {
        AgentTask {
            id: id.to_owned(),
            agent: "A".to_owned(),
            skill: "s".to_owned(),
            state: TaskState::Working,
            started: 1,
            ends_by: 10,
            ended: (!is_running).then_some(5),
            text: String::new(),
            result_key: None,
        }
    }

    #[test]
    fn only_ended_tasks_make_room() {
        let check = |tasks: &[(&str, bool)], limit: usize, expected: &str| {
            let tasks = tasks.iter().map(|(id, is_running)| task(id, *is_running)).collect();
            let mut owned = OwnerTasks { tasks };
            owned.trim(limit);
            let ids: Vec<_> = owned.tasks.iter().map(|task| task.id.as_str()).collect();
            assert_eq!(ids.join(""), expected);
        };
        check(&[("a", true), ("b", false), ("c", false)], 2, "ac");
        check(&[("a", true), ("b", false), ("c", false)], 1, "a");
        check(&[("a", true), ("b", true)], 1, "ab");
        check(&[("a", false)], 1, "a");
    }

    #[test]
    fn task_of_a_gateway_that_has_ended_has_failed() {
        let check = |is_running: bool, now: u64, expected: TaskState| {
            assert_eq!(task("a", is_running).at(now).state, expected);
        };
        check(true, 10, TaskState::Working);
        check(true, 11, TaskState::Failed);
        check(false, 11, TaskState::Working);
    }
}
