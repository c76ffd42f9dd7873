//! Starts everything in its order, and stops it.

mod applied;
mod endpoint;
mod error;
mod options;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_agent::large::{LargeResults, LargeSettings};
use toolyard_core::gate::GateSize;
use toolyard_core::store::{Store, Trouble};
use toolyard_core::{Gateway, Observers, Registry};
use toolyard_functions::Host;
use toolyard_manifest::{Listen, Manifest, Process};
use toolyard_mcp::server::Frontend;
use toolyard_net::listener::{self, Listener, ListenerLimits};
use toolyard_net::workers::Workers;
use toolyard_process::{ProcessInfo, Processes};
use toolyard_store::{Location, StoreOptions};

use crate::added::AddedServers;
use crate::audit::Trail;
use crate::build::{Builder, Yard};
use crate::counters::{Counters, Counts};
use crate::edits::Edits;
use crate::fleet::memory::{Memory, Records};
use crate::fleet::{Declared, Edit, Fleet, Order, Patience, Published, Standing};
use crate::hosting::{Doors, Hosting};
use crate::keys::{KeyRing, Policy};
use crate::log::{FilterError, LogControl};
use crate::rest::Rest;
use crate::routes::{Stage, routes};
use crate::site::{Certificate, Site};
use crate::status::{LastEdit, Observatory};
use crate::summaries::{Chat, Writer};
use crate::telemetry::{Telemetry, Watched};

use endpoint::{frontend_options, guard, http_options};

pub use applied::Applied;
pub use error::StartError;
pub use options::Options;

/// A gateway that serves. Dropping it ends it at once; [`Running::stop`] lets calls end.
pub struct Running {
    listening: Vec<Listen>,
    certificate: Option<Arc<Certificate>>,
    gateway: Arc<Gateway>,
    frontend: Arc<Frontend>,
    counters: Arc<Counters>,
    stage: watch::Sender<Stage>,
    stopping: watch::Sender<bool>,
    serving: JoinSet<()>,
    ring: Arc<KeyRing>,
    trail: Trail,
    /// Keeps up with the keys and servers in the store and with the certificate's files, until it is dropped.
    _following: JoinSet<()>,
    /// Keeps the names in the store. It ends after the fleet, with the last of them.
    remembering: JoinSet<()>,
    /// What the process was started with: an edit changes handlers only.
    process: Process,
    orders: mpsc::Sender<Order>,
    added: Arc<AddedServers>,
    last_edit: watch::Sender<Option<LastEdit>>,
    /// Dropping it ends the handlers and their processes.
    fleet: JoinSet<()>,
    processes: Processes,
    hosting: Hosting,
    telemetry: Arc<Telemetry>,
    log: LogControl,
    /// What the document says of the log, applied last.
    log_filter: Mutex<String>,
}

