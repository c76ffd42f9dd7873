//! Fires the tasks that are due.
//!
//! The scheduler compares the next times of the tasks with the wall clock, at least once in an interval, so that a clock
//! that is set is noticed. A time that has passed by more than the grace period is missed. A clock that is set back repeats
//! no run, because the next time of a task is always after its last one.

mod claim;
mod retiming;
mod runner;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolyard_core::store::StoreError;
use toolyard_manifest::ScheduleSettings;

use self::claim::{Claim, ClaimOutcome};
use self::retiming::TimeCheck;
use self::runner::TaskRunner;
use crate::action::TaskActions;
use crate::error::ScheduleError;
use crate::observer::RunObserver;
use crate::schedules::{Schedules, TaskUpdate, random_id};
use crate::store::OwnerTasks;
use crate::task::{ScheduleOwner, ScheduledTask, timestamp};
use crate::zone::ScheduleZone;

/// Time after which another gateway may take a run for interrupted. It is extended three times in between.
const LEASE: Duration = Duration::from_secs(30);

/// Fires tasks, until it is dropped.
pub struct Scheduler {
    schedules: Schedules,
    actions: TaskActions,
    observer: Arc<dyn RunObserver>,
    /// Holder of leases.
    holder: Arc<str>,
    /// Runs of this gateway.
    runs: JoinSet<()>,
    running: RunningTasks,
    /// Ids and times of tasks that were noticed in time, and wait until fewer are running.
    waiting: HashSet<(String, i64)>,
    /// Time of the last look at the clock.
    looked_at: Option<Timestamp>,
    /// The tasks as they were read last, and the revision of the store at that time.
    owners: Vec<(ScheduleOwner, OwnerTasks)>,
    revision: Option<u64>,
}

/// Owners of the runs of a gateway, by the ids of the runs.
#[derive(Clone, Default)]
struct RunningTasks(Arc<Mutex<HashMap<String, ScheduleOwner>>>);

/// A run, which is removed when it ends, even by a panic.
struct RunningTask {
    tasks: RunningTasks,
    run_id: String,
}

impl RunningTasks {
    fn insert(&self, run_id: String, owner: ScheduleOwner) -> RunningTask {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run_id.clone(), owner);
        RunningTask { tasks: self.clone(), run_id }
    }

    fn contains(&self, run_id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(run_id)
    }

    /// Returns the number of runs of an owner.
    fn of(&self, owner: &ScheduleOwner) -> usize {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().filter(|other| *other == owner).count()
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run_id);
    }
}

/// A task that is due.
struct DueTask {
    owner: ScheduleOwner,
    task: ScheduledTask,
    due: i64,
    /// `true` if a gateway noticed it within the grace period.
    is_on_time: bool,
}

