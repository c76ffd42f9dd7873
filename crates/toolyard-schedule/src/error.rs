//! Errors of schedules.

use std::time::Duration;

use toolyard_core::store::StoreError;

use crate::cron::CronError;

/// Error of schedules. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The name is invalid.
    #[error("name: expected 1 to {0} visible characters in one line, such as `morning-report`")]
    BadName(usize),
    /// The description is empty.
    #[error("description: is empty; expected the instruction for the time of the run")]
    NoDescription,
    /// The description is too long.
    #[error("description: has {bytes} bytes, and a task may have {limit}. Shorten it.")]
    LongDescription {
        /// Bytes of the description.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The cron expression is invalid.
    #[error(
        "cron: {0}. Examples: `0 9 * * 1-5` is 9:00 on weekdays, `*/15 * * * *` every 15 minutes, `0 0 9 * * 1-5` has seconds \
         first. The task is not scheduled."
    )]
    Cron(#[from] CronError),
    /// The task would fire too often.
    #[error(
        "cron: fires every {actual} s, and tasks may fire every {limit} s at most. The task is not scheduled.",
        actual = .actual.as_secs_f64(), limit = .limit.as_secs_f64()
    )]
    TooOften {
        /// Shortest time between two runs.
        actual: Duration,
        /// Minimum of it.
        limit: Duration,
    },
    /// There are too many tasks of the owner.
    #[error(
        "The task is not scheduled: there are {limit} tasks, and there may be no more. Cancel one that is no longer needed."
    )]
    TooMany {
        /// Maximum number of tasks.
        limit: usize,
    },
    /// There are too many tasks of all owners.
    #[error(
        "The task is not scheduled: the gateway has as many tasks as it may have. Ask its operator for more."
    )]
    Full,
    /// Concurrent writers change the tasks too often.
    #[error("The tasks are being changed by others at the same time. Try again.")]
    Contended,
    /// The group is switched off.
    #[error("Schedules are switched off.")]
    Disabled,
    /// The store failed.
    #[error("Scheduled tasks cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
