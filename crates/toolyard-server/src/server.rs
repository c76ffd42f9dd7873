//! Startup order and shutdown of a gateway.

mod applied_edit;
mod endpoint;
mod error;
mod keys;
mod options;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use toolyard_agent::large::{LargeResults, LargeSettings};
use toolyard_core::gate::GateSize;
use toolyard_core::long_work::BackgroundSpawner;
use toolyard_core::store::Store;
use toolyard_core::{Gateway, LongWork, Observers, Registry};
use toolyard_functions::FunctionHost;
use toolyard_manifest::{ListenAddress, Manifest, ProcessSettings};
use toolyard_mcp::server::{FrontendOptions, McpFrontend, owner_of};
use toolyard_net::budget::ByteBudget;
use toolyard_net::listener::{self, ListenerLimits, SocketListener};
use toolyard_net::workers::WorkerPool;
use toolyard_process::{ProcessInfo, ProcessTable};
use toolyard_store::{DatabaseLocation, StoreOptions};

use crate::added_servers::AddedServers;
use crate::audit::{AuditQueue, AuditService};
use crate::build::{BuiltinDeps, HandlerBuilder};
use crate::counters::{CallCounters, CallCounts};
use crate::file_watcher::FileWatcher;
use crate::fleet::handler_records::{HandlerRecordStore, HandlerRecords};
use crate::fleet::{
    DeclaredHandlers, EditCommand, FleetCommand, FleetOutputs, FleetTimeouts, HandlerFleet, HandlerStatus,
    RecalledState, follow_acceptances,
};
use crate::hosting::{CodeHosting, HostedFunctions};
use crate::keys::KeyCache;
use crate::listeners::{BoundListeners, ServerCertificate};
use crate::log::{FilterError, LogControl};
use crate::rest::RestState;
use crate::routes::{GatewayStage, HEALTH, routes};
use crate::status::{LastEdit, StatusReporter};
use crate::summaries::{ChatClient, SummaryWriter};
use crate::telemetry::{GatewayTelemetry, GaugeSources};

use endpoint::{frontend_options, guard, http_options};
use keys::key_cache;

pub use applied_edit::AppliedEdit;
pub use error::StartError;
pub use options::GatewayOptions;

/// A running gateway. Dropping it stops it at once; [`RunningGateway::stop`] lets running calls finish.
pub struct RunningGateway {
    listening: Vec<ListenAddress>,
    certificate: Option<Arc<ServerCertificate>>,
    gateway: Arc<Gateway>,
    frontend: Arc<McpFrontend>,
    counters: Arc<CallCounters>,
    stage: watch::Sender<GatewayStage>,
    stopping: watch::Sender<bool>,
    serving: JoinSet<()>,
    keys: Arc<KeyCache>,
    trail: AuditService,
    /// Tasks that follow the keys and servers in the store and the certificate's files.
    _followers: JoinSet<()>,
    /// Tasks that save names and definitions in the store. They end after the fleet, once everything is saved.
    record_writers: JoinSet<()>,
    /// The process settings at startup. An edit of the manifest changes handlers only.
    process: ProcessSettings,
    commands: mpsc::Sender<FleetCommand>,
    added: Arc<AddedServers>,
    last_edit: watch::Sender<Option<LastEdit>>,
    /// Tasks of the fleet. Dropping them stops the handlers and their processes.
    fleet: JoinSet<()>,
    processes: ProcessTable,
    hosting: CodeHosting,
    telemetry: Arc<GatewayTelemetry>,
    log: LogControl,
    /// The log filter of the manifest that was applied last.
    log_filter: Mutex<String>,
}

