//! What a legacy client is asked: requests of ours, and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use toolyard_core::{Ask, AskError, Json, Object};

use crate::wire::{Id, RpcError, message, method, method_of};

/// Questions that may be open to one client. It answers with as much work as it likes; this bounds ours.
const MOST_OPEN: usize = 64;

/// The questions that are open to one client, by the ids of their requests.
#[derive(Debug)]
pub(super) struct Asks {
    next: AtomicU64,
    /// `None` once nothing more comes from the client.
    open: Mutex<Option<Open>>,
}

type Open = HashMap<u64, oneshot::Sender<Result<Json, RpcError>>>;

impl Default for Asks {
    fn default() -> Self {
        Self { next: AtomicU64::default(), open: Mutex::new(Some(Open::new())) }
    }
}

impl Asks {
    /// Asks through `messages`, and waits for the answer.
    pub(super) async fn ask(&self, ask: Ask, messages: &mpsc::Sender<Bytes>) -> Result<Json, AskError> {
        let (sender, answer) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = self.lock();
            let open = open.as_mut().filter(|open| open.len() < MOST_OPEN).ok_or(AskError::Gone)?;
            open.insert(id, sender);
        }
        let _withdrawn = Withdrawal { asks: self, id, messages };
        let request = message::request(&Id::number(id), method_of(ask.kind), &ask.params);
        messages.send(request).await.map_err(|_| AskError::Gone)?;
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(AskError::Refused(error.body().clone())),
            Err(_) => Err(AskError::Gone),
        }
    }

    /// Takes a response of the client. One that nobody waits for may be late.
    pub(super) fn answered(&self, id: Option<&Id>, answer: Result<Json, RpcError>) {
        let asked = id.and_then(Id::to_number).and_then(|id| self.remove(id));
        if let Some(asked) = asked {
            let _left = asked.send(answer);
        }
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<Result<Json, RpcError>>> {
        self.lock().as_mut().and_then(|open| open.remove(&id))
    }

    /// Nothing more comes from the client.
    pub(super) fn close(&self) {
        *self.lock() = None;
    }

    /// Closes this; gives those of the same client in another session. Numbers go on: an answer that comes late is
    /// none to a later question.
    pub(super) fn renewed(&self) -> Self {
        self.close();
        Self { next: AtomicU64::new(self.next.load(Ordering::Relaxed)), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the client that a question is not asked any more, when it is dropped unanswered.
struct Withdrawal<'a> {
    asks: &'a Asks,
    id: u64,
    messages: &'a mpsc::Sender<Bytes>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if self.asks.remove(self.id).is_some() {
            let params = Object::new().with("requestId", Json::unsigned(self.id));
            let _full = self.messages.try_send(message::notification(method::CANCELLED, &params));
        }
    }
}
