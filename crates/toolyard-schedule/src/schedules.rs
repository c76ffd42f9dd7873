//! The tasks as the tools and the scheduler share them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::sync::{Notify, broadcast, watch};
use toolyard_core::random::{hex, random_bytes};
use toolyard_core::store::{KeyValueStore, LeaseStore, StoreError, StoreErrorKind};
use toolyard_manifest::ScheduleSettings;

use crate::cron::{CronError, CronExpression};
use crate::error::ScheduleError;
use crate::store::{OwnerTasks, ScheduleStore};
use crate::task::{MAX_NAME_LENGTH, ScheduleOwner, ScheduledTask, TaskRun, checked_name, folded};
use crate::zone::ScheduleZone;

/// Number of runs from which the shortest time between two runs is computed: more than a day of hourly runs has.
const COMPARED_RUNS: usize = 100;

/// Number of changes that wait to be delivered to subscribers of resources.
const PENDING_UPDATES: usize = 256;

/// The current time, which tests replace.
pub type ScheduleClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The tasks of all owners. Clones share them.
#[derive(Clone)]
pub struct Schedules(Arc<ScheduleState>);

struct ScheduleState {
    store: ScheduleStore,
    clock: ScheduleClock,
    settings: watch::Sender<Option<Arc<ScheduleSettings>>>,
    /// Wakes the scheduler of this gateway.
    changed: Notify,
    updates: broadcast::Sender<TaskUpdate>,
}

/// A change of a task, its runs included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskUpdate {
    pub(crate) owner: ScheduleOwner,
    /// Name of the task, in lower case.
    pub(crate) task: String,
}

/// A task to schedule.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Name of the task.
    pub name: String,
    /// Cron expression.
    pub cron: CronExpression,
    /// Instruction for the time of the run.
    pub description: String,
    /// `true` to remove it after it has fired.
    pub run_once: bool,
}

impl Schedules {
    /// Returns the tasks of a store. They are not fired before [`Schedules::enable`].
    #[must_use]
    pub fn new(values: Arc<dyn KeyValueStore>, leases: Arc<dyn LeaseStore>) -> Self {
        Self::with_clock(values, leases, Arc::new(SystemTime::now))
    }

    /// Returns the tasks of a store, with another clock.
    #[must_use]
    pub fn with_clock(
        values: Arc<dyn KeyValueStore>,
        leases: Arc<dyn LeaseStore>,
        clock: ScheduleClock,
    ) -> Self {
        Self(Arc::new(ScheduleState {
            store: ScheduleStore::new(values, leases),
            clock,
            settings: watch::Sender::default(),
            changed: Notify::new(),
            updates: broadcast::Sender::new(PENDING_UPDATES),
        }))
    }

    /// Sets the settings by which tasks are scheduled and fired from now on. `None`: they are not.
    pub fn enable(&self, settings: Option<Arc<ScheduleSettings>>) {
        self.0.settings.send_if_modified(|current| {
            let is_new = *current != settings;
            *current = settings;
            is_new
        });
    }

