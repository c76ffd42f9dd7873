//! Messages of a server that share a single stream: matches responses with requests, and dispatches the rest.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use toolyard_core::{Client, ClientNotification, NotificationBody};
use toolyard_net::budget::{BudgetExhausted, ByteBudget, SMALL_MESSAGE};

use super::non_messages::{SkippedMessages, id_of_fragment, id_of_malformed};
use super::{
    ConnectionSignals, OutgoingRequest, TransportError, UpstreamResult, cancel_params, client_notification,
    messages_in, parse_message, progress_request,
};
use crate::client::server_requests::ServerRequestRouter;
use crate::wire::{RpcMessage, message, method};

/// The unanswered requests by id; `None` once no response can come any more.
pub(super) struct PendingRequests {
    requests: Mutex<Option<HashMap<u64, PendingRequest>>>,
}

struct PendingRequest {
    answer: oneshot::Sender<Result<UpstreamResult, TransportError>>,
    client: Arc<dyn Client>,
    /// Name of the caller that the answer is for, if it has one.
    owner: Option<Arc<str>>,
}

/// A wait for a response. Dropping it before the response cancels the request.
pub(super) struct ResponseWaiter<'a> {
    pending: &'a PendingRequests,
    outbox: &'a mpsc::Sender<Vec<Bytes>>,
    id: u64,
    answer: oneshot::Receiver<Result<UpstreamResult, TransportError>>,
}

/// Receives the messages of a server.
pub(super) struct MessageInbox {
    /// Name of the server, for the log.
    pub(super) name: Arc<str>,
    pub(super) pending: Arc<PendingRequests>,
    /// Queue of responses to requests of the server.
    pub(super) outbox: mpsc::Sender<Vec<Bytes>>,
    pub(super) signals: Arc<ConnectionSignals>,
    /// Requests of the server to clients.
    pub(super) server_requests: Arc<ServerRequestRouter>,
    /// Counts text that is not a message.
    pub(super) skipped: SkippedMessages,
    /// Budget of the answers, of which each caller has a share.
    pub(super) budget: ByteBudget,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self { requests: Mutex::new(Some(HashMap::new())) }
    }
}

impl PendingRequests {
    /// Registers a request that is about to be sent; `None` if no response can come any more.
    pub(super) fn register<'a>(
        &'a self,
        request: &OutgoingRequest,
        client: &Arc<dyn Client>,
        outbox: &'a mpsc::Sender<Vec<Bytes>>,
    ) -> Option<ResponseWaiter<'a>> {
        let (sender, answer) = oneshot::channel();
        let (id, owner) = (request.id, request.owner.clone());
        self.lock().as_mut()?.insert(id, PendingRequest { answer: sender, client: client.clone(), owner });
        Some(ResponseWaiter { pending: self, outbox, id, answer })
    }

    /// True once no response can come any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, PendingRequest>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, id: u64) -> Option<PendingRequest> {
        self.lock().as_mut()?.remove(&id)
    }

    fn client(&self, id: u64) -> Option<Arc<dyn Client>> {
        Some(self.lock().as_ref()?.get(&id)?.client.clone())
    }
}

impl ResponseWaiter<'_> {
    /// Waits for the response; `None` if none can come any more.
    pub(super) async fn wait(&mut self) -> Option<Result<UpstreamResult, TransportError>> {
        (&mut self.answer).await.ok()
    }

    /// Removes a request that the server has not received, so that it is not cancelled.
    pub(super) fn discard(self) {
        self.pending.remove(self.id);
    }
}

impl Drop for ResponseWaiter<'_> {
    fn drop(&mut self) {
        if self.pending.remove(self.id).is_none() {
            return;
        }
        let cancellation = vec![message::notification(method::CANCELLED, &cancel_params(self.id))];
        if self.outbox.try_send(cancellation).is_err() {
            tracing::debug!("dropped a cancellation: the queue is full");
        }
    }
}

impl MessageInbox {
    /// Handles a message, or those of a batch.
    pub(super) fn handle_message(&self, line: Bytes) {
        match messages_in(line) {
            Ok(messages) => messages.into_iter().for_each(|message| self.handle_one(message)),
            Err(error) => self.skipped.record(&error),
        }
    }

