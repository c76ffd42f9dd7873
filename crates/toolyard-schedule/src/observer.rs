//! The port for records of runs, such as an audit trail.

use std::time::Duration;

use crate::task::{ScheduleOwner, TaskRunOutcome};

/// Observes the runs of this gateway.
pub trait RunObserver: Send + Sync {
    /// Reports a run that has ended. Runs that were left out are not reported.
    fn ended(&self, run: EndedRun<'_>);
}

/// A run that has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedRun<'a> {
    /// Id of the run.
    pub id: &'a str,
    /// Owner of the task.
    pub owner: &'a ScheduleOwner,
    /// Name of the task.
    pub task: &'a str,
    /// Outcome.
    pub outcome: TaskRunOutcome,
    /// Duration. `None` if another gateway ended during the run.
    pub took: Option<Duration>,
}
