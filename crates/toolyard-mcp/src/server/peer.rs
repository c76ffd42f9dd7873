//! What is remembered of a legacy client, whatever its messages come by.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use tokio::sync::{mpsc, watch};
use toolyard_core::{Json, LogLevel, Object};

use super::asks::Asks;
use crate::wire::{Id, Revision};

/// Resources by their URIs.
pub(super) type Uris = BTreeSet<Arc<str>>;

/// Resources that one client may follow.
pub(super) const MOST_FOLLOWED: usize = 1000;

/// A legacy client.
#[derive(Debug)]
pub(super) struct Peer {
    /// What was agreed on.
    revision: Revision,
    /// What it can be asked, as it declared it.
    capabilities: Json,
    /// A place in [`LogLevel::ALL`].
    log_level: AtomicUsize,
    pub(super) asks: Asks,
    pub(super) running: Arc<Running>,
    followed: watch::Sender<Uris>,
    /// The stream of what belongs to no request, where one is open.
    outlet: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Peer {
    /// A client, by the parameters of its `initialize`.
    pub(super) fn new(initialize: &Object) -> Self {
        let capabilities = initialize.get("capabilities").filter(|capabilities| capabilities.is_object());
        let revision = initialize.get_str("protocolVersion");
        Self {
            revision: revision.map_or(Revision::LATEST_LEGACY, |revision| Revision::negotiate(&revision)),
            capabilities: capabilities.map_or_else(|| Object::new().to_json(), Json::detach),
            // What to send to who has not said how much is ours to decide (2025-11-25, server/utilities/logging).
            log_level: AtomicUsize::new(LogLevel::Info as usize),
            asks: Asks::default(),
            running: Arc::default(),
            followed: watch::Sender::default(),
            outlet: Mutex::default(),
        }
    }

    /// The same client, which opens another session where it has one.
    pub(super) fn renewed(&self, initialize: &Object) -> Self {
        // What runs can still be withdrawn: on one pipe its ids are not used again before it ends.
        Self { asks: self.asks.renewed(), running: self.running.clone(), ..Self::new(initialize) }
    }

    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) const fn capabilities(&self) -> &Json {
        &self.capabilities
    }

    pub(super) fn log_level(&self) -> LogLevel {
        LogLevel::ALL.get(self.log_level.load(Ordering::Relaxed)).copied().unwrap_or(LogLevel::Info)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as usize, Ordering::Relaxed);
    }

    /// What this client is told from now on that belongs to no request: as many messages wait, more are dropped. Who listened
    /// before hears no more.
    pub(super) fn listen(&self, most: usize) -> mpsc::Receiver<Bytes> {
        let (outlet, told) = mpsc::channel(most.max(1));
        *self.outlet.lock().unwrap_or_else(PoisonError::into_inner) = Some(outlet);
        told
    }

    /// Tells the client something that belongs to no request, if it listens.
    pub(super) fn tell(&self, message: Bytes) {
        if let Some(outlet) = &*self.outlet.lock().unwrap_or_else(PoisonError::into_inner) {
            let _full = outlet.try_send(message);
        }
    }

    /// Notes that the client follows a resource; `false` where it follows too many.
    pub(super) fn subscribe(&self, uri: &str) -> bool {
        let mut noted = false;
        self.followed.send_if_modified(|followed| {
            noted = followed.contains(uri) || followed.len() < MOST_FOLLOWED;
            noted && followed.insert(uri.into())
        });
        noted
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.followed.send_if_modified(|followed| followed.remove(uri));
    }

    /// The resources that the client follows, and every change of that.
    pub(super) fn followed(&self) -> watch::Receiver<Uris> {
        self.followed.subscribe()
    }
}

/// The requests of one client that can be withdrawn by their id.
#[derive(Debug, Default)]
pub(super) struct Running {
    requests: Mutex<HashMap<Id, AbortHandle>>,
}

impl Running {
    /// Runs a request; `None` if it was withdrawn meanwhile. An id that is in use already is not noted
    /// again: which of the two a withdrawal means could not be told.
    pub(super) async fn run<T>(&self, id: &Id, request: impl Future<Output = T>) -> Option<T> {
        let (handle, registration) = AbortHandle::new_pair();
        let _noted = match self.lock().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(handle);
                Some(Noted { running: self, id })
            }
        };
        Abortable::new(request, registration).await.ok()
    }

    /// Withdraws a request. An unknown id is none of our business: it may just have been answered.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(request) = self.lock().remove(id) {
            request.abort();
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().drain().for_each(|(_, request)| request.abort());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that can be withdrawn, until it is answered or dropped.
struct Noted<'a> {
    running: &'a Running,
    id: &'a Id,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.running.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests;