    fn handle_one(&self, line: Bytes) {
        self.signals.received.fetch_add(1, Ordering::Relaxed);
        match parse_message(line.clone()) {
            Ok(RpcMessage::Response { id, answer }) => {
                self.complete(id.and_then(|id| id.to_lenient_number()), Ok(answer));
            }
            Ok(RpcMessage::Notification { method, body }) => {
                self.signals.unsolicited.fetch_add(1, Ordering::Relaxed);
                self.handle_notification(&method, body);
            }
            Ok(RpcMessage::Request { id, method, params, .. }) => {
                self.signals.unsolicited.fetch_add(1, Ordering::Relaxed);
                if let Some(response) = self.server_requests.handle_request(None, id, &method, params) {
                    // Not awaited: a server that does not read while it writes would block both sides.
                    let _full = self.outbox.try_send(response);
                }
            }
            Err(error) => {
                self.skipped.record(&error);
                // Programs print other text to standard output, which is ignored. But the line may be a malformed
                // response that a call is waiting for.
                self.complete(id_of_malformed(&line), Err(error));
            }
        }
    }

    /// Handles a message over the size limit: its request fails.
    pub(super) fn handle_oversized(&self, ends: &[u8], limit: usize) {
        tracing::warn!(handler = %self.name, limit, "skipped a message over the size limit");
        self.complete(id_of_fragment(ends), Err(TransportError::TooLarge(limit)));
    }

    /// Handles a message that did not fit the memory budget: its request fails.
    pub(super) fn handle_unbuffered(&self, ends: &[u8]) {
        tracing::warn!(handler = %self.name, "skipped a message: memory budget exhausted");
        self.complete(id_of_fragment(ends), Err(TransportError::NoMemory(BudgetExhausted)));
    }

    fn complete(&self, id: Option<u64>, answer: Result<UpstreamResult, TransportError>) {
        if let Some(request) = id.and_then(|id| self.pending.remove(id)) {
            let answer = answer.and_then(|answer| self.charge(request.owner.as_ref(), answer));
            // The caller may have gone at this moment.
            let _left = request.answer.send(answer);
        }
    }

    /// Charges an answer to the share of its caller, or else of the server. All callers share the stream, so that an answer
    /// beyond the share does not wait for the others to be read: it is dropped.
    fn charge(
        &self,
        owner: Option<&Arc<str>>,
        answer: UpstreamResult,
    ) -> Result<UpstreamResult, TransportError> {
        match answer {
            Ok(result) if result.as_bytes().len() > SMALL_MESSAGE => {
                let budget = owner.map(|owner| self.budget.owned_by(owner));
                let charged = budget.as_ref().unwrap_or(&self.budget).try_charge(result.as_bytes().len())?;
                Ok(Ok(result.with_bytes(|bytes| charged.hold(bytes))))
            }
            answer => Ok(answer),
        }
    }

    fn handle_notification(&self, method: &str, body: NotificationBody) {
        match method {
            method::PROGRESS => {
                if let Some(client) = progress_request(&body.params).and_then(|id| self.pending.client(id)) {
                    client.notify(ClientNotification::Progress(body));
                }
            }
            method::CANCELLED => self.server_requests.handle_cancellation(&body.params),
            method::ELICIT_COMPLETE => self.server_requests.url_elicitations.complete(body),
            method => match client_notification(method, body) {
                Ok(notice) => self.server_requests.forward_notice(notice),
                Err(body) => self.signals.handle_notification(method, &body.params),
            },
        }
    }

    /// Closes the inbox: all pending requests fail.
    pub(super) fn close(&self) {
        drop(self.pending.lock().take());
        self.signals.connection_lost.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_ids_match_numbers() {
        for (id, number) in [("3", Some(3)), (r#""3""#, Some(3)), (r#""x""#, None), ("3.5", None)] {
            let line = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            let Ok(RpcMessage::Response { id, .. }) = parse_message(line) else { panic!("{number:?}") };
            assert_eq!(id.and_then(|id| id.to_lenient_number()), number);
        }
    }
}