/// Starts a gateway. On return, every address of the manifest is bound (there may be none); handlers may still be
/// connecting.
///
/// # Errors
/// If an address cannot be bound or would be open to unauthenticated callers.
pub async fn start(manifest: &Manifest, options: &GatewayOptions) -> Result<RunningGateway, StartError> {
    let process = &manifest.process;
    let store = store(options).await?;
    let keys = key_cache(&store, process, options.key_marker.as_ref()).await?;
    let BoundListeners { listeners, listening, certificate, renewal } = BoundListeners::open(process).await?;

    let (stage, stage_now) = watch::channel(GatewayStage::Starting);
    let (stopping, stopping_now) = watch::channel(false);
    let (registry, registry_now) = watch::channel(Arc::<Registry>::default());
    let counters = Arc::new(CallCounters::default());
    let trail = AuditService::start(process, &store);
    let telemetry = Arc::new(GatewayTelemetry::start(process)?);
    let mut observers = telemetry.observers(counters.clone());
    observers.of_calls.extend(trail.observer());
    let processes = ProcessTable::new(options.spawner.clone(), process.limits.processes);
    let hosting = CodeHosting::start(process, &processes, store.clone());
    let (results, results_now) = watch::channel(None);
    let long_work = long_work();
    let gateway = gateway(&registry_now, results_now, observers, process, options, &hosting, &long_work)?;

    let budget = ByteBudget::new(process.limits.bytes_in_flight);
    let options_of_mcp = FrontendOptions { budget: budget.clone(), ..frontend_options(process) };
    let frontend = Arc::new(McpFrontend::new(gateway.clone(), options_of_mcp, stopping_now.clone()));
    let audit = trail.audit.clone();
    telemetry.watch(GaugeSources { registry: registry_now.clone(), processes: processes.clone(), audit });
    let (statuses, statuses_now) = watch::channel(Arc::<[HandlerStatus]>::default());
    let (last_edit, last_edit_now) = watch::channel(None);
    let status = Arc::new(StatusReporter::new(&gateway, statuses_now, &processes, last_edit_now));
    let (commands, command_receiver) = mpsc::channel(1);
    let deps = BuiltinDeps::new(&gateway, &store, results, &status.statuses, &commands, process, &listening);
    let guard = guard(process, &listening);
    let rest = Arc::new(RestState {
        gateway: gateway.clone(),
        reporter: status.clone(),
        commands: commands.downgrade(),
        audit: trail.audit.clone(),
        host: hosting.host.clone(),
        sandbox: hosting.sandbox.clone(),
        services: deps.services.clone(),
        log: options.log.clone(),
        keys: keys.clone(),
        guard: guard.clone(),
        stage: stage_now.clone(),
        budget: budget.clone(),
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        detached_calls: Mutex::default(),
    });
    let routes = routes(frontend.clone(), http_options(process, guard)?, rest, telemetry.clone(), stage_now);
    let serving = serve(listeners, routes, process, stopping_now)?;

    let builder = builder(process, &processes, &hosting, &deps, budget)?.with_long_work(long_work);
    let (fleet, record_writers) =
        start_fleet(manifest, builder, &deps, (registry, statuses), &trail.audit, command_receiver).await?;
    let mut followers = follow_keys(&keys, certificate.clone(), renewal, process, &last_edit);
    let fleet_state = (commands.downgrade(), status.statuses.clone());
    follow_store(&mut followers, &deps, fleet_state, registry_now, process)?;
    stage.send_replace(GatewayStage::Serving);
    Ok(RunningGateway {
        listening,
        certificate,
        gateway,
        frontend,
        counters,
        stage,
        stopping,
        serving,
        keys,
        trail,
        _followers: followers,
        record_writers,
        process: process.clone(),
        commands,
        added: deps.added,
        last_edit,
        fleet,
        processes,
        hosting,
        telemetry,
        log: options.log.clone(),
        log_filter: Mutex::new(manifest.process.logs.filter.clone()),
    })
}

/// Creates the builder of handlers.
fn builder(
    process: &ProcessSettings,
    processes: &ProcessTable,
    hosting: &CodeHosting,
    deps: &BuiltinDeps,
    budget: ByteBudget,
) -> Result<HandlerBuilder, StartError> {
    let builder = HandlerBuilder::new(process.clone(), processes.clone()).map_err(StartError::Tls)?;
    Ok(builder.with_hosting(hosting.clone()).with_builtin_deps(deps.clone()).with_budget(budget))
}

