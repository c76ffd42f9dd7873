//! Next times that the time zone or the clock no longer gives.

use jiff::Timestamp;

use crate::cron::CronExpression;
use crate::store::OwnerTasks;
use crate::task::{ScheduledTask, timestamp};
use crate::zone::ScheduleZone;

/// Milliseconds in the future from which a recorded run is attributed to a wrong clock, and ignored.
const CORRECTION: i64 = 24 * 60 * 60 * 1_000;

/// The check of next times.
pub(super) struct TimeCheck<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a ScheduleZone,
    /// `true` if the clock may have been set back since the times were computed.
    pub(super) is_clock_set_back: bool,
}

impl TimeCheck<'_> {
    /// Returns `true` if a task of the owned has a next time to compute again.
    pub(super) fn finds_any(&self, owned: &OwnerTasks) -> bool {
        owned.tasks.iter().any(|task| self.new_time(task).is_some())
    }

    /// Computes such times again.
    pub(super) fn apply(&self, owned: &mut OwnerTasks) {
        for task in &mut owned.tasks {
            if let Some(next) = self.new_time(task) {
                task.next_at = Some(next);
                task.zone = Some(self.zone.name().to_owned());
            }
        }
    }

    /// Returns the next time of a task that was computed in another time zone, or by a clock that was ahead. A time that
    /// is due remains, and so does that of a task that runs once: its agent was told it.
    fn new_time(&self, task: &ScheduledTask) -> Option<i64> {
        let now = self.now.as_millisecond();
        let current = task.next_at.filter(|next| *next > now && !task.run_once)?;
        let is_other_zone = task.zone.as_deref() != Some(self.zone.name());
        if !is_other_zone && !self.is_clock_set_back {
            return None;
        }
        let cron: CronExpression = task.cron.parse().ok()?;
        let last = task.last.map(|last| last.due).filter(|due| *due <= now.saturating_add(CORRECTION));
        let after = last.map_or(self.now, |last| self.now.max(timestamp(last)));
        let next = cron.next_after(after, &self.zone.zone)?.as_millisecond();
        (is_other_zone || next < current).then_some(next)
    }
}
