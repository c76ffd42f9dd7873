//! Connections of one server that are one client's alone: how many there are, whose, and for how long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use toolyard_core::{Caller, ToolError};

use super::connection::Connection;
use super::lane::{Lane, LaneKey, Owner};
use super::opener::Opener;

/// Which calls have a connection of their client's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaneMode {
    /// Those of clients that can be asked something, at legacy servers: their questions do not say which call they
    /// belong to.
    #[default]
    Automatic,
    /// None. Legacy servers are told that nobody can be asked.
    Shared,
    /// All, where the server has a memory: each process, and each session, is one client's.
    Client,
}

/// How many lanes a server has, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct LaneOptions {
    /// Which calls have one.
    pub mode: LaneMode,
    /// How many programs there are at a time, or a part of the sessions over HTTP (`SESSIONS_FOR_PROGRAM`). For one
    /// more, the idle one that was used least recently ends.
    pub most: usize,
    /// How long one stays without a call.
    pub idle_time: Duration,
}

impl LaneOptions {
    /// No lanes but the shared one, as for who is the only client.
    pub const SHARED: Self = Self { mode: LaneMode::Shared, most: 0, idle_time: Duration::ZERO };
}

/// How many sessions over HTTP may be where one program may: they cost this side next to nothing.
const SESSIONS_FOR_PROGRAM: usize = 64;

/// How long a server that has answered a call may take to show that it is done with it.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// All lanes of one server but the shared one. Dropping this ends them.
pub(super) struct Lanes {
    table: Arc<Table>,
    opener: Arc<Opener>,
    /// The tasks of the lanes. They run where the backend was started: calls come and go with their threads.
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

struct Table {
    options: LaneOptions,
    entries: Mutex<Vec<Entry>>,
    /// A place, or a lane, has become free.
    freed: Notify,
    /// Until when no new lane is opened.
    resting: Mutex<Option<Instant>>,
}

/// How long no lane is opened after one that could not be: a server may allow only one of its kind.
const REST: Duration = Duration::from_secs(10);

struct Entry {
    lane: Arc<Lane>,
    /// Calls on it.
    running: usize,
    /// When the last one began or ended.
    last: Instant,
}

/// A lane for one call. Dropping it gives the lane back.
pub(super) struct Lease {
    lane: Arc<Lane>,
    table: Arc<Table>,
    /// Whether another call was made on it before.
    is_used: bool,
    /// Whether the call has come to an end: else the server may still be at work on it.
    pub(super) is_answered: bool,
}

impl Lanes {
    /// There are none yet. Those to come run on the runtime that this is called on.
    pub(super) fn new(opener: Arc<Opener>) -> Self {
        let mut options = opener.options.lanes;
        if opener.is_remote() {
            options.most = options.most.saturating_mul(SESSIONS_FOR_PROGRAM);
        }
        let table =
            Table { options, entries: Mutex::default(), freed: Notify::new(), resting: Mutex::default() };
        Self { table: Arc::new(table), opener, tasks: Mutex::default(), runtime: Handle::current() }
    }

    /// One could not be opened: for a while none is tried.
    pub(super) fn rest(&self) {
        *self.table.resting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
        self.table.freed.notify_waiters();
    }