/// Starts the handlers with the saved names and definitions of their tools, and the tasks that save both.
async fn start_fleet(
    manifest: &Manifest,
    builder: HandlerBuilder,
    deps: &BuiltinDeps,
    (registry, statuses): (watch::Sender<Arc<Registry>>, watch::Sender<Arc<[HandlerStatus]>>),
    audit: &Arc<AuditQueue>,
    commands: mpsc::Receiver<FleetCommand>,
) -> Result<(JoinSet<()>, JoinSet<()>), StartError> {
    let (names, names_now) = watch::channel(HandlerRecords::new());
    let (definitions, definitions_now) = watch::channel(HandlerRecords::new());
    let (acceptances, acceptances_now) = watch::channel(HandlerRecords::new());
    let audit = audit.clone();
    let outputs = FleetOutputs { registry, statuses, names, definitions, acceptances, audit };
    let timeouts = &manifest.process.timeouts;
    let fleet_timeouts = FleetTimeouts { first_list: timeouts.first_list, drain: timeouts.drain };
    let declared = DeclaredHandlers { manifest: manifest.handlers.clone(), added: deps.added.recall().await };
    let running: Vec<_> = declared.running().map(|(handler, _)| handler.clone()).collect();
    let ((name_store, names), (definition_store, mut definitions)) = tokio::join!(
        HandlerRecordStore::recall(deps.store.clone(), &running),
        HandlerRecordStore::recall_definitions(deps.store.clone(), &running),
    );
    let acceptance_store =
        HandlerRecordStore::recall_acceptances(deps.store.clone(), &running, &mut definitions).await;
    let recalled_state = RecalledState { names, definitions };
    let started = HandlerFleet::start(builder, declared, recalled_state, outputs, fleet_timeouts)
        .map_err(StartError::Tls)?;
    let (mut fleet, mut record_writers) = (JoinSet::new(), JoinSet::new());
    fleet.spawn(started.run(commands));
    record_writers.spawn(name_store.run(names_now));
    if let Some(store) = definition_store {
        record_writers.spawn(store.run(definitions_now));
    }
    if let Some(store) = acceptance_store {
        record_writers.spawn(store.run(acceptances_now));
    }
    Ok((fleet, record_writers))
}

/// Follows the keys in the store and the files of the certificate.
fn follow_keys(
    keys: &Arc<KeyCache>,
    certificate: Option<Arc<ServerCertificate>>,
    renewal: FileWatcher,
    process: &ProcessSettings,
    last_edit: &watch::Sender<Option<LastEdit>>,
) -> JoinSet<()> {
    let mut followers = JoinSet::new();
    let (keys, key_check) = (keys.clone(), process.timeouts.key_check);
    followers.spawn(async move { keys.follow(key_check).await });
    if let Some(certificate) = certificate {
        followers.spawn(certificate.follow(renewal, process.timeouts.manifest_check, last_edit.clone()));
    }
    followers
}

/// Follows the servers and acceptances in the store. Starts the summary writer if a language model is configured.
fn follow_store(
    followers: &mut JoinSet<()>,
    deps: &BuiltinDeps,
    (commands, statuses): (mpsc::WeakSender<FleetCommand>, watch::Receiver<Arc<[HandlerStatus]>>),
    registry: watch::Receiver<Arc<Registry>>,
    process: &ProcessSettings,
) -> Result<(), StartError> {
    let (added, key_check) = (deps.added.clone(), process.timeouts.key_check);
    followers.spawn(async move { added.follow(key_check).await });
    followers.spawn(follow_acceptances(deps.store.clone(), commands, statuses, key_check));
    if let Some(llm) = &process.llm {
        let chat = ChatClient::new(llm).map_err(StartError::Tls)?;
        let writer = SummaryWriter { summaries: deps.summaries.clone(), chat, store: deps.store.clone() };
        followers.spawn(async move { writer.follow(registry).await });
    }
    Ok(())
}

