//! Servers that were added while a gateway ran. They are kept in the store, so that they come back after a restart, and so
//! that gateways on one store have the same: each follows the store, and has its fleet run what is there.

mod allow;
mod port;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use toolyard_agent::management::{NewServer, Refusal, Registered};
use toolyard_core::store::{Condition, Put, Store, StoreError, Trouble};
use toolyard_manifest::{self as manifest, ManagementSettings};

use crate::fleet::{Edit, NotUp, Order, Origin, Standing, Trial, Tried};
pub use port::Port;
use record::{Record, SERVERS};

/// How long the start waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server may take beside the time that it has to connect, for its lists.
const FOR_LISTS: Duration = Duration::from_secs(15);

/// The servers that were added.
pub struct AddedServers {
    store: Arc<dyn Store>,
    orders: mpsc::WeakSender<Order>,
    standings: watch::Receiver<Arc<[Standing]>>,
    /// Which ones may be added. `None`: none, and none of those that were runs.
    settings: watch::Sender<Option<ManagementSettings>>,
    /// Where the gateway listens: it is no server of itself.
    listening: Vec<SocketAddr>,
    /// How long one may take to come up.
    time: Duration,
    known: Mutex<Known>,
    /// One at a time reads the store and tells the fleet, so that what was read before never replaces what was read after.
    turn: Semaphore,
}

/// What is known of the store.
#[derive(Default)]
struct Known {
    records: Vec<Record>,
    /// What the fleet was told last: which state of the store, with which settings. `None` before that.
    told: Option<(u64, Option<ManagementSettings>)>,
    /// The names that somebody is adding just now.
    making: HashSet<String>,
}

/// What the fleet is to be told.
struct Read {
    handlers: Vec<manifest::Handler>,
    state: (u64, Option<ManagementSettings>),
}

/// What an [`AddedServers`] needs.
pub struct Places {
    /// Where the servers are kept.
    pub store: Arc<dyn Store>,
    /// The fleet, which takes orders.
    pub orders: mpsc::WeakSender<Order>,
    /// How the handlers are.
    pub standings: watch::Receiver<Arc<[Standing]>>,
    /// Where the gateway listens.
    pub listening: Vec<SocketAddr>,
}

impl AddedServers {
    /// The servers of a store, of which none is known yet. One that is added has `connect` to connect.
    #[must_use]
    pub fn new(places: Places, settings: Option<ManagementSettings>, connect: Duration) -> Self {
        let Places { store, orders, standings, listening } = places;
        let (known, turn) = (Mutex::default(), Semaphore::new(1));
        let (settings, time) = (watch::Sender::new(settings), connect + FOR_LISTS);
        Self { store, orders, standings, settings, listening, time, known, turn }
    }

    /// The servers that are there at the start, as handlers. Without the store there are none until it can be read.
    pub async fn recall(&self) -> Vec<manifest::Handler> {
        let read = timeout(PATIENCE, self.read()).await;
        match read.unwrap_or_else(|_| Err(StoreError::new(Trouble::Unavailable, "it takes too long"))) {
            Ok(Read { handlers, state }) => {
                self.known().told = Some(state);
                handlers
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the servers that were added at run time cannot be read yet");
                Vec::new()
            }
        }
    }

    /// Changes which servers may be added, and run.
    pub fn allow(&self, settings: Option<ManagementSettings>) {
        self.settings.send_if_modified(|before| {
            let is_other = *before != settings;
            *before = settings;
            is_other
        });
    }

