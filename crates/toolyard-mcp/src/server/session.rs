//! Sessions of legacy clients.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use toolyard_core::Object;

use super::peer::Peer;
use super::streams::Streams;
use crate::wire::Revision;

/// How many sessions there are, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Sessions that are open at once. For one more, the one that was silent for longest is closed; where
    /// all of them are in use, the client is told to come later.
    pub sessions: usize,
    /// A session that was not used for as long is closed.
    pub idle: Duration,
    /// Bytes that are kept of what was sent on the streams of one session, for its client to come back to.
    pub replay_bytes: usize,
    /// Answers of calls, of all sessions together, that are kept whatever their size while their clients read them or may
    /// come back for them. Any beyond that are kept as far as `replay_bytes` goes.
    pub answers: usize,
    /// How long a stream that broke waits for its client to come back, and the call that it is of goes on.
    pub resume: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            idle: Duration::from_secs(30 * 60),
            replay_bytes: 1 << 20,
            answers: 2048,
            resume: Duration::from_secs(30),
        }
    }
}

/// All sessions of one endpoint.
#[derive(Debug)]
pub(super) struct Sessions {
    table: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    limits: SessionLimits,
    /// Places for answers.
    answers: Arc<Semaphore>,
    /// Turns true when streams are to end.
    stopping: watch::Receiver<bool>,
    start: Instant,
}

/// What is remembered of one client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Arc<str>,
    /// Whom its client acts for. Nobody else may use it.
    pub(super) principal: Option<Arc<str>>,
    pub(super) peer: Arc<Peer>,
    pub(super) streams: Streams,
    /// In milliseconds since the start of the table.
    last_used: AtomicU64,
}

impl Sessions {
    /// No sessions yet. Streams that nobody reads end once `stopping` is true.
    pub(super) fn new(limits: SessionLimits, stopping: watch::Receiver<bool>) -> Self {
        let answers = Arc::new(Semaphore::new(limits.answers.min(Semaphore::MAX_PERMITS)));
        Self { table: RwLock::default(), limits, answers, stopping, start: Instant::now() }
    }

    /// Opens a session for who sent these parameters of `initialize`; `None` where there are too many in use.
    pub(super) fn open(&self, initialize: &Object, principal: Option<Arc<str>>) -> Option<Arc<Session>> {
        let (id, peer) = (random_id()?, Arc::new(Peer::new(initialize)));
        let SessionLimits { replay_bytes, resume, .. } = self.limits;
        // Older clients take an event without data for a broken message.
        let primed = peer.revision() >= Revision::V2025_11_25;
        let (answers, stopping) = (self.answers.clone(), self.stopping.clone());
        let streams = Streams::new(&id, primed, replay_bytes, resume, answers, stopping);
        let last_used = self.now().into();
        let session = Arc::new(Session { id, principal, peer, streams, last_used });
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= self.limits.sessions {
            table.retain(|_, session| !self.is_over(session));
        }
        if table.len() >= self.limits.sessions {
            // Few clients say when they leave. The one that was silent for longest opens another if it
            // comes back after all.
            let idle = table.values().filter(|session| !session.in_use(1));
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
        if used.saturating_sub(before) > self.idle() && !session.in_use(2) {
            self.close(id);
            return None;
        }
        Some(session)
    }

    /// Ends a session, and all that runs in it.
    pub(super) fn close(&self, id: &str) -> bool {
        let session = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        session.is_some_and(|session| {
            session.streams.close();
            session.peer.running.cancel_all();
            true
        })
    }

    /// Idle for too long, and nothing of it is running.
    fn is_over(&self, session: &Arc<Session>) -> bool {
        let idle = self.now().saturating_sub(session.last_used.load(Ordering::Relaxed));
        idle > self.idle() && !session.in_use(1)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn idle(&self) -> u64 {
        u64::try_from(self.limits.idle.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Session {
    /// Whether somebody holds it beside so many who only look, or a call runs whose client may come back.
    fn in_use(self: &Arc<Self>, looking: usize) -> bool {
        Arc::strong_count(self) > looking || self.streams.in_use()
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