/// Returns the configured store, or an in-memory store that lasts as long as the gateway.
async fn store(options: &GatewayOptions) -> Result<Arc<dyn Store>, StartError> {
    match &options.store {
        Some(store) => Ok(store.clone()),
        None => {
            toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.map_err(StartError::Store)
        }
    }
}

/// Serves connections of the listeners, if there are any.
fn serve(
    listeners: Vec<SocketListener>,
    routes: Router,
    process: &ProcessSettings,
    stopping: watch::Receiver<bool>,
) -> Result<JoinSet<()>, StartError> {
    let mut serving = JoinSet::new();
    if !listeners.is_empty() {
        let workers = WorkerPool::start(process.limits.workers).map_err(StartError::Workers)?;
        let limits = limits(process);
        serving.spawn(async move {
            listener::serve(listeners, routes, limits, &workers, stopped(stopping)).await;
        });
    }
    Ok(serving)
}

/// Slots for slow checks and mappings, shared fairly among the owners of the calls.
fn long_work() -> LongWork {
    let background: BackgroundSpawner = Arc::new(|work| drop(spawn_blocking(work)));
    LongWork::new(background).owned_by(owner_of)
}

fn gateway(
    registry: &watch::Receiver<Arc<Registry>>,
    results: watch::Receiver<Option<Arc<LargeSettings>>>,
    observers: Observers,
    process: &ProcessSettings,
    options: &GatewayOptions,
    hosting: &CodeHosting,
    long_work: &LongWork,
) -> Result<Arc<Gateway>, StartError> {
    let results = Box::new(LargeResults::new(results, registry.clone()));
    let size = GateSize { running: process.limits.concurrent_calls, waiting: process.limits.queued_calls };
    let mut layers = Gateway::layers(observers, size, Some(long_work.clone()), Some(results));
    for name in &options.without_layers {
        let at = layers.iter().position(|layer| layer.name() == name);
        layers.remove(at.ok_or_else(|| StartError::NoSuchLayer(name.clone()))?);
    }
    let size = GateSize { running: process.limits.concurrent_calls_per_handler, ..size };
    let functions = Arc::new(HostedFunctions::new(hosting.host.clone(), size));
    Ok(Arc::new(Gateway::new(registry.clone(), layers).with_functions(functions)))
}

/// Returns the connection limit. A quarter of the open-file limit is reserved for upstreams, the store and programs.
fn connections(process: &ProcessSettings) -> usize {
    let configured = process.limits.connections;
    let possible = toolyard_process::file_limit().map_or(configured, |files| files / 4 * 3);
    if possible < configured {
        tracing::warn!(
            "at most {possible} of `limits.connections` ({configured}) can be open: raise the system's limit of open files"
        );
    }
    possible.clamp(1, configured)
}

