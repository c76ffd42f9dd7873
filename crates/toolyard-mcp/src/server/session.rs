//! Sessions of legacy clients: their table and limits, the state of each client, and which session makes room for
//! another.

pub(super) mod legacy_client;
mod order;
pub(super) mod owner;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use toolyard_core::Object;
use toolyard_core::random::{hex, random_bytes};
use toolyard_net::budget::{ByteBudget, ReclaimBytes};

use legacy_client::LegacyClient;
use order::{SessionOrder, SessionRank};
use owner::SessionOwner;

use super::transport::streams::SessionStreams;
use crate::wire::ProtocolRevision;

/// The limits of sessions. The defaults are those of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of sessions. When it is reached, the least recently used idle session of the same owner is
    /// closed, else one of the owner with the most sessions; if all of them are in use, the client has to try again
    /// later.
    pub max_sessions: usize,
    /// Maximum number of sessions of one owner: a principal, or an address of clients without one. Clients on the same
    /// machine without principal may use all.
    pub max_per_owner: usize,
    /// Idle time after which a session is closed.
    pub idle_timeout: Duration,
    /// Maximum size in bytes of the events stored for one session, for clients that resume streams.
    pub max_replay_bytes: usize,
    /// Maximum number of stored answers of all sessions, of any size, that clients are reading or may resume. Further
    /// ones count against `max_replay_bytes`.
    pub max_answers: usize,
    /// Time that an interrupted stream waits for its client while the call goes on.
    pub resume_timeout: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_sessions: 10_000,
            max_per_owner: 2500,
            idle_timeout: Duration::from_secs(30 * 60),
            max_replay_bytes: 1 << 20,
            max_answers: 2048,
            resume_timeout: Duration::from_secs(30),
        }
    }
}

/// The sessions of one endpoint.
#[derive(Debug)]
pub(super) struct SessionTable {
    table: RwLock<SessionIndex>,
    limits: SessionLimits,
    /// Permits for stored answers.
    answers: Arc<Semaphore>,
    /// Memory budget of stored events.
    budget: ByteBudget,
    /// True once streams have to end.
    stopping: watch::Receiver<bool>,
    start: Instant,
}

/// The open sessions. A request only records its time in the session, without a write lock; `order` is updated when
/// room is made.
#[derive(Debug, Default)]
struct SessionIndex {
    sessions: HashMap<Arc<str>, SessionEntry>,
    order: SessionOrder,
    /// Number of ranks given so far, which makes each unique.
    ranks_given: u64,
    /// Number of sessions checked so far.
    #[cfg(test)]
    checks: usize,
}

#[derive(Debug)]
struct SessionEntry {
    session: Arc<LegacySession>,
    rank: SessionRank,
}

/// Maximum number of sessions checked to find one to close. If all of them are in use, the client has to try again; by
/// then these rank behind the others.
const MAX_CHECKS: usize = 64;

/// Number of idle sessions, and of those in use, that are checked when a session is opened, both of the same owner and
/// of all: more than one, so that the order catches up.
const CLEANUP_CHECKS: usize = 2;

/// The session of a legacy client.
#[derive(Debug)]
pub(super) struct LegacySession {
    pub(super) id: Arc<str>,
    /// The principal of the client. The session is invisible to others.
    pub(super) principal: Option<Arc<str>>,
    owner: SessionOwner,
    pub(super) peer: Arc<LegacyClient>,
    pub(super) streams: SessionStreams,
    /// Time of the last use, in milliseconds since the start of the table.
    last_used: AtomicU64,
}

impl SessionTable {
    /// Creates an empty table. Streams without a reader end once `stopping` is true.
    pub(super) fn new(limits: SessionLimits, budget: ByteBudget, stopping: watch::Receiver<bool>) -> Self {
        let answers = Arc::new(Semaphore::new(limits.max_answers.min(Semaphore::MAX_PERMITS)));
        Self { table: RwLock::default(), limits, answers, budget, stopping, start: Instant::now() }
    }

    /// Opens a session of `owner` for a client with these parameters of `initialize`; `None` if there is no room.
    pub(super) fn open(
        &self,
        initialize: &Object,
        owner: SessionOwner,
        principal: Option<Arc<str>>,
    ) -> Option<Arc<LegacySession>> {
        let budget = owner.name().map_or_else(|| self.budget.clone(), |name| self.budget.owned_by(&name));
        let (id, peer) = (random_id()?, Arc::new(LegacyClient::new(initialize).with_budget(budget.clone())));
        let SessionLimits { max_replay_bytes, resume_timeout, .. } = self.limits;
        // Older clients treat an event without data as an invalid message.
        let primed = peer.revision() >= ProtocolRevision::V2025_11_25;
        let (answers, stopping) = ((self.answers.clone(), &budget), self.stopping.clone());
        let streams = SessionStreams::new(&id, primed, max_replay_bytes, resume_timeout, answers, stopping);
        let now = self.now();
        let session = Arc::new(LegacySession { id, principal, owner, peer, streams, last_used: now.into() });
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.close_expired(None, now, self.idle());
        table.close_expired(Some(&session.owner), now, self.idle());
        if !self.make_room(&mut table, &session.owner, now) {
            return None;
        }
        table.add(session.clone(), now);
        Some(session)
    }