    fn is_resting(&self) -> bool {
        let until = *self.table.resting.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// The lane of a client, which may be a new one; `None` where as many as may be are in use, or none could be opened
    /// a moment ago.
    fn try_lease(&self, key: &LaneKey) -> Option<Lease> {
        let is_resting = self.is_resting();
        let mut entries = self.table.lock();
        let found = entries.iter_mut().find(|entry| entry.is_for(key) && (entry.lane.is_up() || !is_resting));
        let is_used = found.is_some();
        let lane = match found {
            Some(entry) => {
                entry.running += 1;
                entry.last = Instant::now();
                entry.lane.clone()
            }
            None if is_resting => return None,
            None => {
                self.table.make_room(&mut entries)?;
                let lane = Arc::new(Lane::new(key.clone()));
                entries.push(Entry { lane: lane.clone(), running: 1, last: Instant::now() });
                self.start(lane.clone());
                lane
            }
        };
        Some(Lease { lane, table: self.table.clone(), is_used, is_answered: false })
    }

    /// The same, and waits until there is one; `None` where none could be opened a moment ago.
    pub(super) async fn lease(&self, key: &LaneKey) -> Option<Lease> {
        loop {
            let mut freed = std::pin::pin!(self.table.freed.notified());
            // What is freed from here on is not missed.
            freed.as_mut().enable();
            let lease = self.try_lease(key);
            if lease.is_some() || self.is_resting() {
                return lease;
            }
            freed.await;
        }
    }

    fn start(&self, lane: Arc<Lane>) {
        let (table, opener) = (self.table.clone(), self.opener.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        let run = async move { lane.run(&opener, table.idle(&lane), || table.remove(&lane)).await };
        tasks.spawn_on(run, &self.runtime);
    }

    /// A client of a session has other folders. Nobody else's do: a lane that several may have promises no such news.
    pub(super) fn roots_changed(&self, caller: &Caller) {
        let Some(owner) = Owner::of(caller).filter(|owner| matches!(owner, Owner::Session(_))) else {
            return;
        };
        let entries = self.table.lock();
        let own = entries.iter().filter(|entry| entry.lane.key.owner.as_ref() == Some(&owner));
        own.for_each(|entry| entry.lane.roots_changed());
    }

    /// The server's name, for the log.
    pub(super) fn name(&self) -> &str {
        &self.opener.name
    }

    /// Ends all of them, and waits for that.
    pub(super) async fn stop(&self) {
        self.table.lock().drain(..).for_each(|entry| entry.lane.end());
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that there is room for one more, for which an idle lane may have to go.
    fn make_room(&self, entries: &mut Vec<Entry>) -> Option<()> {
        entries.retain(|entry| entry.lane.is_open());
        if entries.len() < self.options.most {
            return Some(());
        }
        let idle = entries.iter().enumerate().filter(|(_, entry)| entry.running == 0);
        let (at, _) = idle.min_by_key(|(_, entry)| entry.last)?;
        entries.swap_remove(at).lane.end();
        Some(())
    }

    /// Waits until a lane has not been called for as long as it may stay. It is not found any more then.
    async fn idle(&self, lane: &Arc<Lane>) {
        let mut look = Instant::now() + self.options.idle_time;
        loop {
            sleep_until(look).await;
            let mut entries = self.lock();
            let Some(at) = position(&entries, lane) else { return };
            let now = Instant::now();
            let since = if entries[at].running > 0 { now } else { entries[at].last };
            look = since + self.options.idle_time;
            if look <= now {
                entries.swap_remove(at);
                return;
            }
        }
    }

    /// Forgets a lane.
    fn remove(&self, lane: &Arc<Lane>) {
        self.lock().retain(|entry| !Arc::ptr_eq(&entry.lane, lane));
        self.freed.notify_waiters();
    }
}

impl Entry {
    /// Whether a call of this client can be made here. What is nobody's in particular was once somebody's, who may have
    /// told the server something: it goes to another only if nothing was ever asked.
    fn is_for(&self, key: &LaneKey) -> bool {
        let is_free = key.is_for_many_calls() || self.running == 0;
        let is_clean = key.owner.is_some() || !self.lane.has_asked();
        self.lane.key == *key && is_free && is_clean && self.lane.is_open()
    }
}

impl Lease {
    /// The connection for a call; `None` where the server has more to say about an earlier one of somebody else.
    pub(super) async fn connection(&self) -> Result<Option<Arc<Connection>>, ToolError> {
        let connection = self.lane.connection().await?;
        if self.lane.key.is_for_many_calls() || !self.is_used {
            return Ok(Some(connection));
        }
        // What it has asked too late is heard before this is answered.
        let answered = timeout(SETTLE_TIME, connection.ping()).await;
        let is_clean = self.lane.key.owner.is_some() || !connection.has_asked();
        let is_settled = matches!(answered, Ok(Ok(()))) && is_clean;
        Ok(is_settled.then_some(connection))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut entries = self.table.lock();
        if let Some(at) = position(&entries, &self.lane) {
            let entry = &mut entries[at];
            entry.running -= 1;
            entry.last = Instant::now();
            let (key, mode) = (&self.lane.key, self.table.options.mode);
            let is_nobodys = key.owner.is_none() && (self.lane.has_asked() || mode == LaneMode::Client);
            if is_nobodys || (!key.is_for_many_calls() && !self.is_answered) {
                entries.swap_remove(at).lane.end();
            }
        }
        drop(entries);
        self.table.freed.notify_waiters();
    }
}

fn position(entries: &[Entry], lane: &Arc<Lane>) -> Option<usize> {
    entries.iter().position(|entry| Arc::ptr_eq(&entry.lane, lane))
}