/// Starts a gateway. When this returns all places are listened on that the manifest names, which may be none;
/// handlers may still be connecting.
///
/// # Errors
/// When the address is not to be had, or would be open to everybody.
pub async fn start(manifest: &Manifest, options: &Options) -> Result<Running, StartError> {
    let process = &manifest.process;
    let store = store(options).await?;
    let ring = key_ring(&store, process).await?;
    let Site { listeners, listening, certificate, renewals } = Site::open(process).await?;

    let (stage, stage_now) = watch::channel(Stage::Starting);
    let (stopping, stopping_now) = watch::channel(false);
    let (registry, registry_now) = watch::channel(Arc::<Registry>::default());
    let counters = Arc::new(Counters::default());
    let trail = Trail::start(process, &store);
    let telemetry = Arc::new(Telemetry::start(process)?);
    let mut observers = telemetry.observers(counters.clone());
    observers.of_calls.extend(trail.observer());
    let processes = Processes::new(options.spawner.clone(), process.limits.processes);
    let hosting = Hosting::start(process, &processes, store.clone());
    let (results, results_now) = watch::channel(None);
    let gateway =
        Arc::new(gateway(registry_now.clone(), results_now, observers, process, options, &hosting)?);

    let frontend = Arc::new(Frontend::new(gateway.clone(), frontend_options(process), stopping_now.clone()));
    let audit = trail.audit.clone();
    telemetry.watch(Watched { registry: registry_now.clone(), processes: processes.clone(), audit });
    let (standings, standings_now) = watch::channel(Arc::<[Standing]>::default());
    let (last_edit, last_edit_now) = watch::channel(None);
    let observatory = Observatory::new(&gateway, standings_now, &processes, last_edit_now);
    let (orders, orders_to_come) = mpsc::channel(1);
    let yard = Yard::new(&gateway, &store, results, &observatory.standings, &orders, process, &listening);
    let guard = guard(process, &listening);
    let rest = Rest {
        gateway: gateway.clone(),
        observatory: Arc::new(observatory),
        orders: orders.downgrade(),
        audit: trail.audit.clone(),
        host: hosting.host.clone(),
        sandbox: hosting.sandbox.clone(),
        services: yard.services.clone(),
        log: options.log.clone(),
        ring: ring.clone(),
        guard: guard.clone(),
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        once: Mutex::default(),
    };
    let options_of_http = http_options(process, guard).map_err(StartError::Tls)?;
    let routes = routes(frontend.clone(), options_of_http, Arc::new(rest), telemetry.clone(), stage_now);
    let serving = serve(listeners, routes, process, stopping_now)?;

    let builder = builder(process, &processes, &hosting, &yard)?;
    let (fleet, remembering) =
        start_fleet(manifest, builder, &yard, (registry, standings), orders_to_come).await?;
    let mut following = follow(&ring, certificate.clone(), renewals, process, &last_edit);
    follow_servers(&mut following, &yard, registry_now, process)?;
    stage.send_replace(Stage::Serving);
    Ok(Running {
        listening,
        certificate,
        gateway,
        frontend,
        counters,
        stage,
        stopping,
        serving,
        ring,
        trail,
        _following: following,
        remembering,
        process: process.clone(),
        orders,
        added: yard.added,
        last_edit,
        fleet,
        processes,
        hosting,
        telemetry,
        log: options.log.clone(),
        log_filter: Mutex::new(manifest.process.logs.filter.clone()),
    })
}

/// What builds the handlers.
fn builder(
    process: &Process,
    processes: &Processes,
    hosting: &Hosting,
    yard: &Yard,
) -> Result<Builder, StartError> {
    let builder = Builder::new(process.clone(), processes.clone()).map_err(StartError::Tls)?;
    Ok(builder.with_hosting(hosting.clone()).with_yard(yard.clone()))
}

/// Starts the handlers, with the names that their tools had before; and what keeps these names.
async fn start_fleet(
    manifest: &Manifest,
    builder: Builder,
    yard: &Yard,
    (registry, standings): (watch::Sender<Arc<Registry>>, watch::Sender<Arc<[Standing]>>),
    orders: mpsc::Receiver<Order>,
) -> Result<(JoinSet<()>, JoinSet<()>), StartError> {
    let timeouts = &manifest.process.timeouts;
    let patience = Patience { first_list: timeouts.first_list, drain: timeouts.drain };
    let (names, names_now) = watch::channel(Records::new());
    let published = Published { registry, standings, names };
    let declared = Declared { manifest: manifest.handlers.clone(), added: yard.added.recall().await };
    let running: Vec<_> = declared.running().map(|(handler, _)| handler.clone()).collect();
    let (memory, recalled) = Memory::recall(yard.store.clone(), &running).await;
    let started = Fleet::start(builder, declared, recalled, published, patience).map_err(StartError::Tls)?;
    let (mut fleet, mut remembering) = (JoinSet::new(), JoinSet::new());
    fleet.spawn(started.run(orders));
    remembering.spawn(memory.keep(names_now));
    Ok((fleet, remembering))
}

/// Keeps up with the keys of the store, and with the files of the certificate.
fn follow(
    ring: &Arc<KeyRing>,
    certificate: Option<Arc<Certificate>>,
    renewals: Edits,
    process: &Process,
    last_edit: &watch::Sender<Option<LastEdit>>,
) -> JoinSet<()> {
    let mut following = JoinSet::new();
    let (ring, key_check) = (ring.clone(), process.timeouts.key_check);
    following.spawn(async move { ring.follow(key_check).await });
    if let Some(certificate) = certificate {
        following.spawn(certificate.follow(renewals, process.timeouts.manifest_check, last_edit.clone()));
    }
    following
}

