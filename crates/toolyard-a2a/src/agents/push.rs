//! Notifications of agents about tasks that they were given.
//!
//! A notification makes the gateway ask for the task at once. Its content is not used otherwise, so that a forged one changes
//! nothing but the time of a request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use toolyard_core::random::{hex, random_bytes};

use super::Agents;
use crate::client::error::AgentError;
use crate::wire::task::TaskEvent;

/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Digest of a token, by which it is found: the time of the search tells nothing about the token.
type TokenDigest = [u8; 32];

/// The tasks that wait for notifications, by their tokens.
#[derive(Default)]
pub(super) struct PushReceivers(Mutex<HashMap<TokenDigest, Arc<PushReceiver>>>);

#[derive(Default)]
struct PushReceiver {
    arrived: Notify,
    /// Id of the task that the agent has given.
    task: OnceLock<String>,
}

/// A task that waits for notifications, until it is dropped.
pub(super) struct PushSubscription {
    receivers: Arc<PushReceivers>,
    receiver: Arc<PushReceiver>,
    digest: TokenDigest,
    url: String,
    token: String,
}

/// A notification that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// No running task has this token.
    #[error("no running task has the token of the notification")]
    UnknownToken,
    /// The body is no event, or one of another task.
    #[error("the notification is none about the task of its token")]
    WrongTask,
}

impl Agents {
    /// Checks the token of a notification, before its body is read.
    ///
    /// # Errors
    /// If no running task has it.
    pub fn check_token(&self, token: &str) -> Result<(), PushError> {
        self.0.push.find(token).map(drop)
    }

    /// Receives a notification.
    ///
    /// # Errors
    /// If no running task has the token, or the body is about another one.
    pub fn notify(&self, token: &str, body: &[u8]) -> Result<(), PushError> {
        self.0.push.pass(token, body)
    }
}

impl PushReceivers {
    /// Returns a subscription with a new token.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub(super) fn subscribe(self: &Arc<Self>, url: &str) -> Result<PushSubscription, AgentError> {
        let bytes = random_bytes::<TOKEN_BYTES>().map_err(AgentError::no_client)?;
        let token = hex(&bytes);
        let (digest, receiver) = (digest(&token), Arc::<PushReceiver>::default());
        self.receivers().insert(digest, receiver.clone());
        Ok(PushSubscription { receivers: self.clone(), receiver, digest, url: url.to_owned(), token })
    }

    fn pass(&self, token: &str, body: &[u8]) -> Result<(), PushError> {
        let receiver = self.find(token)?;
        let id = serde_json::from_slice(body).ok().and_then(task_id).ok_or(PushError::WrongTask)?;
        // The agent may notify before it has answered the message.
        if receiver.task.get().is_some_and(|task| *task != id) {
            return Err(PushError::WrongTask);
        }
        receiver.arrived.notify_one();
        Ok(())
    }

    fn find(&self, token: &str) -> Result<Arc<PushReceiver>, PushError> {
        self.receivers().get(&digest(token)).cloned().ok_or(PushError::UnknownToken)
    }

    fn receivers(&self) -> MutexGuard<'_, HashMap<TokenDigest, Arc<PushReceiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PushSubscription {
    /// Returns the URL and the token for the agent.
    pub(super) fn target(&self) -> (&str, &str) {
        (&self.url, &self.token)
    }

    /// Sets the id that the agent has given the task.
    pub(super) fn name(&self, task: &str) {
        let _is_first = self.receiver.task.set(task.to_owned()).is_ok();
    }

    /// Waits for a notification.
    pub(super) async fn arrived(&self) {
        self.receiver.arrived.notified().await;
    }
}

impl Drop for PushSubscription {
    fn drop(&mut self) {
        self.receivers.receivers().remove(&self.digest);
    }
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// Returns the id of the task that an event is about; version 0.3 sends the task itself.
fn task_id(event: Value) -> Option<String> {
    let id = match TaskEvent::of_value(event.clone()) {
        Ok(TaskEvent::Task(task)) => task.id,
        Ok(TaskEvent::Message(message)) => message.task_id,
        Ok(TaskEvent::StatusUpdate(update)) => update.task_id,
        Ok(TaskEvent::ArtifactUpdate(update)) => update.task_id,
        Err(_) => event.get("id")?.as_str()?.to_owned(),
    };
    (!id.is_empty()).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tasks_of_events() {
        let check = |event: Value, expected: Option<&str>| assert_eq!(task_id(event).as_deref(), expected);
        check(json!({"task": {"id": "1", "status": {}}}), Some("1"));
        check(json!({"statusUpdate": {"taskId": "1", "status": {}}}), Some("1"));
        check(json!({"artifactUpdate": {"taskId": "1"}}), Some("1"));
        check(json!({"message": {"taskId": "1"}}), Some("1"));
        check(json!({"message": {}}), None);
        check(json!({"kind": "task", "id": "1", "status": {}}), Some("1"));
        check(json!({"id": "1", "status": {}}), Some("1"));
        check(json!([]), None);
        check(json!({"id": 1}), None);
    }

    #[tokio::test]
    async fn notifications_are_about_the_task_of_their_token() -> Result<(), AgentError> {
        let receivers = Arc::<PushReceivers>::default();
        let event = |id: &str| json!({"task": {"id": id, "status": {}}}).to_string();
        let [one, other] = [receivers.subscribe("http://a")?, receivers.subscribe("http://a")?];
        let pass = |to: &PushSubscription, id: &str| receivers.pass(to.target().1, event(id).as_bytes());
        assert_eq!(pass(&one, "1"), Ok(()), "the id is not known yet");
        one.arrived().await;
        one.name("1");
        assert_eq!(pass(&one, "2"), Err(PushError::WrongTask));
        assert_eq!(pass(&one, "1"), Ok(()));
        assert_eq!(receivers.pass(one.target().1, b"<html>"), Err(PushError::WrongTask));
        let token = other.target().1.to_owned();
        drop(other);
        assert_eq!(receivers.pass(&token, event("1").as_bytes()), Err(PushError::UnknownToken));
        assert_eq!(receivers.receivers().len(), 1);
        Ok(())
    }
}
