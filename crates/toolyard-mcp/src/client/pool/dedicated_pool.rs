//! The dedicated connections of one server: their number, their owners and their lifetime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use toolyard_core::{Caller, ToolError};

use super::connector::UpstreamConnector;
use super::dedicated_connection::{ConnectionOwner, DedicatedConnection, DedicatedKey};
use super::open_connections::OpenConnections;
use super::owner_updates::OwnerUpdates;
use crate::client::catalog::published::CatalogPublisher;
use crate::client::connection::UpstreamConnection;

/// The calls that get a dedicated connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SharingMode {
    /// Calls of clients with capabilities, at legacy servers, whose requests do not name a call.
    #[default]
    Automatic,
    /// No calls. Legacy servers are told that the client has no capabilities.
    Shared,
    /// All calls to servers that keep state: each process and each session serves a single client.
    Client,
}

/// The settings of dedicated connections.
#[derive(Debug, Clone, Copy)]
pub struct DedicatedOptions {
    /// The calls that get one.
    pub sharing: SharingMode,
    /// Maximum number of processes; over HTTP, of `SESSIONS_PER_PROGRAM` times as many sessions. When it is reached,
    /// the least recently used idle connection is closed.
    pub limit: usize,
    /// Idle time after which a connection is closed.
    pub idle_timeout: Duration,
    /// Maximum size in bytes of the definitions that a connection lists beside those of the shared one. Further ones
    /// are left out.
    pub max_list_bytes: usize,
}

impl DedicatedOptions {
    /// No dedicated connections, as for a gateway with a single client.
    pub const SHARED: Self =
        Self { sharing: SharingMode::Shared, limit: 0, idle_timeout: Duration::ZERO, max_list_bytes: 0 };
}

/// Number of HTTP sessions that count as one process: they cost the gateway almost nothing.
const SESSIONS_PER_PROGRAM: usize = 64;