    /// Ends scheduling and firing, unless other settings than these have been set since.
    pub(crate) fn disable(&self, settings: &Arc<ScheduleSettings>) {
        self.0.settings.send_if_modified(|current| {
            let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, settings));
            if is_current {
                *current = None;
            }
            is_current
        });
    }

    pub(crate) fn settings(&self) -> watch::Receiver<Option<Arc<ScheduleSettings>>> {
        self.0.settings.subscribe()
    }

    pub(crate) fn store(&self) -> &ScheduleStore {
        &self.0.store
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.0.changed
    }

    pub(crate) fn updates(&self) -> &broadcast::Sender<TaskUpdate> {
        &self.0.updates
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::try_from((self.0.clock)()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns the current settings and their time zone.
    ///
    /// # Errors
    /// Returns [`ScheduleError::Disabled`] if there are none.
    pub(crate) fn current(&self) -> Result<(Arc<ScheduleSettings>, ScheduleZone), ScheduleError> {
        let settings = self.0.settings.borrow().clone().ok_or(ScheduleError::Disabled)?;
        let zone = ScheduleZone::new(settings.time_zone.as_deref());
        Ok((settings, zone))
    }

    /// Schedules a task, replacing one of the same name. Returns it, and `true` if it has replaced another.
    ///
    /// # Errors
    /// Returns an error if the task is invalid, a limit would be exceeded, or the store fails.
    pub async fn schedule(
        &self,
        owner: &ScheduleOwner,
        new: NewTask,
    ) -> Result<(ScheduledTask, bool), ScheduleError> {
        let (settings, zone) = self.current()?;
        let now = self.now();
        let name = checked_name(&new.name).ok_or(ScheduleError::BadName(MAX_NAME_LENGTH))?;
        let next = check(&new, now, &settings, &zone)?;
        let owners = self.0.store.all().await?;
        let is_new = |owned: &OwnerTasks| owned.find(&new.name).is_none();
        let total: usize = owners.iter().map(|(_, owned)| owned.tasks.len()).sum();
        if total >= settings.total_tasks
            && owners.iter().find(|(other, _)| other == owner).is_none_or(|(_, owned)| is_new(owned))
        {
            return Err(ScheduleError::Full);
        }
        let task = ScheduledTask {
            id: random_id()?,
            name,
            cron: new.cron.as_str().to_owned(),
            description: new.description.trim().to_owned(),
            run_once: new.run_once,
            created_at: now.as_millisecond(),
            next_at: Some(next.as_millisecond()),
            zone: Some(zone.name().to_owned()),
            running: None,
            last: None,
        };
        let replaced = self
            .0
            .store
            .change(owner, |owned| {
                let before = owned.take(&task.name);
                if owned.tasks.len() >= settings.tasks {
                    return Err(ScheduleError::TooMany { limit: settings.tasks });
                }
                let last = before.as_ref().and_then(|before| before.last);
                owned.insert(ScheduledTask { last, ..task.clone() });
                Ok(before.is_some())
            })
            .await?;
        self.0.changed.notify_one();
        Ok((task, replaced))
    }

    /// Removes a task and returns it. A running one finishes.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn cancel(
        &self,
        owner: &ScheduleOwner,
        name: &str,
    ) -> Result<Option<ScheduledTask>, ScheduleError> {
        let cancelled = self.0.store.change(owner, |owned| Ok(owned.take(name))).await?;
        self.0.changed.notify_one();
        Ok(cancelled)
    }

    /// Removes the task of an owner with this id, and returns it. A running one finishes.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn cancel_id(
        &self,
        owner: &ScheduleOwner,
        id: &str,
    ) -> Result<Option<ScheduledTask>, ScheduleError> {
        let cancel = |owned: &mut OwnerTasks| {
            let at = owned.tasks.iter().position(|task| task.id == id);
            Ok(at.map(|at| owned.tasks.remove(at)))
        };
        let cancelled = self.0.store.change(owner, cancel).await?;
        self.0.changed.notify_one();
        Ok(cancelled)
    }

    /// Returns the tasks of all owners, by owner and name.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn all(&self) -> Result<Vec<(ScheduleOwner, ScheduledTask)>, ScheduleError> {
        let owners = self.0.store.all().await?;
        let tasks = |(owner, owned): (ScheduleOwner, OwnerTasks)| {
            owned.tasks.into_iter().map(move |task| (owner.clone(), task))
        };
        Ok(owners.into_iter().flat_map(tasks).collect())
    }

    /// Returns the name of the time zone of cron expressions; `None` while schedules are not enabled.
    #[must_use]
    pub fn time_zone(&self) -> Option<String> {
        self.current().ok().map(|(_, zone)| zone.name().to_owned())
    }

    /// Returns the tasks of an owner in the order of their names, and its last runs, newest first.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn list(
        &self,
        owner: &ScheduleOwner,
    ) -> Result<(Vec<ScheduledTask>, Vec<TaskRun>), ScheduleError> {
        let tasks = self.0.store.tasks_of(owner).await?.tasks;
        Ok((tasks, self.0.store.runs(owner).await?))
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedules").finish_non_exhaustive()
    }
}

/// Checks the description and the times of a new task, and returns its first run.
fn check(
    new: &NewTask,
    now: Timestamp,
    settings: &ScheduleSettings,
    zone: &ScheduleZone,
) -> Result<Timestamp, ScheduleError> {
    let (bytes, limit) = (new.description.trim().len(), settings.description_bytes);
    if bytes == 0 {
        return Err(ScheduleError::NoDescription);
    }
    if bytes > limit {
        return Err(ScheduleError::LongDescription { bytes, limit });
    }
    let next = new.cron.next_after(now, &zone.zone).ok_or(CronError::NoDate)?;
    // A task that runs once has no second run.
    if !new.run_once {
        check_interval(&new.cron, next, settings.min_interval, zone)?;
    }
    Ok(next)
}

fn check_interval(
    cron: &CronExpression,
    first: Timestamp,
    limit: Duration,
    zone: &ScheduleZone,
) -> Result<(), ScheduleError> {
    let mut time = first;
    for _ in 0..COMPARED_RUNS {
        let Some(next) = cron.next_after(time, &zone.zone) else { return Ok(()) };
        let actual = Duration::try_from(next.duration_since(time)).unwrap_or_default();
        if actual < limit {
            return Err(ScheduleError::TooOften { actual, limit });
        }
        time = next;
    }
    Ok(())
}

/// Returns an id of a task or of a run.
pub(crate) fn random_id() -> Result<String, StoreError> {
    let bytes = random_bytes::<8>().map_err(|error| StoreError::new(StoreErrorKind::Unavailable, error))?;
    Ok(hex(&bytes))
}

impl TaskUpdate {
    pub(crate) fn new(owner: &ScheduleOwner, task: &str) -> Self {
        Self { owner: owner.clone(), task: folded(task) }
    }
}
