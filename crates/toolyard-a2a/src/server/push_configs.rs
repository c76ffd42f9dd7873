//! The URLs that are notified of the tasks of a caller.

use std::sync::Arc;

use toolyard_core::Caller;

use super::push::{PushDelivery, PushSender};
use super::tasks::{ServedTasks, TaskClaim};
use crate::wire::push::PushConfig;
use crate::wire::rpc::{RpcError, code};

impl ServedTasks {
    fn push_sender(&self) -> Result<&Arc<PushSender>, RpcError> {
        let unsupported = || RpcError::new(code::PUSH_NOT_SUPPORTED, "the agent does not notify URLs");
        self.0.push.as_ref().ok_or_else(unsupported)
    }

    /// Checks a configuration of a client.
    ///
    /// # Errors
    /// If it is invalid, or there are no notifications.
    pub(super) fn checked_push(&self, config: PushConfig) -> Result<PushConfig, RpcError> {
        self.push_sender()?.checked(config)
    }

    /// Begins to notify a URL of the changes of a task. It replaces a configuration of the same id.
    ///
    /// # Errors
    /// If the caller has no such task, or it has too many configurations.
    pub(super) fn add_push(&self, caller: &Caller, config: PushConfig) -> Result<PushConfig, RpcError> {
        let sender = self.push_sender()?;
        let mut tasks = self.tasks();
        let task = tasks.get_mut(&config.task_id).filter(|task| task.owner == caller.principal);
        let task = task.ok_or_else(super::tasks::unknown)?;
        task.push.retain(|delivery| delivery.config.id != config.id);
        if task.push.len() >= sender.limit() {
            let reason = format!("the task has {} URLs, and may have no more: delete one", sender.limit());
            return Err(RpcError::new(code::INVALID_PARAMS, reason));
        }
        let claim = TaskClaim(task.task.subscribe());
        let run = self.spawn(sender.clone().deliver(config.clone(), claim))?;
        task.push.push(PushDelivery { config: config.clone(), run });
        Ok(config)
    }

    /// Returns a configuration of a task.
    ///
    /// # Errors
    /// If the caller has no such task, or it has no such configuration.
    pub(super) fn push(&self, caller: &Caller, task: &str, id: &str) -> Result<PushConfig, RpcError> {
        let configs = self.pushes(caller, task)?;
        configs.into_iter().find(|config| config.id == id).ok_or_else(unknown)
    }

    /// Returns the configurations of a task.
    ///
    /// # Errors
    /// If the caller has no such task, or there are no notifications.
    pub(super) fn pushes(&self, caller: &Caller, task: &str) -> Result<Vec<PushConfig>, RpcError> {
        self.push_sender()?;
        let tasks = self.tasks();
        let task = tasks.get(task).filter(|task| task.owner == caller.principal);
        let task = task.ok_or_else(super::tasks::unknown)?;
        Ok(task.push.iter().map(|delivery| delivery.config.clone()).collect())
    }

    /// Removes a configuration of a task.
    ///
    /// # Errors
    /// If the caller has no such task, or it has no such configuration.
    pub(super) fn remove_push(&self, caller: &Caller, task: &str, id: &str) -> Result<(), RpcError> {
        self.push_sender()?;
        let mut tasks = self.tasks();
        let task = tasks.get_mut(task).filter(|task| task.owner == caller.principal);
        let task = task.ok_or_else(super::tasks::unknown)?;
        let at = task.push.iter().position(|delivery| delivery.config.id == id).ok_or_else(unknown)?;
        task.push.remove(at);
        Ok(())
    }
}

fn unknown() -> RpcError {
    RpcError::new(code::TASK_NOT_FOUND, "the task has no such push notification configuration")
}
