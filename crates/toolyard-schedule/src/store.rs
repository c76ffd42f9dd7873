//! The tasks and the history of each owner in a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolyard_core::store::{
    KeySpace, KeyValueStore, LeaseStore, PutRequest, StoreError, StoreErrorKind, WriteCondition,
};

use crate::error::ScheduleError;
use crate::task::{ScheduleOwner, ScheduledTask, TaskRun, folded};

/// Space of the tasks, where each owner has one key.
const TASKS: KeySpace = KeySpace("schedules");

/// Space of the histories, likewise.
const RUNS: KeySpace = KeySpace("schedule-runs");

/// Time for which a store keeps the history of an owner without new runs, such as of a key that was deleted.
const RUNS_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);

/// Time for which a store keeps an owner without tasks.
const EMPTY_LIFETIME: Duration = Duration::from_secs(3600);

/// Maximum number of attempts to change a value that others change concurrently.
const ATTEMPTS: usize = 64;

/// Number of owners that are read at a time.
const PAGE: usize = 200;

/// The tasks and histories of all owners. Gateways on one store share them.
#[derive(Clone)]
pub struct ScheduleStore {
    values: Arc<dyn KeyValueStore>,
    leases: Arc<dyn LeaseStore>,
}

/// All tasks of an owner, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerTasks {
    pub(crate) tasks: Vec<ScheduledTask>,
}

/// The last runs of an owner, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RunHistory {
    runs: Vec<TaskRun>,
}

impl RunHistory {
    /// Keeps `limit` runs. The oldest run of the task with the most runs goes first, so that a frequent task does not
    /// displace the results of the others.
    fn trim(&mut self, limit: usize) {
        let mut names: Vec<_> = self.runs.iter().map(|run| folded(&run.task)).collect();
        let mut counts = BTreeMap::<_, usize>::new();
        for name in &names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        while self.runs.len() > limit {
            let most = counts.values().max().copied().unwrap_or_default();
            let at = names.iter().position(|name| counts.get(name) == Some(&most)).unwrap_or_default();
            self.runs.remove(at);
            counts.entry(names.remove(at)).and_modify(|count| *count -= 1);
        }
    }
}

impl OwnerTasks {
    pub(crate) fn find(&self, name: &str) -> Option<&ScheduledTask> {
        let name = folded(name);
        self.tasks.iter().find(|task| folded(&task.name) == name)
    }

    pub(crate) fn by_id(&mut self, id: &str) -> Option<&mut ScheduledTask> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<ScheduledTask> {
        let name = folded(name);
        let at = self.tasks.iter().position(|task| folded(&task.name) == name)?;
        Some(self.tasks.remove(at))
    }

    pub(crate) fn insert(&mut self, task: ScheduledTask) {
        let name = folded(&task.name);
        let at = self.tasks.partition_point(|other| folded(&other.name) < name);
        self.tasks.insert(at, task);
    }
}

impl ScheduleStore {
    pub(crate) fn new(values: Arc<dyn KeyValueStore>, leases: Arc<dyn LeaseStore>) -> Self {
        Self { values, leases }
    }

    /// Returns a number that grows with each change of a task.
    pub(crate) async fn revision(&self) -> Result<u64, StoreError> {
        self.values.revision(TASKS).await
    }

