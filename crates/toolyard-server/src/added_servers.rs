//! Servers added while a gateway runs. The store keeps them, so that they survive a restart and all gateways on one
//! store have the same ones. Each gateway follows the store and runs its servers in the fleet.
//!
//! With `builtins.mcp.file` a file keeps them instead (`server_file`), beside servers of the operator. Each gateway follows
//! the file.

mod allow;
mod gateway_servers;
mod record;
mod server_file;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolyard_agent::management::{NewServer, RegisteredServer, RegistrationError};
use toolyard_core::store::{PutRequest, Store, StoreError, StoreErrorKind, WriteCondition};
use toolyard_manifest::{self as manifest, ManagementSettings, ProcessTimeouts};
use toolyard_mcp::client::LauncherKind;

use crate::context::GatewayContext;
use crate::file_watcher::{FileWatcher, blocking};
use crate::fleet::{
    EditCommand, FleetCommand, HandlerOrigin, HandlerStatus, ServerTrial, TrialError, TriedServer,
};
pub use gateway_servers::GatewayServers;
use record::{SERVERS, ServerRecord};
use server_file::{FileServers, ServerFileError};

/// Maximum time that startup waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the lists of a server, beside its time to connect.
const LIST_TIME: Duration = Duration::from_secs(15);

/// Interval of checks for edits of the file with servers.
const FILE_INTERVAL: Duration = Duration::from_millis(250);

/// Time for which the file must stay unchanged before it is read.
///
/// The time that RockBot uses.
const FILE_SETTLE_TIME: Duration = Duration::from_millis(500);

/// The servers added at run time.
pub struct AddedServers {
    store: Arc<dyn Store>,
    commands: mpsc::WeakSender<FleetCommand>,
    statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    /// The servers that may be added. `None`: none may be added, and the stored ones do not run.
    settings: watch::Sender<Option<ManagementSettings>>,
    /// Bound addresses of the gateway, which may not be added as a server.
    listening: Vec<SocketAddr>,
    timeouts: ProcessTimeouts,
    state: Mutex<AddedServersState>,
    /// Held by the one task that reads the store and updates the fleet, so that an older state never replaces a newer
    /// one.
    turn: Semaphore,
}

/// The state read from the store.
#[derive(Default)]
struct AddedServersState {
    records: Vec<ServerRecord>,
    /// The file as it was read last, and its path.
    file: Option<(PathBuf, FileServers)>,
    /// Revision and settings that the fleet has applied last. `None` before that.
    applied: Option<(u64, Option<ManagementSettings>)>,
    /// Names that are reserved while their servers are being added.
    reserved_names: HashSet<String>,
}

/// The handlers to run, and the state from which they were read.
struct StoredServers {
    handlers: Vec<manifest::HandlerConfig>,
    state: (u64, Option<ManagementSettings>),
}

/// The dependencies of [`AddedServers`].
pub struct AddedServersDeps {
    /// The store of the servers.
    pub store: Arc<dyn Store>,
    /// Commands to the fleet.
    pub commands: mpsc::WeakSender<FleetCommand>,
    /// Status of each handler.
    pub statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    /// Bound addresses of the gateway.
    pub listening: Vec<SocketAddr>,
}

/// Starts to follow the servers in the store.
pub(crate) fn start(context: &GatewayContext, servers: &Arc<AddedServers>) -> JoinSet<()> {
    let (servers, every) = (servers.clone(), context.process.timeouts.key_check);
    let mut follower = JoinSet::new();
    follower.spawn(async move { servers.follow(every).await });
    follower
}

impl AddedServers {
    /// Creates the servers of a store without reading it.
    #[must_use]
    pub fn new(
        deps: AddedServersDeps,
        settings: Option<ManagementSettings>,
        timeouts: &ProcessTimeouts,
    ) -> Self {
        let AddedServersDeps { store, commands, statuses, listening } = deps;
        let (state, turn) = (Mutex::default(), Semaphore::new(1));
        let (settings, timeouts) = (watch::Sender::new(settings), timeouts.clone());
        Self { store, commands, statuses, settings, listening, timeouts, state, turn }
    }

