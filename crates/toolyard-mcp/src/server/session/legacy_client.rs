//! The state of a legacy client, independent of the transport.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use tokio::sync::watch;
use toolyard_core::{InputRequest, Json, LogLevel, Object};
use toolyard_net::budget::ByteBudget;

use crate::server::interaction::outbound_requests::{OutboundRequests, SessionStream};
use crate::server::notify::notice_queue::{NoticeReceiver, notice_queue};
use crate::server::notify::notification_sink::enqueue;
use crate::wire::{ProtocolRevision, RequestId};

/// A set of resource URIs.
pub(in crate::server) type UriSet = BTreeSet<Arc<str>>;

/// Maximum number of resources that a client may follow.
pub(in crate::server) const MAX_FOLLOWED: usize = 1000;

/// A legacy client.
#[derive(Debug)]
pub(in crate::server) struct LegacyClient {
    /// The negotiated revision.
    revision: ProtocolRevision,
    /// The declared capabilities.
    capabilities: Json,
    /// True if its model can be given tools.
    lends_model: bool,
    /// Index of [`LogLevel::ALL`].
    log_level: AtomicUsize,
    pub(in crate::server) outbound_requests: OutboundRequests,
    pub(in crate::server) requests: Arc<CancellableRequests>,
    followed: watch::Sender<UriSet>,
    /// Queue of the stream of messages that belong to no request, if one is open.
    notification_stream: watch::Sender<SessionStream>,
    /// Memory budget of queued messages.
    budget: ByteBudget,
}

impl LegacyClient {
    /// Creates a client from the parameters of its `initialize`.
    pub(in crate::server) fn new(initialize: &Object) -> Self {
        let capabilities = initialize.get("capabilities").filter(|capabilities| capabilities.is_object());
        let revision = initialize.get_str("protocolVersion");
        let lends_model = InputRequest::can_give_tools(capabilities);
        Self {
            revision: revision
                .map_or(ProtocolRevision::LATEST_LEGACY, |revision| ProtocolRevision::negotiate(&revision)),
            capabilities: capabilities.map_or_else(|| Object::new().to_json(), Json::detach),
            lends_model,
            // Until the client sets a level, the server chooses (2025-11-25, server/utilities/logging).
            log_level: AtomicUsize::new(LogLevel::Info as usize),
            outbound_requests: OutboundRequests::default(),
            requests: Arc::default(),
            followed: watch::Sender::default(),
            notification_stream: watch::Sender::default(),
            budget: ByteBudget::default(),
        }
    }

    /// Sets the memory budget of queued messages.
    pub(super) fn with_budget(self, budget: ByteBudget) -> Self {
        Self { budget, ..self }
    }

    /// Returns the same client after another `initialize`.
    pub(in crate::server) fn reopened(&self, initialize: &Object) -> Self {
        // Running requests can still be cancelled: their ids are not reused before they end.
        Self {
            outbound_requests: self.outbound_requests.reopen(),
            requests: self.requests.clone(),
            ..Self::new(initialize)
        }
    }

    pub(in crate::server) const fn revision(&self) -> ProtocolRevision {
        self.revision
    }

    pub(in crate::server) const fn capabilities(&self) -> &Json {
        &self.capabilities
    }

    /// Returns true if requests for its model may have tools.
    pub(in crate::server) const fn lends_model(&self) -> bool {
        self.lends_model
    }

    pub(in crate::server) fn log_level(&self) -> LogLevel {
        LogLevel::ALL.get(self.log_level.load(Ordering::Relaxed)).copied().unwrap_or(LogLevel::Info)
    }

    pub(in crate::server) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as usize, Ordering::Relaxed);
    }

    /// Opens the stream of messages that belong to no request, and ends an older one. `most` messages may be queued;
    /// further ones are dropped.
    pub(in crate::server) fn open_notification_stream(&self, capacity: usize) -> NoticeReceiver {
        let (sender, messages) = notice_queue(capacity);
        self.notification_stream.send_replace(Some(sender));
        messages
    }

    /// Returns the stream of messages that belong to no request, and every later one.
    pub(in crate::server) fn session_streams(&self) -> watch::Receiver<SessionStream> {
        self.notification_stream.subscribe()
    }

    /// Sends a message that belongs to no request, if the stream is open.
    pub(in crate::server) fn notify(&self, message: Bytes) {
        if let Some(sender) = &*self.notification_stream.borrow() {
            let _is_sent = enqueue(sender, &self.budget, message);
        }
    }

    /// Subscribes the client to a resource; `false` if it has too many subscriptions.
    pub(in crate::server) fn subscribe(&self, uri: &str) -> bool {
        let mut is_subscribed = false;
        self.followed.send_if_modified(|followed| {
            is_subscribed = followed.contains(uri) || followed.len() < MAX_FOLLOWED;
            is_subscribed && followed.insert(uri.into())
        });
        is_subscribed
    }

    pub(in crate::server) fn unsubscribe(&self, uri: &str) {
        self.followed.send_if_modified(|followed| followed.remove(uri));
    }

    /// Returns the followed resources and their changes.
    pub(in crate::server) fn followed(&self) -> watch::Receiver<UriSet> {
        self.followed.subscribe()
    }
}

/// The running requests of a client, which it may cancel by id.
#[derive(Debug, Default)]
pub(in crate::server) struct CancellableRequests {
    requests: Mutex<HashMap<RequestId, AbortHandle>>,
}

impl CancellableRequests {
    /// Runs a request; `None` if it is cancelled. A duplicate id is not registered again: a cancellation would be
    /// ambiguous.
    pub(in crate::server) async fn run<T>(
        &self,
        id: &RequestId,
        request: impl Future<Output = T>,
    ) -> Option<T> {
        let (handle, registration) = AbortHandle::new_pair();
        let _registration = match self.lock().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(handle);
                Some(RequestRegistration { running: self, id })
            }
        };
        Abortable::new(request, registration).await.ok()
    }

    /// Cancels a request. An unknown id is ignored: the request may just have ended.
    pub(in crate::server) fn cancel(&self, id: &RequestId) {
        if let Some(request) = self.lock().remove(id) {
            request.abort();
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().drain().for_each(|(_, request)| request.abort());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, AbortHandle>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a running request; dropping it ends the registration.
struct RequestRegistration<'a> {
    running: &'a CancellableRequests,
    id: &'a RequestId,
}

impl Drop for RequestRegistration<'_> {
    fn drop(&mut self) {
        self.running.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests;
