//! Requests to a legacy client, and its responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use toolyard_core::{InputRequest, InputRequestError, Json, Object};

use crate::server::notify::notice_queue::NoticeSender;
use crate::wire::{RequestId, RpcError, ask_method, message, method};

/// Maximum number of unanswered requests to one client.
const MAX_OPEN: usize = 64;

/// The unanswered requests to one client, by id.
#[derive(Debug)]
pub(in crate::server) struct OutboundRequests {
    next: AtomicU64,
    /// `None` once no response can come any more.
    open: Mutex<Option<OpenRequests>>,
}

type OpenRequests = HashMap<u64, oneshot::Sender<Result<Json, RpcError>>>;

impl Default for OutboundRequests {
    fn default() -> Self {
        Self { next: AtomicU64::default(), open: Mutex::new(Some(OpenRequests::new())) }
    }
}

impl OutboundRequests {
    /// Sends a request through `messages` and waits for the response.
    pub(super) async fn request(
        &self,
        ask: InputRequest,
        messages: &NoticeSender,
    ) -> Result<Json, InputRequestError> {
        let (sender, answer) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = self.lock();
            let open = open.as_mut().filter(|open| open.len() < MAX_OPEN).ok_or(InputRequestError::Gone)?;
            open.insert(id, sender);
        }
        let _withdrawn = OutboundCancelGuard { asks: self, id, messages };
        let request = message::request(&RequestId::number(id), ask_method(ask.kind), &ask.params);
        messages.send(request).await.map_err(|_| InputRequestError::Gone)?;
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(InputRequestError::Refused(error.body().clone())),
            Err(_) => Err(InputRequestError::Gone),
        }
    }

    /// Handles a response of the client. Late responses are ignored.
    pub(in crate::server) fn complete(&self, id: Option<&RequestId>, answer: Result<Json, RpcError>) {
        let sender = id.and_then(RequestId::to_number).and_then(|id| self.remove(id));
        if let Some(sender) = sender {
            let _left = sender.send(answer);
        }
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<Result<Json, RpcError>>> {
        self.lock().as_mut().and_then(|open| open.remove(&id))
    }

    /// Fails all requests: no response can come any more.
    pub(in crate::server) fn close(&self) {
        *self.lock() = None;
    }

    /// Closes this, and returns an empty set for the same client in a new session. The ids continue, so that a late
    /// response never answers a later request.
    pub(in crate::server) fn reopen(&self) -> Self {
        self.close();
        Self { next: AtomicU64::new(self.next.load(Ordering::Relaxed)), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<OpenRequests>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a request when it is dropped unanswered.
struct OutboundCancelGuard<'a> {
    asks: &'a OutboundRequests,
    id: u64,
    messages: &'a NoticeSender,
}

impl Drop for OutboundCancelGuard<'_> {
    fn drop(&mut self) {
        if self.asks.remove(self.id).is_some() {
            let params = Object::new().with("requestId", Json::unsigned(self.id));
            let notification = message::notification(method::CANCELLED, &params);
            let _is_sent = self.messages.try_send_with(|| Some(notification));
        }
    }
}
