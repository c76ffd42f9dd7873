//! Requests to a legacy client, and its responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
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
    /// True from then on.
    is_closed: watch::Sender<bool>,
}

type OpenRequests = HashMap<u64, oneshot::Sender<ClientAnswer>>;

/// The result of a client, or its error.
type ClientAnswer = Result<Json, RpcError>;

/// The queue of the stream for messages that belong to no request; `None` until the client opens the stream.
pub(in crate::server) type SessionStream = Option<NoticeSender>;

impl Default for OutboundRequests {
    fn default() -> Self {
        let open = Mutex::new(Some(OpenRequests::new()));
        Self { next: AtomicU64::default(), open, is_closed: watch::Sender::default() }
    }
}

impl OutboundRequests {
    /// Sends a request through `messages` and waits for the response.
    pub(super) async fn request(
        &self,
        ask: InputRequest,
        messages: &NoticeSender,
    ) -> Result<Json, InputRequestError> {
        let (id, answer) = self.register()?;
        let cancel = |notification| _ = messages.try_send_with(|| Some(notification));
        let _withdrawn = OutboundCancelGuard { asks: self, id, cancel: &cancel };
        let request = message::request(&RequestId::number(id), ask_method(ask.kind), &ask.params);
        messages.send(request).await.map_err(|_| InputRequestError::Gone)?;
        received(answer.await)
    }

    /// Sends a request that belongs to no call, once the client has a stream for it, and waits for the response.
    pub(super) async fn request_in_session(
        &self,
        ask: InputRequest,
        mut streams: watch::Receiver<SessionStream>,
        cancel: &(dyn Fn(Bytes) + Sync),
    ) -> Result<Json, InputRequestError> {
        let (id, mut answer) = self.register()?;
        let _withdrawn = OutboundCancelGuard { asks: self, id, cancel };
        let request = message::request(&RequestId::number(id), ask_method(ask.kind), &ask.params);
        tokio::select! {
            // The session may end before the client has a stream.
            ended = &mut answer => received(ended),
            is_sent = send_to_latest(&mut streams, request) => match is_sent {
                true => received(answer.await),
                false => Err(InputRequestError::Gone),
            },
        }
    }

    fn register(&self) -> Result<(u64, oneshot::Receiver<ClientAnswer>), InputRequestError> {
        let (sender, answer) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.lock();
        let open = open.as_mut().filter(|open| open.len() < MAX_OPEN).ok_or(InputRequestError::Gone)?;
        open.insert(id, sender);
        Ok((id, answer))
    }

    /// Waits until no response can come any more.
    pub(super) async fn closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // The sender is part of this.
        let _closed = is_closed.wait_for(|is_closed| *is_closed).await;
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
        self.is_closed.send_replace(true);
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

/// Sends a message to the stream that the client has, or will have. Returns false if it will have none.
async fn send_to_latest(streams: &mut watch::Receiver<SessionStream>, message: Bytes) -> bool {
    loop {
        let stream = streams.borrow_and_update().clone();
        if let Some(stream) = stream
            && stream.send(message.clone()).await.is_ok()
        {
            return true;
        }
        if streams.changed().await.is_err() {
            return false;
        }
    }
}

fn received(answer: Result<ClientAnswer, oneshot::error::RecvError>) -> Result<Json, InputRequestError> {
    match answer {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(InputRequestError::Refused(error.body().clone())),
        Err(_) => Err(InputRequestError::Gone),
    }
}

/// Cancels a request when it is dropped unanswered.
struct OutboundCancelGuard<'a> {
    asks: &'a OutboundRequests,
    id: u64,
    /// Sends the cancellation.
    cancel: &'a (dyn Fn(Bytes) + Sync),
}

impl Drop for OutboundCancelGuard<'_> {
    fn drop(&mut self) {
        if self.asks.remove(self.id).is_some() {
            let params = Object::new().with("requestId", Json::unsigned(self.id));
            (self.cancel)(message::notification(method::CANCELLED, &params));
        }
    }
}