    /// Follows the store and the settings, for as long as it is polled. A change is known after `every` at most.
    pub async fn follow(&self, every: Duration) {
        let mut is_well = true;
        let mut settings = self.settings.subscribe();
        loop {
            tokio::select! {
                () = sleep(every) => {}
                Ok(()) = settings.changed() => {}
            }
            if settings.borrow().is_none() && matches!(self.known().told, Some((_, None))) {
                // Whatever is there does not run.
                continue;
            }
            let outcome = self.refresh().await;
            if let (Err(error), true) = (&outcome, is_well)
                && !matches!(error, Refusal::Stopping)
            {
                let error = error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    "cannot follow the servers that are added at run time: those that are known go on"
                );
            }
            is_well = outcome.is_ok();
        }
    }

    /// Has the fleet run what is in the store, if that is other than what is known.
    async fn refresh(&self) -> Result<(), Refusal> {
        // It is never closed.
        let _turn = self.turn.acquire().await;
        let revision = self.store.revision(SERVERS).await?;
        let state = (revision, self.settings.borrow().clone());
        if self.known().told.as_ref() == Some(&state) {
            return Ok(());
        }
        let Read { handlers, state } = self.read().await?;
        self.tell(handlers).await?;
        // Last: who does not wait for the end of this leaves it to the next one.
        self.known().told = Some(state);
        Ok(())
    }

    /// What is in the store, as handlers; what is not allowed any more is left out.
    async fn read(&self) -> Result<Read, StoreError> {
        // First: what changes meanwhile is read again.
        let revision = self.store.revision(SERVERS).await?;
        let settings = self.settings.borrow().clone();
        let records = record::list(&*self.store).await?;
        let allowed = settings.as_ref().and_then(|settings| settings.allow.as_ref());
        let handlers = records.iter().filter_map(|record| self.running(record, allowed)).collect();
        self.known().records = records;
        Ok(Read { handlers, state: (revision, settings) })
    }

    /// The handler of a record, if it is to run.
    fn running(
        &self,
        record: &Record,
        allowed: Option<&manifest::AllowedServers>,
    ) -> Option<manifest::Handler> {
        let checked = record.handler().map_err(Refusal::Invalid).and_then(|handler| {
            allow::check(&handler, allowed.ok_or(Refusal::NothingAllowed)?, &self.listening)?;
            Ok(handler)
        });
        checked
            .inspect_err(|why| {
                let why = why as &dyn std::error::Error;
                tracing::warn!(
                    why,
                    server = record.name,
                    "a server that was added at run time is not started"
                );
            })
            .ok()
    }

    async fn tell(&self, handlers: Vec<manifest::Handler>) -> Result<(), Refusal> {
        let (done, difference) = oneshot::channel();
        self.order(Order::Add(Edit { handlers, done })).await?;
        let difference = difference.await.map_err(|_| Refusal::Stopping)?;
        let difference = difference.map_err(|error| Refusal::NotUp(error.to_string()))?;
        let [added, changed, removed] =
            [&difference.added, &difference.changed, &difference.removed].map(|names| names.join(", "));
        if !(added.is_empty() && changed.is_empty() && removed.is_empty()) {
            tracing::info!(added, changed, removed, "the servers that were added at run time are others");
        }
        Ok(())
    }

    /// The fleet ends when nobody can give orders any more, so nobody waits with the means to.
    async fn order(&self, order: Order) -> Result<(), Refusal> {
        let orders = self.orders.upgrade().ok_or(Refusal::Stopping)?;
        orders.send(order).await.map_err(|_| Refusal::Stopping)
    }

    /// Adds a server once it has come up.
    ///
    /// # Errors
    /// When it is not added. Nothing of it is left then.
    async fn add(&self, server: NewServer) -> Result<Registered, Refusal> {
        let settings = self.settings.borrow().clone().ok_or(Refusal::NothingAllowed)?;
        let allowed = settings.allow.as_ref().ok_or(Refusal::NothingAllowed)?;
        let record = Record::from(server);
        let handler = record.handler().map_err(Refusal::Invalid)?;
        allow::check(&handler, allowed, &self.listening)?;
        self.refresh().await?;
        let _making = self.make(&record.name, settings.servers)?;
        // It runs for as long as this is held, until the fleet has it.
        let tried = self.try_out(handler).await?;
        self.keep(&record, settings.servers).await?;
        self.refresh().await?;
        Ok(Registered { tools: tried.tools })
    }

    /// Puts a record into the store, to which other gateways add, too.
    async fn keep(&self, record: &Record, most: usize) -> Result<(), Refusal> {
        let put = Put { condition: Condition::Absent, ..Put::always(record.written()) };
        let kept = self.store.put(SERVERS, &record.name, put).await?;
        // Another gateway may have been faster.
        kept.ok_or(Refusal::Taken)?;
        // Only now: of those who add at the same time each sees the other.
        let there_are = record::list(&*self.store).await.map(|records| records.len());
        if there_are.as_ref().is_ok_and(|count| *count <= most) {
            return Ok(());
        }
        self.store.delete(SERVERS, &record.name).await?;
        there_are?;
        Err(Refusal::TooMany { limit: most })
    }

    /// Reserves a name until the server is there, or is not to be.
    fn make(&self, name: &str, most: usize) -> Result<Making<'_>, Refusal> {
        let is_running = self.standings.borrow().iter().any(|other| other.declared.name.as_str() == name);
        let mut known = self.known();
        if is_running || known.records.iter().any(|record| record.name == name) {
            return Err(Refusal::Taken);
        }
        if known.records.len() + known.making.len() >= most {
            return Err(Refusal::TooMany { limit: most });
        }
        if !known.making.insert(name.to_owned()) {
            return Err(Refusal::InTheMaking);
        }
        Ok(Making { servers: self, name: name.to_owned() })
    }

    async fn try_out(&self, declared: manifest::Handler) -> Result<Tried, Refusal> {
        let (done, tried) = oneshot::channel();
        let trial = Trial { declared, time: self.time, done };
        self.order(Order::Try(Box::new(trial))).await?;
        tried.await.map_err(|_| Refusal::Stopping)?.map_err(|why| match why {
            NotUp::TooSlow => Refusal::TooSlow(self.time),
            NotUp::Failed(reason) => Refusal::NotUp(reason),
        })
    }

    /// Removes a server.
    ///
    /// # Errors
    /// When it was not added at run time.
    async fn remove(&self, name: &str) -> Result<(), Refusal> {
        if self.configured().contains(name) {
            return Err(Refusal::Configured);
        }
        let was_there = self.store.delete(SERVERS, name).await?;
        self.refresh().await?;
        if was_there { Ok(()) } else { Err(Refusal::Unknown) }
    }

    /// The names of the handlers of the manifest.
    fn configured(&self) -> HashSet<String> {
        let standings = self.standings.borrow();
        let configured = standings.iter().filter(|standing| standing.origin == Origin::Manifest);
        configured.map(|standing| standing.declared.name.as_str().to_owned()).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that is reserved until this is dropped.
struct Making<'a> {
    servers: &'a AddedServers,
    name: String,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.servers.known().making.remove(&self.name);
    }
}