/// Keeps up with the servers in the store, and has summaries of servers written where there is a model that can.
fn follow_servers(
    following: &mut JoinSet<()>,
    yard: &Yard,
    registry: watch::Receiver<Arc<Registry>>,
    process: &Process,
) -> Result<(), StartError> {
    let (added, key_check) = (yard.added.clone(), process.timeouts.key_check);
    following.spawn(async move { added.follow(key_check).await });
    if let Some(llm) = &process.llm {
        let chat = Chat::new(llm).map_err(StartError::Tls)?;
        let writer = Writer { written: yard.written.clone(), chat, store: yard.store.clone() };
        following.spawn(async move { writer.follow(registry).await });
    }
    Ok(())
}

/// The store that there is, or one that lasts as long as the gateway.
async fn store(options: &Options) -> Result<Arc<dyn Store>, StartError> {
    match &options.store {
        Some(store) => Ok(store.clone()),
        None => toolyard_store::open(&StoreOptions::at(Location::Memory)).await.map_err(StartError::Store),
    }
}

/// Serves whoever comes in by a socket. Where there is none, nobody does.
fn serve(
    listeners: Vec<Listener>,
    routes: Router,
    process: &Process,
    stopping: watch::Receiver<bool>,
) -> Result<JoinSet<()>, StartError> {
    let mut serving = JoinSet::new();
    if !listeners.is_empty() {
        let workers = Workers::start(process.limits.workers).map_err(StartError::Workers)?;
        let limits = limits(process);
        serving.spawn(async move {
            listener::serve(listeners, routes, limits, &workers, until(stopping)).await;
        });
    }
    Ok(serving)
}

fn key_policy(process: &Process) -> Policy {
    match process.listen.iter().any(Listen::is_exposed) {
        _ if process.allow_unauthenticated => Policy::Never,
        true => Policy::Always,
        false => Policy::OnceThereIsOne,
    }
}

/// The keys. Sees to it that not everybody who reaches the gateway gets in, unless somebody wants that.
async fn key_ring(store: &Arc<dyn Store>, process: &Process) -> Result<Arc<KeyRing>, StartError> {
    let ring = Arc::new(KeyRing::new(store.clone(), key_policy(process)));
    let there_are_some = match ring.read().await {
        Ok(there_are_some) => there_are_some,
        // That will not become better by itself.
        Err(error) if error.trouble == Trouble::Unreadable => return Err(StartError::Keys(error)),
        // Until it can be read nobody gets in.
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "cannot read the keys");
            true
        }
    };
    let exposed = process.listen.iter().find(|place| place.is_exposed());
    match exposed.filter(|_| !process.allow_unauthenticated && !there_are_some) {
        None => Ok(ring),
        Some(place) => Err(StartError::Unauthenticated(place.clone())),
    }
}

fn gateway(
    registry: watch::Receiver<Arc<Registry>>,
    results: watch::Receiver<Option<Arc<LargeSettings>>>,
    observers: Observers,
    process: &Process,
    options: &Options,
    hosting: &Hosting,
) -> Result<Gateway, StartError> {
    let results = Box::new(LargeResults::new(results, registry.clone()));
    let size = GateSize { running: process.limits.concurrent_calls, waiting: process.limits.queued_calls };
    let mut layers = Gateway::layers(observers, size, Some(results));
    for name in &options.without_layers {
        let at = layers.iter().position(|layer| layer.name() == name);
        layers.remove(at.ok_or_else(|| StartError::NoSuchLayer(name.clone()))?);
    }
    let size = GateSize { running: process.limits.concurrent_calls_per_handler, ..size };
    Ok(Gateway::new(registry, layers).with_functions(Arc::new(Doors::new(hosting.host.clone(), size))))
}

fn limits(process: &Process) -> ListenerLimits {
    ListenerLimits {
        connections: process.limits.connections,
        head_bytes: process.limits.header_bytes,
        head_time: process.timeouts.request_head,
        drain_time: process.timeouts.drain,
    }
}

