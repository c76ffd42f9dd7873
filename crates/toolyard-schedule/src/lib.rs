//! Scheduled tasks: agents schedule them by tools, and the gateway fires them.
//!
//! - [`cron`]: cron expressions and their next times;
//! - [`zone`]: the time zone of a gateway;
//! - [`task`]: tasks and runs as stored;
//! - [`store`]: the tasks and the history of each owner in a store;
//! - [`schedules`]: the tasks as the tools and the scheduler share them;
//! - [`scheduler`]: fires tasks that are due;
//! - [`action`]: actions of a task that fires;
//! - [`observer`]: the port for records of runs;
//! - [`tools`], [`resources`]: what agents see;
//! - [`error`]: errors that a model reads.
//!
//! # Ownership
//!
//! A task belongs to the key of its caller, and runs with the rights and the quotas that this key has when it fires.
//! Callers without a key, if the gateway requires none, are one owner.
//!
//! # Several gateways
//!
//! All tasks of an owner are one value in the store, which is changed by compare-and-swap. A gateway claims a run by
//! moving the task to its next time, so that each time of a task is claimed once. While the run lasts, the gateway
//! extends a lease; if it expires, another gateway records that the run was interrupted, and does not repeat it.

pub mod action;
pub mod cron;
pub mod error;
pub mod observer;
pub mod resources;
pub mod scheduler;
pub mod schedules;
pub mod store;
pub mod task;
mod texts;
pub mod tools;
pub mod zone;

#[cfg(test)]
mod testing;

pub use action::{MessagePublisher, OwnerDirectory, OwnerRefusal, TaskActions, TaskMessage};
pub use observer::{EndedRun, RunObserver};
pub use resources::ScheduleBackend;
pub use scheduler::Scheduler;
pub use schedules::Schedules;
pub use task::{ScheduleOwner, TaskRunOutcome};
pub use tools::{CANCEL, LIST, NAMES, SCHEDULE, add};

/// Name, summary and text of the guide for models.
pub const GUIDE: [&str; 3] = [
    "scheduling",
    "Schedule tasks that the gateway runs later, once or again and again, list and cancel them",
    include_str!("guide.md"),
];
