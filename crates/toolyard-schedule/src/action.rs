//! Actions of a task that fires. The manifest chooses the action.
//!
//! - `call`: the call of a tool, with `template` for its arguments;
//! - `message`: a message on a bus, with `template` for its body;
//! - `webhook`: a signed webhook.
//!
//! Another kind of action is a variant of [`ScheduleAction`] with its fields and secrets, a module here, and an arm in
//! `TaskActions::act`, which spends the quota of the owner unless the gateway counts the call.

mod call;
mod message;
mod template;
mod webhook;

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use toolyard_core::access::CallPrice;
use toolyard_core::{Caller, Gateway};
use toolyard_manifest::{HandlerConfig, ScheduleAction, ScheduleSettings};

use self::webhook::WebhookSender;
use crate::task::ScheduleOwner;
use crate::tools::SCHEDULE;
use crate::zone::ScheduleZone;

/// The current rights of owners.
pub trait OwnerDirectory: Send + Sync {
    /// Returns the caller of the tasks of an owner, with its current rights.
    fn caller<'a>(&'a self, owner: &'a ScheduleOwner) -> BoxFuture<'a, Result<Caller, OwnerRefusal>>;
}

/// Publishes messages on a bus.
pub trait MessagePublisher: Send + Sync {
    /// Publishes a message, and returns once the bus has accepted it.
    ///
    /// # Errors
    /// The reason, for the history.
    fn publish(&self, message: TaskMessage) -> BoxFuture<'_, Result<(), String>>;
}

/// The message of a task that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMessage {
    /// Topic of the message.
    pub topic: String,
    /// Type of the message.
    pub message_type: String,
    /// Id of the run.
    pub run_id: String,
    /// Body: a JSON object.
    pub body: String,
}

/// The reason why the tasks of an owner do not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerRefusal {
    /// The key was revoked or has expired: its tasks end.
    #[error("the key {0}")]
    Ended(&'static str),
    /// The tasks do not run now.
    #[error("{0}")]
    Refused(String),
}

/// A run of a task.
#[derive(Debug, Clone)]
pub(crate) struct TaskFiring {
    pub(crate) owner: ScheduleOwner,
    pub(crate) task_id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) run_id: String,
    pub(crate) due: Timestamp,
}

/// The failure of a run.
#[derive(Debug)]
pub(crate) enum TaskFailure {
    /// The tasks of the owner end.
    OwnerEnded(&'static str),
    /// The reason, for the history.
    Failed(String),
}

/// Carries out actions.
#[derive(Clone)]
pub struct TaskActions {
    gateway: Weak<Gateway>,
    owners: Arc<dyn OwnerDirectory>,
    webhooks: Arc<WebhookSender>,
    publisher: Option<Arc<dyn MessagePublisher>>,
}

impl TaskActions {
    /// Returns the actions of a gateway.
    #[must_use]
    pub fn new(gateway: Weak<Gateway>, owners: Arc<dyn OwnerDirectory>) -> Self {
        Self { gateway, owners, webhooks: Arc::default(), publisher: None }
    }

    /// Sets the bus for messages.
    #[must_use]
    pub fn publishing(self, publisher: Arc<dyn MessagePublisher>) -> Self {
        Self { publisher: Some(publisher), ..self }
    }

    /// Fires a task with the current rights of its owner, and returns the result.
    pub(crate) async fn fire(
        &self,
        firing: &TaskFiring,
        settings: &ScheduleSettings,
        zone: &ScheduleZone,
    ) -> Result<String, TaskFailure> {
        let caller = self.owners.caller(&firing.owner).await.map_err(|refusal| match refusal {
            OwnerRefusal::Ended(reason) => TaskFailure::OwnerEnded(reason),
            OwnerRefusal::Refused(reason) => TaskFailure::Failed(reason),
        })?;
        if let Some(grant) = &caller.grant
            && !grant.scope.allows_name(HandlerConfig::BUILTINS, SCHEDULE)
        {
            return Err(TaskFailure::Failed(format!("the key may no longer use {SCHEDULE}")));
        }
        let time = zone.rfc_3339(firing.due);
        self.act(settings.action.as_ref(), caller, firing, &time).await.map_err(TaskFailure::Failed)
    }

    /// Carries out an action. Without one, the description is the result: a reminder.
    async fn act(
        &self,
        action: Option<&ScheduleAction>,
        caller: Caller,
        firing: &TaskFiring,
        time: &str,
    ) -> Result<String, String> {
        match action {
            Some(ScheduleAction::Tool(tool)) => call::call(tool, &self.gateway, caller, firing, time).await,
            Some(ScheduleAction::Webhook(webhook)) => {
                spend(&caller).await?;
                self.webhooks.send(webhook, firing, time).await
            }
            Some(ScheduleAction::Bus(message)) => {
                let publisher = self.publisher.as_ref().ok_or("the gateway has no message bus")?;
                spend(&caller).await?;
                publisher.publish(message::of_task(message, firing, time)).await?;
                Ok(format!("published on {}", message.topic))
            }
            None => spend(&caller).await.map(|()| firing.description.clone()),
        }
    }
}

/// Counts a run as a call of its key, unless the gateway counts it.
async fn spend(caller: &Caller) -> Result<(), String> {
    match caller.grant.as_ref().and_then(|grant| grant.allowance.as_ref()) {
        Some(allowance) => allowance.take(CallPrice::default()).await.map_err(|error| error.to_string()),
        None => Ok(()),
    }
}
