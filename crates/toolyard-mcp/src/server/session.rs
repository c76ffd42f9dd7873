//! Sessions of legacy clients.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::{AbortHandle, AbortRegistration};
use tokio::time::Instant;
use toolyard_core::Object;

use super::peer::Peer;

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
    /// Whom its client acts for. Nobody else may use it.
    pub(super) principal: Option<Arc<str>>,
    pub(super) peer: Arc<Peer>,
    /// The stream on which this client gets what belongs to no request.
    stream: Mutex<Option<AbortHandle>>,
    /// In milliseconds since the start of the table.
    last_used: AtomicU64,
}

impl Sessions {
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self { table: RwLock::default(), limits, start: Instant::now() }
    }

    /// Opens a session for who sent these parameters of `initialize`; `None` where there are too many in use.
    pub(super) fn open(&self, initialize: &Object, principal: Option<Arc<str>>) -> Option<Arc<Session>> {
        let session = Session {
            id: random_id()?,
            principal,
            peer: Arc::new(Peer::new(initialize)),
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
            session.peer.running.cancel_all();
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

/// 128 bits that nobody can guess, as the specification asks for.
pub(super) fn random_id() -> Option<Arc<str>> {
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
