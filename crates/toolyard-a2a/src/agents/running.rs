//! The running tasks, whose number is limited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use toolyard_manifest::AgentSettings;

use crate::error::InvokeError;
use crate::tasks::{AgentTask, AgentTaskOwner};

/// The running tasks by their ids.
#[derive(Default)]
pub(super) struct RunningTasks(Mutex<HashMap<String, CancellableTask>>);

struct CancellableTask {
    owner: AgentTaskOwner,
    task: AgentTask,
    cancellation: Arc<Notify>,
}

/// The place of a running task, which it leaves when dropped.
pub(super) struct TaskSlot {
    running: Arc<RunningTasks>,
    id: String,
    /// Notified once the caller cancels the task.
    pub(super) cancellation: Arc<Notify>,
}

impl RunningTasks {
    /// Adds a task.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn start(
        self: &Arc<Self>,
        owner: &AgentTaskOwner,
        task: &AgentTask,
        settings: &AgentSettings,
    ) -> Result<TaskSlot, InvokeError> {
        let mut running = self.running();
        let of_owner = running.values().filter(|running| running.owner == *owner).count();
        if of_owner >= settings.concurrent_of_key() {
            return Err(InvokeError::TooManyOfCaller(settings.concurrent_of_key()));
        }
        if running.len() >= settings.concurrent {
            return Err(InvokeError::TooMany(settings.concurrent));
        }
        let cancellation = Arc::<Notify>::default();
        let (owner, task) = (owner.clone(), task.clone());
        let slot =
            TaskSlot { running: self.clone(), id: task.id.clone(), cancellation: cancellation.clone() };
        running.insert(task.id.clone(), CancellableTask { owner, task, cancellation });
        Ok(slot)
    }

    /// Cancels a task of an owner. One that has ended stays as it is.
    pub(super) fn cancel(&self, owner: &AgentTaskOwner, id: &str) {
        if let Some(running) = self.running().get(id).filter(|running| running.owner == *owner) {
            running.cancellation.notify_one();
        }
    }

    /// Returns all tasks as they started.
    pub(super) fn list(&self) -> Vec<(AgentTaskOwner, AgentTask)> {
        self.running().values().map(|running| (running.owner.clone(), running.task.clone())).collect()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, CancellableTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        self.running.running().remove(&self.id);
    }
}