async fn until(mut stopping: watch::Receiver<bool>) {
    // A sender that is gone can say nothing any more, which means stop as well.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

impl Running {
    /// The places that are listened on, with the ports that the system chose.
    #[must_use]
    pub fn listening(&self) -> &[Listen] {
        &self.listening
    }

    /// The first address that is listened on.
    ///
    /// # Panics
    /// Where there are Unix sockets only.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.iter().find_map(Listen::tcp).expect("the gateway listens on TCP")
    }

    /// The URL of the MCP endpoint, where it is first listened on; a Unix socket has none, and is named instead.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        match self.listening.iter().find_map(Listen::tcp) {
            Some(address) => format!("{scheme}://{address}/mcp"),
            None => self.listening.first().map(Listen::to_string).unwrap_or_default(),
        }
    }

    /// Reads the certificate of the listener again, where it has one, as when its files change. What cannot be used is
    /// refused, logged and shown in the status, and the old one stays.
    pub async fn reload_certificate(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload(&self.last_edit).await;
        }
    }

    /// What serves MCP, for a client who is on no socket of ours.
    #[must_use]
    pub const fn frontend(&self) -> &Arc<Frontend> {
        &self.frontend
    }

    /// The door.
    #[must_use]
    pub const fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The hosted functions.
    #[must_use]
    pub const fn functions(&self) -> &Host {
        &self.hosting.host
    }

    /// The calls so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// The programs that run.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        self.processes.list()
    }

    /// Makes the handlers those of an edited manifest: what is the same goes on as if nothing had happened. What the
    /// edit says of the process itself is not applied, but reported.
    ///
    /// # Errors
    /// When something is missing that new handlers need of this system, or `secretsDir` has changed, on which they
    /// stand. Then nothing is changed.
    pub async fn apply(&self, manifest: &Manifest) -> io::Result<Applied> {
        if manifest.process.secrets_dir != self.process.secrets_dir {
            // Handlers would be built with the folder that there was at the start.
            return Err(io::Error::other("`secretsDir` is another folder, which takes a restart"));
        }
        self.follow_log(&manifest.process.logs.filter).map_err(io::Error::other)?;
        let (done, difference) = oneshot::channel();
        let stopping = || io::Error::other("the gateway is stopping");
        let edit = Edit { handlers: manifest.handlers.clone(), done };
        self.orders.send(Order::Edit(edit)).await.map_err(|_| stopping())?;
        let handlers = difference.await.map_err(|_| stopping())??;
        self.added.allow(manifest.process.builtins.as_ref().and_then(|builtins| builtins.mcp.clone()));
        let applied = Applied { handlers, needs_restart: self.needs_restart(&manifest.process) };
        self.last_edit.send_replace(Some(LastEdit::now(true, applied.to_string())));
        Ok(applied)
    }

    /// Has only that logged, from now on and until the next change of `logs.filter` in the manifest.
    ///
    /// # Errors
    /// When this is no filter, or the log is not the gateway's. Then nothing changes.
    pub fn set_log_filter(&self, filter: &str) -> Result<(), FilterError> {
        self.log.set_filter(filter)
    }

    /// Applies what an edit says of the log. What it said before may have been overruled since, and stays so.
    fn follow_log(&self, filter: &str) -> Result<(), FilterError> {
        let mut followed = self.log_filter.lock().unwrap_or_else(PoisonError::into_inner);
        if *followed != filter {
            self.log.set_filter(filter)?;
            filter.clone_into(&mut followed);
        }
        Ok(())
    }

    fn needs_restart(&self, edited: &Process) -> bool {
        let mut edited = edited.clone();
        edited.logs.filter.clone_from(&self.process.logs.filter);
        // Its handler is one of those that were edited.
        edited.builtins.clone_from(&self.process.builtins);
        edited != self.process
    }

    /// Notes that an edit was refused, for the status.
    pub fn refuse(&self, reason: String) {
        self.last_edit.send_replace(Some(LastEdit::now(false, reason)));
    }

    /// Takes no more calls, lets those that run end for as long as the manifest allows, and stops.
    pub async fn stop(mut self) -> Counts {
        self.stage.send_replace(Stage::Draining);
        self.stopping.send_replace(true);
        while self.serving.join_next().await.is_some() {}
        // From those who make calls to those who are told of them: what ends here still counts, is noted and is sent.
        self.frontend.stop().await;
        drop(self.orders);
        while self.fleet.join_next().await.is_some() {}
        let drain = self.process.timeouts.drain;
        if timeout(drain, self.remembering.join_next()).await.is_err() {
            tracing::error!("the last names of tools are not kept: the store does not take them");
        }
        self.hosting.host.stop(drain).await;
        self.ring.stop().await;
        self.trail.stop(drain).await;
        self.telemetry.stop().await;
        self.counters.read()
    }
}