impl Scheduler {
    /// Returns a scheduler of these tasks.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn new(
        schedules: Schedules,
        actions: TaskActions,
        observer: Arc<dyn RunObserver>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            schedules,
            actions,
            observer,
            holder: random_id()?.into(),
            runs: JoinSet::new(),
            running: RunningTasks::default(),
            waiting: HashSet::new(),
            looked_at: None,
            owners: Vec::new(),
            revision: None,
        })
    }

    /// Fires tasks while schedules are enabled, until `stopping` is `true`. Then running tasks have the time `drain` to
    /// finish.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>, drain: Duration) {
        let mut settings = self.schedules.settings();
        let mut is_healthy = true;
        while !*stopping.borrow() {
            let current = settings.borrow_and_update().clone();
            let wait = match &current {
                None => None,
                Some(settings) => Some(self.tick_or_log(settings, &mut is_healthy).await),
            };
            let schedules = self.schedules.clone();
            let time = async {
                match wait {
                    Some(wait) => sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = time => {}
                () = schedules.changed().notified() => {}
                Some(_) = self.runs.join_next(), if !self.runs.is_empty() => {}
                changed = settings.changed() => if changed.is_err() { break },
                stopped = stopping.wait_for(|stopping| *stopping) => if stopped.is_err() { break },
            }
            // One look at the tasks for all runs that have ended meanwhile.
            while self.runs.try_join_next().is_some() {}
        }
        let finished = async { while self.runs.join_next().await.is_some() {} };
        if timeout(drain, finished).await.is_err() {
            tracing::warn!("scheduled tasks were still running when the gateway stopped");
        }
    }

    /// Returns the time until the next look.
    async fn tick_or_log(&mut self, settings: &Arc<ScheduleSettings>, is_healthy: &mut bool) -> Duration {
        let outcome = self.tick(settings).await;
        if let (Err(error), true) = (&outcome, &is_healthy) {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "cannot fire scheduled tasks");
        }
        *is_healthy = outcome.is_ok();
        let next = outcome.ok().flatten();
        let wait = next
            .map(|next| Duration::try_from(next.duration_since(self.schedules.now())).unwrap_or_default());
        wait.map_or(settings.check, |wait| wait.min(settings.check))
    }

    /// Claims the tasks that are due. Returns the time of the next one; the current time if there may be more to do.
    async fn tick(&mut self, settings: &Arc<ScheduleSettings>) -> Result<Option<Timestamp>, ScheduleError> {
        self.read().await?;
        let now = self.schedules.now();
        let mut is_changed = self.retime(settings, now).await?;
        is_changed |= self.recover(settings).await?;
        let mut waiting = HashSet::new();
        for task in self.due_tasks(now, settings.grace) {
            // The end of a run wakes the scheduler.
            if self.runs.len() >= settings.concurrent
                || self.running.of(&task.owner) >= settings.concurrent_of_key()
            {
                if task.is_on_time {
                    waiting.insert((task.task.id, task.due));
                }
                continue;
            }
            is_changed |= self.claim(task, settings).await?;
        }
        self.waiting = waiting;
        if is_changed {
            return Ok(Some(now));
        }
        let times = self.owners.iter().flat_map(|(_, owned)| &owned.tasks).filter_map(|task| task.next_at);
        Ok(times.filter(|time| *time > now.as_millisecond()).min().map(timestamp))
    }

    /// Reads the tasks if they have changed, and reports changes to subscribers.
    async fn read(&mut self) -> Result<(), StoreError> {
        // The revision comes first, so that a change during the read causes another read.
        let revision = self.schedules.store().revision().await?;
        if self.revision == Some(revision) {
            return Ok(());
        }
        let owners = self.schedules.store().all().await?;
        if self.revision.is_some() {
            for update in updates(&self.owners, &owners) {
                // Fails only if there are no subscribers.
                let _no_subscribers = self.schedules.updates().send(update);
            }
        }
        self.owners = owners;
        self.revision = Some(revision);
        Ok(())
    }

    /// Computes next times again that were computed in another time zone, or by a clock that was wrong. Returns `true` if
    /// there were any.
    async fn retime(&mut self, settings: &ScheduleSettings, now: Timestamp) -> Result<bool, ScheduleError> {
        let zone = &ScheduleZone::new(settings.time_zone.as_deref());
        // The clock may have been set while no gateway was running.
        let is_clock_set_back = self.looked_at.is_none_or(|looked_at| now < looked_at);
        let check = TimeCheck { now, zone, is_clock_set_back };
        let mut is_changed = false;
        for (owner, owned) in self.owners.iter().filter(|(_, owned)| check.finds_any(owned)) {
            let retime = |owned: &mut OwnerTasks| {
                check.apply(owned);
                Ok(())
            };
            self.schedules.store().change(owner, retime).await?;
            tracing::info!(
                key = owner.key_id(),
                tasks = owned.tasks.len(),
                zone = zone.name(),
                "computed the next runs of scheduled tasks again, because the time zone or the clock was changed"
            );
            is_changed = true;
        }
        self.looked_at = Some(now);
        Ok(is_changed)
    }

    /// Returns the tasks that are due, earliest first.
    fn due_tasks(&self, now: Timestamp, grace: Duration) -> Vec<DueTask> {
        let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
        let tasks =
            self.owners.iter().flat_map(|(owner, owned)| owned.tasks.iter().map(move |task| (owner, task)));
        let due = tasks.filter_map(|(owner, task)| {
            let due = task.next_at.filter(|next| *next <= now.as_millisecond())?;
            let is_on_time =
                now.duration_since(timestamp(due)) <= grace || self.waiting.contains(&(task.id.clone(), due));
            Some(DueTask { owner: owner.clone(), task: task.clone(), due, is_on_time })
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|task| task.due);
        due
    }

    /// Claims a task, and runs it if it is to fire. Returns `true` if the task has changed.
    async fn claim(&mut self, due: DueTask, settings: &Arc<ScheduleSettings>) -> Result<bool, ScheduleError> {
        let zone = ScheduleZone::new(settings.time_zone.as_deref());
        let run_id = random_id()?;
        let store = self.schedules.store();
        // Before the claim, so that no other gateway sees the run without a lease.
        store.acquire_lease(&run_id, &self.holder, LEASE).await?;
        let claim = Claim { due: &due, run_id: &run_id, now: self.schedules.now(), settings, zone: &zone };
        let outcome = store.change(&due.owner, |owned| Ok(claim.apply(owned))).await;
        let runner = self.runner(settings);
        match outcome {
            Ok(ClaimOutcome::Fire(firing)) => {
                let running = self.running.insert(run_id, due.owner);
                self.runs.spawn(async move {
                    let _running = running;
                    runner.run(*firing).await;
                });
                Ok(true)
            }
            Ok(ClaimOutcome::Record(run)) => {
                runner.record(&due.owner, &run).await;
                self.schedules.store().release_lease(&run_id, &self.holder).await;
                Ok(true)
            }
            other => {
                self.schedules.store().release_lease(&run_id, &self.holder).await;
                other.map(|_| false)
            }
        }
    }

    fn runner(&self, settings: &Arc<ScheduleSettings>) -> TaskRunner {
        TaskRunner {
            schedules: self.schedules.clone(),
            actions: self.actions.clone(),
            observer: self.observer.clone(),
            holder: self.holder.clone(),
            settings: settings.clone(),
            zone: ScheduleZone::new(settings.time_zone.as_deref()),
        }
    }

    /// Ends the runs of gateways that have ended. Returns `true` if there were any.
    async fn recover(&self, settings: &Arc<ScheduleSettings>) -> Result<bool, ScheduleError> {
        let mut is_changed = false;
        for (owner, owned) in &self.owners {
            for task in &owned.tasks {
                let Some(run) = task.running.as_ref().filter(|run| !self.running.contains(&run.id)) else {
                    continue;
                };
                if !self.schedules.store().acquire_lease(&run.id, &self.holder, LEASE).await? {
                    continue;
                }
                is_changed |= self.runner(settings).interrupted(owner, task, run).await?;
                self.schedules.store().release_lease(&run.id, &self.holder).await;
            }
        }
        Ok(is_changed)
    }
}

/// Returns the differences between two states of the tasks.
fn updates(before: &[(ScheduleOwner, OwnerTasks)], after: &[(ScheduleOwner, OwnerTasks)]) -> Vec<TaskUpdate> {
    let (before, after): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (named_tasks(before).collect(), named_tasks(after).collect());
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let changed = after.iter().filter(|(key, task)| before.get(*key) != Some(*task)).map(|(key, _)| key);
    changed.chain(removed).map(|(owner, name)| TaskUpdate::new(owner, name)).collect()
}

/// Returns the tasks by owner and name.
fn named_tasks(
    owners: &[(ScheduleOwner, OwnerTasks)],
) -> impl Iterator<Item = ((&ScheduleOwner, &str), &ScheduledTask)> {
    owners.iter().flat_map(|(owner, owned)| owned.tasks.iter().map(move |task| ((owner, &*task.name), task)))
}
