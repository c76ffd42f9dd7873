//! One run of a task, from its claim to its record.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, interval, sleep};
use toolyard_manifest::ScheduleSettings;

use super::LEASE;
use crate::action::{TaskActions, TaskFailure, TaskFiring};
use crate::error::ScheduleError;
use crate::observer::{EndedRun, RunObserver};
use crate::schedules::Schedules;
use crate::task::{ClaimedRun, LastRun, ScheduleOwner, ScheduledTask, TaskRun, TaskRunOutcome};
use crate::texts;
use crate::zone::ScheduleZone;

/// Number of attempts to record a run, and the time before the second one. It doubles with each.
const RECORD_ATTEMPTS: u32 = 5;
const RECORD_PAUSE: Duration = Duration::from_secs(1);

/// Runs tasks and records their outcomes.
pub(super) struct TaskRunner {
    pub(super) schedules: Schedules,
    pub(super) actions: TaskActions,
    pub(super) observer: Arc<dyn RunObserver>,
    pub(super) holder: Arc<str>,
    pub(super) settings: Arc<ScheduleSettings>,
    pub(super) zone: ScheduleZone,
}

impl TaskRunner {
    /// Runs a claimed task and records its outcome. The lease is extended until then, so that no other gateway takes the
    /// run for interrupted.
    pub(super) async fn run(&self, firing: TaskFiring) {
        tokio::select! {
            () = self.fire(&firing) => {}
            never = self.extend_lease(&firing.run_id) => never,
        }
        self.schedules.store().release_lease(&firing.run_id, &self.holder).await;
        self.schedules.changed().notify_one();
    }

    async fn fire(&self, firing: &TaskFiring) {
        let start = Instant::now();
        let fired = self.actions.fire(firing, &self.settings, &self.zone).await;
        let (outcome, result) = match fired {
            Ok(result) => (TaskRunOutcome::Succeeded, result),
            Err(TaskFailure::Failed(reason)) => (TaskRunOutcome::Failed, reason),
            Err(TaskFailure::OwnerEnded(reason)) => return self.end_owner(firing, reason).await,
        };
        let (id, took) = (&*firing.run_id, Some(start.elapsed()));
        self.observer.ended(EndedRun { id, owner: &firing.owner, task: &firing.name, outcome, took });
        let run = self.task_run(&firing.name, firing.due.as_millisecond(), outcome, result);
        self.record_end(firing, &run).await;
    }

    /// Records a run that was left out.
    pub(super) async fn record(&self, owner: &ScheduleOwner, run: &TaskRun) {
        tracing::info!(task = run.task, outcome = run.outcome.word(), "left out a run of a scheduled task");
        let added = self.schedules.store().add_run(owner, run, self.settings.history).await;
        if let Err(error) = added {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot record a run");
        }
    }

    /// Records that the gateway of a run has ended. Returns `false` if the run had finished.
    pub(super) async fn interrupted(
        &self,
        owner: &ScheduleOwner,
        task: &ScheduledTask,
        claimed: &ClaimedRun,
    ) -> Result<bool, ScheduleError> {
        let outcome = TaskRunOutcome::Interrupted;
        let is_ended = self.finish(owner, &task.id, &claimed.id, claimed.due, outcome).await?;
        if is_ended {
            self.observer.ended(EndedRun { id: &claimed.id, owner, task: &task.name, outcome, took: None });
            let reason =
                "the gateway ended during the run, which may have had its effect and is not repeated";
            let run = self.task_run(&task.name, claimed.due, outcome, reason.to_owned());
            self.record(owner, &run).await;
        }
        Ok(is_ended)
    }

    /// Ends a run in the tasks of its owner: one that runs once is removed. Returns `false` if it has ended before.
    async fn finish(
        &self,
        owner: &ScheduleOwner,
        task_id: &str,
        run_id: &str,
        due: i64,
        outcome: TaskRunOutcome,
    ) -> Result<bool, ScheduleError> {
        let ended = self.schedules.store().change(owner, |owned| {
            let is_this =
                |task: &&mut ScheduledTask| task.running.as_ref().is_some_and(|run| run.id == run_id);
            let Some(task) = owned.by_id(task_id).filter(is_this) else { return Ok(false) };
            task.running = None;
            task.last = Some(LastRun { due, outcome });
            if task.next_at.is_none() {
                let name = task.name.clone();
                owned.take(&name);
            }
            Ok(true)
        });
        ended.await
    }

    /// Removes the tasks of a key that was revoked or has expired.
    async fn end_owner(&self, firing: &TaskFiring, reason: &str) {
        let key = firing.owner.key_id().unwrap_or_default();
        tracing::info!(key, reason, "removed the scheduled tasks of a key");
        if let Err(error) = self.schedules.store().remove(&firing.owner).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove the tasks of a key");
        }
    }

    /// Extends the lease of a run for as long as it is polled.
    async fn extend_lease(&self, run_id: &str) -> ! {
        let mut times = interval(LEASE / 3);
        loop {
            times.tick().await;
            if let Err(error) = self.schedules.store().acquire_lease(run_id, &self.holder, LEASE).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot extend the lease of a running task");
            }
        }
    }

    /// Records a run that has ended, and tries again if the store fails.
    async fn record_end(&self, firing: &TaskFiring, run: &TaskRun) {
        let (mut is_added, mut pause) = (false, RECORD_PAUSE);
        for attempt in 1..=RECORD_ATTEMPTS {
            let Err(error) = self.try_record_end(firing, run, &mut is_added).await else { return };
            log_unrecorded(&firing.name, attempt, &error);
            if attempt < RECORD_ATTEMPTS {
                sleep(pause).await;
                pause *= 2;
            }
        }
    }

    /// Adds a run to the history first, so that subscribers of its resource find it.
    async fn try_record_end(
        &self,
        firing: &TaskFiring,
        run: &TaskRun,
        is_added: &mut bool,
    ) -> Result<(), ScheduleError> {
        if !*is_added {
            self.schedules.store().add_run(&firing.owner, run, self.settings.history).await?;
            *is_added = true;
        }
        self.finish(&firing.owner, &firing.task_id, &firing.run_id, run.due, run.outcome).await.map(drop)
    }

    fn task_run(&self, task: &str, due: i64, outcome: TaskRunOutcome, result: String) -> TaskRun {
        let ended_at = self.schedules.now().as_millisecond();
        let result = texts::bounded(result, self.settings.result_bytes);
        TaskRun { task: task.to_owned(), due, ended_at, outcome, result }
    }
}

fn log_unrecorded(task: &str, attempt: u32, error: &ScheduleError) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(task, attempt, error, "cannot record a run of a scheduled task");
}