fn limits(process: &ProcessSettings) -> ListenerLimits {
    ListenerLimits {
        connections: connections(process),
        connections_per_address: process.limits.connections_per_address,
        health_path: Some(HEALTH),
        head_bytes: process.limits.header_bytes,
        head_time: process.timeouts.request_head,
        write_time: process.timeouts.response_write,
        drain_time: process.timeouts.drain,
    }
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

impl RunningGateway {
    /// The bound addresses, with the ports that the system chose.
    #[must_use]
    pub fn listening(&self) -> &[ListenAddress] {
        &self.listening
    }

    /// The first bound TCP address.
    ///
    /// # Panics
    /// If the gateway listens on Unix sockets only.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.iter().find_map(ListenAddress::tcp).expect("the gateway listens on TCP")
    }

    /// The URL of the MCP endpoint on the first TCP address, or the path of the Unix socket if there is no TCP address.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        match self.listening.iter().find_map(ListenAddress::tcp) {
            Some(address) => format!("{scheme}://{address}/mcp"),
            None => self.listening.first().map(ListenAddress::to_string).unwrap_or_default(),
        }
    }

    /// Reloads the certificate of the listener, if TLS is configured. An unusable certificate is refused, logged and
    /// reported in the status; the current one stays.
    pub async fn reload_certificate(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload(&self.last_edit).await;
        }
    }

    /// The MCP frontend, for a client that uses no socket of the gateway.
    #[must_use]
    pub const fn frontend(&self) -> &Arc<McpFrontend> {
        &self.frontend
    }

    /// The gateway that runs all calls.
    #[must_use]
    pub const fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The hosted functions.
    #[must_use]
    pub const fn functions(&self) -> &FunctionHost {
        &self.hosting.host
    }

    /// The totals of calls so far.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.counters.read()
    }

    /// The running programs.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        self.processes.list()
    }

    /// Applies the handlers of an edited manifest. Unchanged handlers keep running undisturbed. Changes of the process
    /// settings are reported and not applied.
    ///
    /// # Errors
    /// If new handlers need something that this system lacks, or if `secretsDir` has changed, on which handlers depend.
    /// Then nothing is changed.
    pub async fn apply(&self, manifest: &Manifest) -> io::Result<AppliedEdit> {
        if manifest.process.secrets_dir != self.process.secrets_dir {
            // Handlers would be built with the folder configured at startup.
            return Err(io::Error::other("`secretsDir` has changed, which needs a restart"));
        }
        self.follow_log(&manifest.process.logs.filter).map_err(io::Error::other)?;
        let (done, difference) = oneshot::channel();
        let stopping = || io::Error::other("the gateway is stopping");
        let edit = EditCommand { handlers: manifest.handlers.clone(), done };
        self.commands.send(FleetCommand::Edit(edit)).await.map_err(|_| stopping())?;
        let handlers = difference.await.map_err(|_| stopping())??;
        self.added.allow(manifest.process.builtins.as_ref().and_then(|builtins| builtins.mcp.clone()));
        let applied = AppliedEdit { handlers, needs_restart: self.needs_restart(&manifest.process) };
        self.last_edit.send_replace(Some(LastEdit::now(true, applied.to_string())));
        Ok(applied)
    }

    /// Replaces the log filter until the next change of `logs.filter` in the manifest.
    ///
    /// # Errors
    /// If the filter is invalid or the log is not the gateway's. Then nothing changes.
    pub fn set_log_filter(&self, filter: &str) -> Result<(), FilterError> {
        self.log.set_filter(filter)
    }

    /// Applies the manifest's log filter if it has changed. A filter set since by an operator otherwise stays.
    fn follow_log(&self, filter: &str) -> Result<(), FilterError> {
        let mut followed = self.log_filter.lock().unwrap_or_else(PoisonError::into_inner);
        if *followed != filter {
            self.log.set_filter(filter)?;
            filter.clone_into(&mut followed);
        }
        Ok(())
    }

    fn needs_restart(&self, edited: &ProcessSettings) -> bool {
        let mut edited = edited.clone();
        edited.logs.filter.clone_from(&self.process.logs.filter);
        // Edits of the built-in tools apply to their handler.
        edited.builtins.clone_from(&self.process.builtins);
        edited != self.process
    }

    /// Records a refused edit for the status.
    pub fn refuse(&self, reason: String) {
        self.last_edit.send_replace(Some(LastEdit::now(false, reason)));
    }

    /// Stops accepting calls, lets running calls finish within the configured drain time, and stops.
    pub async fn stop(mut self) -> CallCounts {
        self.stage.send_replace(GatewayStage::Draining);
        self.stopping.send_replace(true);
        while self.serving.join_next().await.is_some() {}
        // From the sources of calls to their observers, so that late calls are still counted, audited and exported.
        self.frontend.stop().await;
        drop(self.commands);
        while self.fleet.join_next().await.is_some() {}
        let drain = self.process.timeouts.drain;
        let saved = async { while self.record_writers.join_next().await.is_some() {} };
        if timeout(drain, saved).await.is_err() {
            tracing::error!(
                "lost the last names and definitions of tools: the store did not accept them in time"
            );
        }
        self.hosting.host.stop(drain).await;
        self.keys.stop().await;
        self.trail.stop(drain).await;
        self.telemetry.stop().await;
        self.counters.read()
    }
}