    /// Reads the stored servers at startup. If the store is unavailable there are none until it can be read.
    pub async fn recall(&self) -> Vec<manifest::HandlerConfig> {
        self.read_file().await;
        let load = timeout(STORE_TIMEOUT, self.load()).await;
        match load.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unavailable, "timed out"))) {
            Ok(StoredServers { handlers, state }) => {
                self.state().applied = Some(state);
                handlers
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot read the servers added at run time yet");
                Vec::new()
            }
        }
    }

    /// Replaces the settings for servers that may be added and run.
    pub fn allow(&self, settings: Option<ManagementSettings>) {
        self.settings.send_if_modified(|before| {
            let is_changed = *before != settings;
            *before = settings;
            is_changed
        });
    }

    /// Follows the store or the file, and the settings, for as long as the future is polled. A change of the store is seen
    /// after `every` at most.
    pub async fn follow(&self, every: Duration) {
        tokio::join!(self.follow_store(every), self.follow_file());
    }

    async fn follow_store(&self, every: Duration) {
        let mut is_healthy = true;
        let mut settings = self.settings.subscribe();
        loop {
            tokio::select! {
                () = sleep(every) => {}
                Ok(()) = settings.changed() => {}
            }
            if settings.borrow().is_none() && matches!(self.state().applied, Some((_, None))) {
                // No stored server may run, so there is nothing to read.
                continue;
            }
            is_healthy = self.refresh_or_log(is_healthy).await;
        }
    }

    async fn follow_file(&self) {
        let mut settings = self.settings.subscribe();
        let mut is_healthy = true;
        loop {
            let mut watcher = self.file_watcher().await;
            self.read_file().await;
            if watcher.is_some() {
                is_healthy = self.refresh_or_log(is_healthy).await;
            }
            loop {
                tokio::select! {
                    Ok(()) = settings.changed() => break,
                    () = changed(watcher.as_ref()) => {}
                }
                if let Some(watcher) = &mut watcher {
                    watcher.read(|| ()).await;
                }
                self.read_file().await;
                is_healthy = self.refresh_or_log(is_healthy).await;
            }
        }
    }

    /// Updates the fleet, and returns `false` if that failed. Only the first of several failures is logged.
    async fn refresh_or_log(&self, was_healthy: bool) -> bool {
        let outcome = self.refresh().await;
        if let (Err(error), true) = (&outcome, was_healthy)
            && !matches!(error, RegistrationError::Stopping)
        {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "cannot follow the servers added at run time; the current ones stay");
        }
        outcome.is_ok()
    }

    fn file(&self) -> Option<PathBuf> {
        self.settings.borrow().as_ref()?.file.clone()
    }

    async fn file_watcher(&self) -> Option<FileWatcher> {
        let file = self.file()?;
        Some(FileWatcher::of(vec![file]).await.settling(FILE_SETTLE_TIME))
    }

    /// Reads the file of the settings. An invalid one is logged, and the servers that were read last stay.
    async fn read_file(&self) {
        let Some(path) = self.file() else {
            self.state().file = None;
            return;
        };
        let read = {
            let path = path.clone();
            blocking(move || server_file::read(&path)).await
        };
        let mut state = self.state();
        match read {
            Ok(servers) => state.file = Some((path, servers)),
            Err(error) => {
                // Servers of another file do not stay.
                state.file.take_if(|(of, _)| *of != path);
                drop(state);
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot read the file with servers; the current ones stay");
            }
        }
    }

    /// Updates the fleet if the store or the settings have changed.
    async fn refresh(&self) -> Result<(), RegistrationError> {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        let state = (self.revision().await?, self.settings.borrow().clone());
        if self.state().applied.as_ref() == Some(&state) {
            return Ok(());
        }
        let StoredServers { handlers, state } = self.load().await?;
        self.apply(handlers).await?;
        // The state is recorded last, so that a cancelled refresh is repeated.
        self.state().applied = Some(state);
        Ok(())
    }

    /// Returns a number that differs after a change of the servers.
    async fn revision(&self) -> Result<u64, StoreError> {
        if self.file().is_none() {
            return self.store.revision(SERVERS).await;
        }
        Ok(self.state().file.as_ref().map_or(0, |(_, servers)| servers.revision))
    }

    /// Reads the stored servers as handlers, without those that are not allowed any more.
    async fn load(&self) -> Result<StoredServers, StoreError> {
        // The revision comes first, so that a change during the read causes another read.
        let revision = self.revision().await?;
        let settings = self.settings.borrow().clone();
        let FileServers { mut handlers, records, .. } = match self.file() {
            None => FileServers { records: record::list(&*self.store).await?, ..FileServers::default() },
            Some(_) => self.state().file.as_ref().map(|(_, servers)| servers.clone()).unwrap_or_default(),
        };
        let allowed = settings.as_ref().and_then(|settings| settings.allow.as_ref());
        handlers.extend(records.iter().filter_map(|record| self.allowed_handler(record, allowed)));
        self.state().records = records;
        Ok(StoredServers { handlers, state: (revision, settings) })
    }

    /// Returns the handler of a record if it is allowed.
    fn allowed_handler(
        &self,
        record: &ServerRecord,
        allowed: Option<&manifest::AllowedServers>,
    ) -> Option<manifest::HandlerConfig> {
        let checked = record.handler().map_err(RegistrationError::Invalid).and_then(|handler| {
            let allowed = allowed.ok_or_else(|| allow::nothing_allowed(&handler))?;
            allow::check(&handler, allowed, &self.listening)?;
            Ok(handler)
        });
        checked
            .inspect_err(|reason| {
                let reason = reason as &dyn std::error::Error;
                tracing::warn!(
                    error = reason,
                    server = record.name,
                    "skipped a server that was added at run time"
                );
            })
            .ok()
    }

    async fn apply(&self, handlers: Vec<manifest::HandlerConfig>) -> Result<(), RegistrationError> {
        let (done, difference) = oneshot::channel();
        self.command(FleetCommand::Add(EditCommand { handlers, done })).await?;
        let difference = difference.await.map_err(|_| RegistrationError::Stopping)?;
        let difference = difference.map_err(|error| RegistrationError::NotUp(error.to_string()))?;
        let [added, changed, removed] =
            [&difference.added, &difference.changed, &difference.removed].map(|names| names.join(", "));
        if !(added.is_empty() && changed.is_empty() && removed.is_empty()) {
            tracing::info!(added, changed, removed, "changed the servers added at run time");
        }
        Ok(())
    }

    /// Sends a command. The sender is not held afterwards, because the fleet ends when all senders are dropped.
    async fn command(&self, command: FleetCommand) -> Result<(), RegistrationError> {
        let commands = self.commands.upgrade().ok_or(RegistrationError::Stopping)?;
        commands.send(command).await.map_err(|_| RegistrationError::Stopping)
    }

    /// Adds a server once it has come up.
    ///
    /// # Errors
    /// If it is not added. Then nothing of it remains.
    async fn add(&self, server: NewServer) -> Result<RegisteredServer, RegistrationError> {
        let record = ServerRecord::from(server);
        let handler = record.handler().map_err(RegistrationError::Invalid)?;
        let settings = self.settings.borrow().clone().ok_or_else(|| allow::nothing_allowed(&handler))?;
        let allowed = settings.allow.as_ref().ok_or_else(|| allow::nothing_allowed(&handler))?;
        allow::check(&handler, allowed, &self.listening)?;
        self.refresh().await?;
        let _reservation = self.reserve(&record.name, settings.servers)?;
        // The server runs for as long as this value exists, until the fleet takes it.
        let server = self.try_out(handler).await?;
        match settings.file {
            Some(file) => {
                self.change_file(file, move |file| server_file::add(file, &record)).await?;
            }
            None => self.save(&record, settings.servers).await?,
        }
        self.refresh().await?;
        Ok(RegisteredServer { tools: server.tools })
    }

    /// Stores a record. Other gateways may add servers at the same time.
    async fn save(&self, record: &ServerRecord, limit: usize) -> Result<(), RegistrationError> {
        let put = PutRequest { condition: WriteCondition::Absent, ..PutRequest::always(record.encode()) };
        let version = self.store.put(SERVERS, &record.name, put).await?;
        // Another gateway may have added the name meanwhile.
        version.ok_or(RegistrationError::Taken)?;
        // The count comes after the write, so that each of several concurrent gateways sees the others.
        let count = record::list(&*self.store).await.map(|records| records.len());
        if count.as_ref().is_ok_and(|count| *count <= limit) {
            return Ok(());
        }
        self.store.delete(SERVERS, &record.name).await?;
        count?;
        Err(RegistrationError::TooMany { limit })
    }

    /// Changes the file, and reads it again.
    async fn change_file<T: Send + 'static>(
        &self,
        file: PathBuf,
        change: impl FnOnce(&Path) -> Result<T, ServerFileError> + Send + 'static,
    ) -> Result<T, RegistrationError> {
        // The semaphore is never closed.
        let turn = self.turn.acquire().await;
        let changed = blocking(move || change(&file)).await;
        drop(turn);
        self.read_file().await;
        changed.map_err(|error| match error {
            ServerFileError::Taken => RegistrationError::Taken,
            error => RegistrationError::File(error.to_string()),
        })
    }

    /// Reserves a name while its server is being added.
    fn reserve(&self, name: &str, limit: usize) -> Result<NameReservation<'_>, RegistrationError> {
        let is_running = self.statuses.borrow().iter().any(|other| other.declared.name.as_str() == name);
        let mut state = self.state();
        if is_running || state.records.iter().any(|record| record.name == name) {
            return Err(RegistrationError::Taken);
        }
        if state.records.len() + state.reserved_names.len() >= limit {
            return Err(RegistrationError::TooMany { limit });
        }
        if !state.reserved_names.insert(name.to_owned()) {
            return Err(RegistrationError::InTheMaking);
        }
        Ok(NameReservation { servers: self, name: name.to_owned() })
    }

    async fn try_out(&self, declared: manifest::HandlerConfig) -> Result<TriedServer, RegistrationError> {
        let (done, server) = oneshot::channel();
        let time = trial_time(&declared, &self.timeouts);
        let trial = ServerTrial { declared, time, done };
        self.command(FleetCommand::Try(Box::new(trial))).await?;
        server.await.map_err(|_| RegistrationError::Stopping)?.map_err(|reason| match reason {
            TrialError::TooSlow { output } => RegistrationError::TooSlow { time, output },
            TrialError::Failed { reason, output } => RegistrationError::NotUp(reason + &output),
        })
    }

    /// Removes a server.
    ///
    /// # Errors
    /// If it was not added at run time.
    async fn remove(&self, name: &str) -> Result<(), RegistrationError> {
        if self.configured().contains(name) {
            return Err(RegistrationError::Configured);
        }
        let existed = match self.file() {
            Some(file) => {
                let name = name.to_owned();
                self.change_file(file, move |file| server_file::remove(file, &name)).await?
            }
            None => self.store.delete(SERVERS, name).await?,
        };
        self.refresh().await?;
        if existed { Ok(()) } else { Err(RegistrationError::Unknown) }
    }

    /// Names of the operator's handlers: those of the manifest and of the file.
    fn configured(&self) -> HashSet<String> {
        let statuses = self.statuses.borrow();
        let configured = statuses.iter().filter(|status| status.origin == HandlerOrigin::Manifest);
        let mut names: HashSet<_> =
            configured.map(|status| status.declared.name.as_str().to_owned()).collect();
        drop(statuses);
        let state = self.state();
        let of_file = state.file.iter().flat_map(|(_, servers)| &servers.handlers);
        names.extend(of_file.map(|handler| handler.name.as_str().to_owned()));
        names
    }

    fn state(&self) -> MutexGuard<'_, AddedServersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the file has changed; forever without a file.
async fn changed(watcher: Option<&FileWatcher>) {
    match watcher {
        Some(watcher) => watcher.next(FILE_INTERVAL).await,
        None => std::future::pending().await,
    }
}

/// Returns the maximum time for a server to come up. A launcher may wait for other installations, and install the
/// server.
fn trial_time(declared: &manifest::HandlerConfig, timeouts: &ProcessTimeouts) -> Duration {
    let launcher = match &declared.kind {
        manifest::HandlerKind::Mcp(mcp) => match &mcp.transport {
            manifest::McpTransport::Stdio { command, args, .. } => LauncherKind::of(command, args.iter()),
            manifest::McpTransport::Http(_) => None,
        },
        _ => None,
    };
    let start = match launcher {
        Some(_) => timeouts.install_queue.saturating_add(timeouts.first_start.max(timeouts.connect)),
        None => timeouts.connect,
    };
    start.saturating_add(LIST_TIME)
}

/// A reserved name, until dropped.
struct NameReservation<'a> {
    servers: &'a AddedServers,
    name: String,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        self.servers.state().reserved_names.remove(&self.name);
    }
}
