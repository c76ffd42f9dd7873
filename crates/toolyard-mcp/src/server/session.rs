//! Sessions of legacy clients.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::{AbortHandle, AbortRegistration, Abortable};
use tokio::time::Instant;

use crate::wire::Id;

/// How many sessions there are, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Sessions that are open at once. For one more, the one that was silent for longest is closed; where
    /// all of them are in use, the client is told to come later.
    pub sessions: usize,
    /// A session that was not used for as long is closed.
    pub idle: Duration,
}

/// All sessions of one endpoint.
#[derive(Debug)]
pub(super) struct Sessions {
    table: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    limits: SessionLimits,
    start: Instant,
}

/// What is remembered of one client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Arc<str>,
    running: Running,
    /// The stream on which this client gets what belongs to no request.
    stream: Mutex<Option<AbortHandle>>,
    /// In milliseconds since the start of the table.
    last_used: AtomicU64,
}

impl Sessions {
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self { table: RwLock::default(), limits, start: Instant::now() }
    }

    /// Opens a session; `None` where there are too many in use.
    pub(super) fn open(&self) -> Option<Arc<Session>> {
        let session = Session {
            id: random_id()?,
            running: Running::default(),
            stream: Mutex::default(),
            last_used: self.now().into(),
        };
        let session = Arc::new(session);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= self.limits.sessions {
            table.retain(|_, session| !self.is_over(session));
        }
        if table.len() >= self.limits.sessions {
            // Few clients say when they leave. The one that was silent for longest opens another if it
            // comes back after all.
            let idle = table.values().filter(|session| Arc::strong_count(session) == 1);
            let idlest = idle.min_by_key(|session| session.last_used.load(Ordering::Relaxed))?.id.clone();
            table.remove(&idlest);
        }
        table.insert(session.id.clone(), session.clone());
        Some(session)
    }

    /// The open session with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.table.read().unwrap_or_else(PoisonError::into_inner).get(id)?.clone();
        let used = self.now();
        let before = session.last_used.swap(used, Ordering::Relaxed);
        if used.saturating_sub(before) > self.idle() && Arc::strong_count(&session) == 2 {
            self.close(id);
            return None;
        }
        Some(session)
    }

    /// Ends a session, and all that runs in it.
    pub(super) fn close(&self, id: &str) -> bool {
        let session = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        session.is_some_and(|session| {
            session.replace_stream(None);
            session.running.cancel_all();
            true
        })
    }

    /// Idle for too long, and nothing of it is running: only the table holds it.
    fn is_over(&self, session: &Arc<Session>) -> bool {
        let idle = self.now().saturating_sub(session.last_used.load(Ordering::Relaxed));
        idle > self.idle() && Arc::strong_count(session) == 1
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn idle(&self) -> u64 {
        u64::try_from(self.limits.idle.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Session {
    /// What runs in this session.
    pub(super) const fn running(&self) -> &Running {
        &self.running
    }

    /// Registers the stream for what belongs to no request. There is one: an older one ends.
    pub(super) fn open_stream(&self) -> AbortRegistration {
        let (handle, registration) = AbortHandle::new_pair();
        self.replace_stream(Some(handle));
        registration
    }

    fn replace_stream(&self, stream: Option<AbortHandle>) {
        let mut current = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = std::mem::replace(&mut *current, stream) {
            older.abort();
        }
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

    fn cancel_all(&self) {
        self.lock().drain().for_each(|(_, request)| request.abort());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Id, AbortHandle>> {
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

/// 128 bits that nobody can guess, as the specification asks for.
fn random_id() -> Option<Arc<str>> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut id = String::with_capacity(32);
    for byte in bytes {
        write!(id, "{byte:02x}").ok()?;
    }
    Some(id.into())
}

#[cfg(test)]
mod tests;