    /// Returns the tasks of all owners. Those that cannot be read are left out, so that the others fire.
    pub(crate) async fn all(&self) -> Result<Vec<(ScheduleOwner, OwnerTasks)>, StoreError> {
        let mut owners = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.values.list(TASKS, "", after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(key, _)| key.clone());
            for (key, value) in page {
                match read(&value.bytes) {
                    Ok(owned) => owners.push((ScheduleOwner::from_stored(key), owned)),
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::error!(
                            error,
                            owner = key,
                            "cannot read the scheduled tasks of a key, which do not fire"
                        );
                    }
                }
            }
            if is_last {
                return Ok(owners);
            }
        }
    }

    /// Returns the tasks of an owner.
    pub(crate) async fn tasks_of(&self, owner: &ScheduleOwner) -> Result<OwnerTasks, StoreError> {
        Ok(self.value(TASKS, owner).await?.0)
    }

    /// Returns the last runs of an owner, newest first.
    pub(crate) async fn runs(&self, owner: &ScheduleOwner) -> Result<Vec<TaskRun>, StoreError> {
        let (history, _) = self.value::<RunHistory>(RUNS, owner).await?;
        Ok(history.runs.into_iter().rev().collect())
    }

    /// Changes the tasks of an owner, and tries again if others change them concurrently. Tasks without a change are
    /// not written.
    pub(crate) async fn change<T>(
        &self,
        owner: &ScheduleOwner,
        mut change: impl FnMut(&mut OwnerTasks) -> Result<T, ScheduleError>,
    ) -> Result<T, ScheduleError> {
        for _ in 0..ATTEMPTS {
            let (before, version) = self.value::<OwnerTasks>(TASKS, owner).await?;
            let mut owned = before.clone();
            let changed = change(&mut owned)?;
            let lifetime = owned.tasks.is_empty().then_some(EMPTY_LIFETIME);
            if owned == before || self.write(TASKS, owner, &owned, version, lifetime).await? {
                return Ok(changed);
            }
        }
        Err(ScheduleError::Contended)
    }

    /// Removes the tasks and the history of an owner. Returns `true` if there were tasks.
    pub(crate) async fn remove(&self, owner: &ScheduleOwner) -> Result<bool, StoreError> {
        self.values.delete(RUNS, owner.as_str()).await?;
        self.values.delete(TASKS, owner.as_str()).await
    }

    /// Adds a run to the history of an owner, which keeps `limit` ones.
    pub(crate) async fn add_run(
        &self,
        owner: &ScheduleOwner,
        run: &TaskRun,
        limit: usize,
    ) -> Result<(), ScheduleError> {
        for _ in 0..ATTEMPTS {
            let (mut history, version) = self.value::<RunHistory>(RUNS, owner).await?;
            history.runs.push(run.clone());
            history.trim(limit);
            if self.write(RUNS, owner, &history, version, Some(RUNS_LIFETIME)).await? {
                return Ok(());
            }
        }
        Err(ScheduleError::Contended)
    }

    /// Acquires or extends the lease of a run. Returns `false` while another holder has it.
    pub(crate) async fn acquire_lease(
        &self,
        run: &str,
        holder: &str,
        time: Duration,
    ) -> Result<bool, StoreError> {
        Ok(self.leases.acquire(&lease(run), holder, time).await?.is_some())
    }

    /// Gives up the lease of a run, whose id is not used again. It expires if this fails.
    pub(crate) async fn release_lease(&self, run: &str, holder: &str) {
        if let Err(error) = self.leases.forget(&lease(run), holder).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot release the lease of a task");
        }
    }

    async fn value<T: Default + DeserializeOwned>(
        &self,
        space: KeySpace,
        owner: &ScheduleOwner,
    ) -> Result<(T, Option<u64>), StoreError> {
        match self.values.get(space, owner.as_str()).await? {
            None => Ok((T::default(), None)),
            Some(value) => Ok((read(&value.bytes)?, Some(value.version))),
        }
    }

    /// Writes a value, which the store keeps for `lifetime` if there is one. Returns `false` if it has changed since
    /// `version`.
    async fn write<T: Serialize>(
        &self,
        space: KeySpace,
        owner: &ScheduleOwner,
        value: &T,
        version: Option<u64>,
        lifetime: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        let condition = version.map_or(WriteCondition::Absent, WriteCondition::Version);
        let expires = lifetime.map(|lifetime| SystemTime::now() + lifetime);
        let put = PutRequest { condition, expires, ..PutRequest::always(bytes) };
        Ok(self.values.put(space, owner.as_str(), put).await?.is_some())
    }
}

fn lease(run: &str) -> String {
    format!("schedule-run/{run}")
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ImmediateStore;

    #[tokio::test]
    async fn unreadable_tasks_of_a_key_hide_no_others() {
        let values = Arc::new(ImmediateStore::default());
        for (owner, text) in
            [("key:a", "{\"tasks\": []}"), ("key:b", "{\"tasks\": 1}"), ("key:c", "{\"tasks\": []}")]
        {
            values.put(TASKS, owner, PutRequest::always(text.to_owned())).await.unwrap();
        }
        let store = ScheduleStore::new(values.clone(), values);
        let owners: Vec<_> = store.all().await.unwrap().into_iter().map(|(owner, _)| owner).collect();
        let owners: Vec<_> = owners.iter().map(ScheduleOwner::as_str).collect();
        assert_eq!(owners, ["key:a", "key:c"]);
    }
}