/// Maximum time that a server may take to respond before its connection is used for the next call.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The dedicated connections of one server. Dropping the pool closes them.
pub(in crate::client) struct DedicatedPool {
    table: Arc<DedicatedTable>,
    connector: Arc<UpstreamConnector>,
    updates: Arc<OwnerUpdates>,
    /// Number of connections opened so far, which numbers them.
    opened: AtomicU64,
    /// The tasks of the connections. They run on the runtime of the backend: the threads of calls come and go.
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

struct DedicatedTable {
    options: DedicatedOptions,
    entries: Mutex<Vec<DedicatedEntry>>,
    /// Notified when a connection becomes free or is closed.
    freed: Notify,
    /// Time until which no connection is opened.
    paused_until: Mutex<Option<Instant>>,
}

/// Time without new connections after one could not be opened: a server may allow only one of its kind.
const OPEN_PAUSE: Duration = Duration::from_secs(10);

struct DedicatedEntry {
    dedicated: Arc<DedicatedConnection>,
    /// Number of running calls.
    active_calls: usize,
    /// Time when a call last started or ended.
    last_used: Instant,
}

/// The attempt to lease a certain connection.
enum NumberedLease {
    /// Another call runs on the connection.
    Busy,
    /// The lease; `None` if the connection is closed.
    Decided(Option<ConnectionLease>),
}

/// A dedicated connection for one call. Dropping it returns the connection to the pool.
pub(in crate::client) struct ConnectionLease {
    dedicated: Arc<DedicatedConnection>,
    table: Arc<DedicatedTable>,
    /// True if the connection served another call before.
    was_used: bool,
    /// True once the call is answered. Otherwise the server may still be working on it.
    pub(in crate::client) is_answered: bool,
}

impl DedicatedPool {
    /// Creates an empty pool. Its connections run on the current runtime.
    pub(in crate::client) fn new(connector: Arc<UpstreamConnector>, catalog: Arc<CatalogPublisher>) -> Self {
        let mut options = connector.options.dedicated;
        if connector.is_remote() {
            options.limit = options.limit.saturating_mul(SESSIONS_PER_PROGRAM);
        }
        let table = DedicatedTable {
            options,
            entries: Mutex::default(),
            freed: Notify::new(),
            paused_until: Mutex::default(),
        };
        let updates = OwnerUpdates { connector: connector.clone(), catalog, open: Arc::default() };
        Self {
            table: Arc::new(table),
            connector,
            updates: Arc::new(updates),
            opened: AtomicU64::new(0),
            tasks: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// Returns the open connections of each client.
    pub(in crate::client) fn open_connections(&self) -> &Arc<OpenConnections> {
        &self.updates.open
    }

    /// Stops opening connections for a while, after one could not be opened.
    pub(in crate::client) fn pause_opening(&self) {
        *self.table.paused_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + OPEN_PAUSE);
        self.table.freed.notify_waiters();
    }

    /// True while no connection is opened for `key`. The era of a call never depends on connections of other clients.
    fn is_opening_paused(&self, key: &DedicatedKey) -> bool {
        if key.era.is_some() {
            return false;
        }
        let until = *self.table.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Leases the connection for `key`, opening one if needed; `None` if the limit is reached, or while opening is
    /// paused.
    fn try_lease(&self, key: &DedicatedKey) -> Option<ConnectionLease> {
        let is_resting = self.is_opening_paused(key);
        let mut entries = self.table.lock();
        let entry =
            entries.iter_mut().find(|entry| entry.accepts(key) && (entry.dedicated.is_up() || !is_resting));
        let was_used = entry.is_some();
        let dedicated = match entry {
            Some(entry) => {
                entry.active_calls += 1;
                entry.last_used = Instant::now();
                entry.dedicated.clone()
            }
            None if is_resting => return None,
            None => {
                self.table.make_room(&mut entries)?;
                let dedicated = Arc::new(DedicatedConnection::new(
                    key.clone(),
                    self.opened.fetch_add(1, Ordering::Relaxed),
                ));
                entries.push(DedicatedEntry {
                    dedicated: dedicated.clone(),
                    active_calls: 1,
                    last_used: Instant::now(),
                });
                self.spawn(dedicated.clone());
                dedicated
            }
        };
        Some(ConnectionLease { dedicated, table: self.table.clone(), was_used, is_answered: false })
    }

    /// Waits for a connection for `key`; `None` while opening is paused, or if the server does not speak its era.
    pub(in crate::client) async fn lease(&self, key: &DedicatedKey) -> Option<ConnectionLease> {
        loop {
            let mut freed = std::pin::pin!(self.table.freed.notified());
            // From here on no notification is missed.
            freed.as_mut().enable();
            if key.era.is_some() && !self.connector.eras.may_speak_legacy() {
                return None;
            }
            let lease = self.try_lease(key);
            if lease.is_some() || self.is_opening_paused(key) {
                return lease;
            }
            freed.await;
        }
    }

    /// Waits for the connection with this number; `None` once it is closed.
    pub(in crate::client) async fn lease_numbered(&self, number: u64) -> Option<ConnectionLease> {
        loop {
            let mut freed = std::pin::pin!(self.table.freed.notified());
            // From here on no notification is missed.
            freed.as_mut().enable();
            if let NumberedLease::Decided(lease) = self.try_lease_numbered(number) {
                return lease;
            }
            freed.await;
        }
    }

    fn try_lease_numbered(&self, number: u64) -> NumberedLease {
        let mut entries = self.table.lock();
        let is_meant =
            |entry: &&mut DedicatedEntry| entry.dedicated.number == number && entry.dedicated.is_up();
        let Some(entry) = entries.iter_mut().find(is_meant) else { return NumberedLease::Decided(None) };
        if entry.active_calls > 0 && !entry.dedicated.key.allows_concurrent_calls() {
            return NumberedLease::Busy;
        }
        entry.active_calls += 1;
        entry.last_used = Instant::now();
        let (dedicated, table) = (entry.dedicated.clone(), self.table.clone());
        NumberedLease::Decided(Some(ConnectionLease { dedicated, table, was_used: true, is_answered: false }))
    }

    fn spawn(&self, dedicated: Arc<DedicatedConnection>) {
        let (table, connector, updates) = (self.table.clone(), self.connector.clone(), self.updates.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        let run = async move {
            let idle = table.wait_until_idle(&dedicated);
            dedicated.run(&connector, &updates, idle, || table.remove(&dedicated)).await
        };
        tasks.spawn_on(run, &self.runtime);
    }

    /// Announces changed roots of the client of a session. Connections without a session never declare that they
    /// announce them.
    pub(in crate::client) fn roots_changed(&self, caller: &Caller) {
        let Some(owner) =
            ConnectionOwner::of(caller).filter(|owner| matches!(owner, ConnectionOwner::Session(_)))
        else {
            return;
        };
        let entries = self.table.lock();
        let own = entries.iter().filter(|entry| entry.dedicated.key.owner.as_ref() == Some(&owner));
        own.for_each(|entry| entry.dedicated.roots_changed());
    }

    /// Returns the name of the server.
    pub(in crate::client) fn name(&self) -> &str {
        &self.connector.name
    }

    /// Closes all connections, and waits until they are closed.
    pub(in crate::client) async fn stop(&self) {
        self.table.lock().drain(..).for_each(|entry| entry.dedicated.close());
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}

impl DedicatedTable {
    fn lock(&self) -> MutexGuard<'_, Vec<DedicatedEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for another connection, if necessary by closing an idle one.
    fn make_room(&self, entries: &mut Vec<DedicatedEntry>) -> Option<()> {
        entries.retain(|entry| entry.dedicated.is_open());
        if entries.len() < self.options.limit {
            return Some(());
        }
        let idle = entries.iter().enumerate().filter(|(_, entry)| entry.active_calls == 0);
        let (at, _) = idle.min_by_key(|(_, entry)| entry.last_used)?;
        entries.swap_remove(at).dedicated.close();
        Some(())
    }

    /// Waits until a connection has been idle for long enough, and removes it from the table.
    async fn wait_until_idle(&self, dedicated: &Arc<DedicatedConnection>) {
        let mut next_check = Instant::now() + self.options.idle_timeout;
        loop {
            sleep_until(next_check).await;
            let mut entries = self.lock();
            let Some(at) = entry_index(&entries, dedicated) else { return };
            let now = Instant::now();
            let since = if entries[at].active_calls > 0 { now } else { entries[at].last_used };
            next_check = since + self.options.idle_timeout;
            if next_check <= now {
                entries.swap_remove(at);
                return;
            }
        }
    }

    /// Removes a connection.
    fn remove(&self, dedicated: &Arc<DedicatedConnection>) {
        self.lock().retain(|entry| !Arc::ptr_eq(&entry.dedicated, dedicated));
        self.freed.notify_waiters();
    }
}

impl DedicatedEntry {
    /// True if the connection can serve a call with this key. A connection without owner may have served another
    /// client: it is used again only if the server has never requested anything.
    fn accepts(&self, key: &DedicatedKey) -> bool {
        let has_capacity = key.allows_concurrent_calls() || self.active_calls == 0;
        let is_clean = key.owner.is_some() || !self.dedicated.has_requested();
        self.dedicated.key == *key && has_capacity && is_clean && self.dedicated.is_open()
    }
}

impl ConnectionLease {
    /// Returns the connection for the call; `None` if the server is still busy with an earlier call of another client.
    pub(in crate::client) async fn connection(&self) -> Result<Option<Arc<UpstreamConnection>>, ToolError> {
        let connection = self.dedicated.connection().await?;
        if self.dedicated.key.allows_concurrent_calls() || !self.was_used {
            return Ok(Some(connection));
        }
        // Late requests of the server arrive before the answer to this one.
        let ping_result = timeout(SETTLE_TIMEOUT, connection.ping()).await;
        let is_clean = self.dedicated.key.owner.is_some() || !connection.has_requested();
        let is_settled = matches!(ping_result, Ok(Ok(()))) && is_clean;
        Ok(is_settled.then_some(connection))
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        let mut entries = self.table.lock();
        if let Some(at) = entry_index(&entries, &self.dedicated) {
            let entry = &mut entries[at];
            entry.active_calls -= 1;
            entry.last_used = Instant::now();
            let (key, mode) = (&self.dedicated.key, self.table.options.sharing);
            let is_not_reusable =
                key.owner.is_none() && (self.dedicated.has_requested() || mode == SharingMode::Client);
            if is_not_reusable || (!key.allows_concurrent_calls() && !self.is_answered) {
                entries.swap_remove(at).dedicated.close();
            }
        }
        drop(entries);
        self.table.freed.notify_waiters();
    }
}

fn entry_index(entries: &[DedicatedEntry], dedicated: &Arc<DedicatedConnection>) -> Option<usize> {
    entries.iter().position(|entry| Arc::ptr_eq(&entry.dedicated, dedicated))
}
