//! The claim of one run, which is applied to the tasks of an owner by compare-and-swap.

use jiff::Timestamp;
use toolyard_manifest::{MissedRuns, ScheduleSettings};

use super::DueTask;
use crate::action::TaskFiring;
use crate::cron::CronExpression;
use crate::store::OwnerTasks;
use crate::task::{ClaimedRun, LastRun, ScheduledTask, TaskRun, TaskRunOutcome, timestamp};
use crate::zone::ScheduleZone;

/// Reason of a missed run.
const MISSED: &str = "no gateway fired it in time: none was running, the store was unavailable, or the clock was \
    changed";

/// A claim of a run.
pub(super) struct Claim<'a> {
    pub(super) due: &'a DueTask,
    pub(super) run_id: &'a str,
    pub(super) now: Timestamp,
    pub(super) settings: &'a ScheduleSettings,
    pub(super) zone: &'a ScheduleZone,
}

/// Outcome of a claim.
pub(super) enum ClaimOutcome {
    /// The task is to fire.
    Fire(Box<TaskFiring>),
    /// The run is left out, as recorded.
    Record(TaskRun),
    /// Another gateway has claimed it, or the task is gone.
    Taken,
}

impl Claim<'_> {
    /// Claims the run, and moves the task to its next time. A task without another time is removed.
    pub(super) fn apply(&self, owned: &mut OwnerTasks) -> ClaimOutcome {
        let due = self.due.due;
        let Some(task) = owned.by_id(&self.due.task.id).filter(|task| task.next_at == Some(due)) else {
            return ClaimOutcome::Taken;
        };
        let left_out = self.left_out(task);
        task.next_at = self.next(task);
        task.zone = Some(self.zone.name().to_owned());
        let outcome = match left_out {
            None => {
                task.running = Some(ClaimedRun { id: self.run_id.to_owned(), due });
                ClaimOutcome::Fire(Box::new(self.firing(task)))
            }
            Some((outcome, reason)) => {
                task.last = Some(LastRun { due, outcome });
                let ended_at = self.now.as_millisecond();
                let result = reason.to_owned();
                ClaimOutcome::Record(TaskRun { task: task.name.clone(), due, ended_at, outcome, result })
            }
        };
        if task.next_at.is_none() && task.running.is_none() {
            let name = task.name.clone();
            owned.take(&name);
        }
        outcome
    }

    /// Returns the reason to leave the run out, if there is one.
    fn left_out(&self, task: &ScheduledTask) -> Option<(TaskRunOutcome, &'static str)> {
        let makes_up = task.run_once || self.settings.missed == MissedRuns::Once;
        if task.running.is_some() {
            return Some((TaskRunOutcome::Skipped, "the run before was still running"));
        }
        (!self.due.is_on_time && !makes_up).then_some((TaskRunOutcome::Missed, MISSED))
    }

    /// Returns the time after this run, which is in the future.
    fn next(&self, task: &ScheduledTask) -> Option<i64> {
        if task.run_once {
            return None;
        }
        let cron: CronExpression = task.cron.parse().ok()?;
        let after = self.now.max(timestamp(self.due.due));
        cron.next_after(after, &self.zone.zone).map(Timestamp::as_millisecond)
    }

    fn firing(&self, task: &ScheduledTask) -> TaskFiring {
        TaskFiring {
            owner: self.due.owner.clone(),
            task_id: task.id.clone(),
            name: task.name.clone(),
            description: task.description.clone(),
            run_id: self.run_id.to_owned(),
            due: timestamp(self.due.due),
        }
    }
}