    /// Makes room for a session of `owner`. Few clients end their sessions; a client whose session was closed opens
    /// another one when it returns.
    fn make_room(&self, table: &mut SessionIndex, owner: &SessionOwner, now: u64) -> bool {
        let share = owner.share(self.limits.max_per_owner, self.limits.max_sessions);
        let count = table.order.count(owner);
        if count >= share {
            return table.close_longest_idle(owner, now);
        }
        if table.sessions.len() < self.limits.max_sessions || table.close_longest_idle(owner, now) {
            return true;
        }
        // Never a session of an owner that has no more of them than this one.
        match table.order.largest() {
            Some((largest_count, largest)) if largest_count > count => {
                table.close_longest_idle(&largest, now)
            }
            _ => false,
        }
    }

    /// Returns the open session with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<LegacySession>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let session = table.sessions.get(id)?.session.clone();
        drop(table);
        let last_used = self.now();
        let before = session.last_used.swap(last_used, Ordering::Relaxed);
        if last_used.saturating_sub(before) > self.idle() && !session.is_in_use(2) {
            self.close(id);
            return None;
        }
        Some(session)
    }

    /// Closes a session, and cancels everything that runs in it.
    pub(super) fn close(&self, id: &str) -> bool {
        let session = self.table.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        session.is_some_and(|session| {
            session.streams.close();
            session.peer.outbound_requests.close();
            session.peer.requests.cancel_all();
            true
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn idle(&self) -> u64 {
        u64::try_from(self.limits.idle_timeout.as_millis()).unwrap_or(u64::MAX)
    }
}

impl SessionIndex {
    fn add(&mut self, session: Arc<LegacySession>, now: u64) {
        self.ranks_given += 1;
        let rank = SessionRank { was_in_use: false, last_used: now, number: self.ranks_given };
        self.order.add(&session.owner, rank, session.id.clone());
        self.sessions.insert(session.id.clone(), SessionEntry { session, rank });
    }

    fn remove(&mut self, id: &str) -> Option<Arc<LegacySession>> {
        let SessionEntry { session, rank } = self.sessions.remove(id)?;
        self.order.remove(&session.owner, rank);
        Some(session)
    }

    /// Updates the ranks of an owner, or of all, and closes sessions that were idle for longer than `limit`.
    fn close_expired(&mut self, owner: Option<&SessionOwner>, now: u64, limit: u64) {
        for _ in 0..CLEANUP_CHECKS {
            for id in [self.order.first(owner), self.order.first_in_use(owner)].into_iter().flatten() {
                if let SessionUse::Unchanged(last_used) = self.refresh_rank(&id, now)
                    && now.saturating_sub(last_used) > limit
                {
                    self.remove(&id);
                }
            }
        }
    }

    /// Closes the least recently used idle session of an owner. If many were used since they got their ranks, it is the
    /// least recently used of those that were checked.
    fn close_longest_idle(&mut self, owner: &SessionOwner, now: u64) -> bool {
        let mut idlest: Option<(u64, Arc<str>)> = None;
        for _ in 0..MAX_CHECKS {
            let Some(id) = self.order.first(Some(owner)) else { return false };
            match self.refresh_rank(&id, now) {
                SessionUse::Unchanged(_) => return self.remove(&id).is_some(),
                SessionUse::UsedSince(last_used)
                    if idlest.as_ref().is_none_or(|(oldest, _)| last_used < *oldest) =>
                {
                    idlest = Some((last_used, id));
                }
                SessionUse::UsedSince(_) | SessionUse::InUse => {}
            }
        }
        idlest.is_some_and(|(_, id)| self.remove(&id).is_some())
    }

    /// Checks a session, and updates its rank if it was used since; a session in use counts as used now.
    fn refresh_rank(&mut self, id: &str, now: u64) -> SessionUse {
        #[cfg(test)]
        {
            self.checks += 1;
        }
        let Some(SessionEntry { session, rank }) = self.sessions.get_mut(id) else {
            return SessionUse::InUse;
        };
        let was_in_use = session.is_in_use(1);
        let last_used = if was_in_use { now } else { session.last_used.load(Ordering::Relaxed) };
        if !was_in_use && !rank.was_in_use && last_used <= rank.last_used {
            return SessionUse::Unchanged(last_used);
        }
        self.order.remove(&session.owner, *rank);
        self.ranks_given += 1;
        *rank = SessionRank { was_in_use, last_used, number: self.ranks_given };
        self.order.add(&session.owner, *rank, session.id.clone());
        if was_in_use { SessionUse::InUse } else { SessionUse::UsedSince(last_used) }
    }
}

/// The use of a session since it got its rank.
enum SessionUse {
    /// Not used; the rank has the time of the last use.
    Unchanged(u64),
    /// Used, last at this time.
    UsedSince(u64),
    InUse,
}

impl ReclaimBytes for SessionTable {
    fn reclaim(&self) {
        // A writer may be waiting for this memory.
        let Ok(table) = self.table.try_read() else { return };
        let sessions: Vec<_> = table.sessions.values().map(|entry| entry.session.clone()).collect();
        drop(table);
        sessions.iter().for_each(|session| session.streams.shrink());
    }
}

impl LegacySession {
    /// True if something besides `temporary` holders uses the session, or a call runs whose stream may be resumed.
    fn is_in_use(self: &Arc<Self>, temporary: usize) -> bool {
        Arc::strong_count(self) > temporary || self.streams.is_in_use()
    }
}

/// Ends what waits for the client.
impl Drop for LegacySession {
    fn drop(&mut self) {
        self.peer.outbound_requests.close();
    }
}

/// Creates an id of 128 random bits, which the specification requires to be unguessable.
pub(super) fn random_id() -> Option<Arc<str>> {
    Some(hex(&random_bytes::<16>().ok()?).into())
}

#[cfg(test)]
mod tests;
