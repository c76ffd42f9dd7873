//! A frontend over a gateway with a single scripted backend.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::item::{KeyedItem, PublishedItem};
use toolyard_core::layers::{self, CallObserver, ObservedCall};
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, BackendPhase, Call, Caller, Catalog, Gateway, Json, Object, Observers, Outcome,
    PublishedTemplate, Registry, RegistryEntry, Tool, ToolError,
};
use toolyard_mcp::server::http::{HttpOptions, router};
use toolyard_mcp::server::{
    FrontendLimits, FrontendOptions, HttpPrincipal, McpFrontend, OfferedFeatures, ServerInfo, SessionLimits,
    TaskOffer,
};
use toolyard_net::budget::ByteBudget;
use toolyard_net::guard::BrowserGuard;
use toolyard_net::listener::{self, ListenerLimits};
use toolyard_net::workers::WorkerPool;

pub(crate) type Ended = Result<Outcome, ToolError>;

/// A backend that runs a closure for each call.
pub(crate) struct Scripted {
    catalog: watch::Sender<Arc<Catalog>>,
    script: Box<dyn Fn(Call) -> BoxFuture<'static, Ended> + Send + Sync>,
    updates: broadcast::Sender<String>,
    /// Number of running calls.
    running: Arc<watch::Sender<usize>>,
    /// The sessions whose roots have changed.
    changed: watch::Sender<Vec<Arc<str>>>,
    /// Number of followers by resource.
    following: Arc<watch::Sender<BTreeMap<String, usize>>>,
}

impl Backend for Scripted {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Ended> {
        let running = Running::new(&self.running);
        let work = (self.script)(call);
        Box::pin(async move {
            let _runs = running;
            work.await
        })
    }

    fn roots_changed(&self, caller: &Caller) {
        self.changed.send_modify(|changed| changed.extend(caller.session.clone()));
    }

    fn follow(&self, uri: &str, _caller: &Caller) -> BoxStream<'static, Object> {
        let follower = Follower::new(&self.following, uri);
        stream::unfold((self.updates.subscribe(), follower), async |(mut updates, follower)| {
            while updates.recv().await.ok()? != follower.uri {}
            Some((Object::new().with("uri", Json::string(&follower.uri)), (updates, follower)))
        })
        .boxed()
    }
}

/// Counts a call until it is dropped.
struct Running(Arc<watch::Sender<usize>>);

impl Running {
    fn new(running: &Arc<watch::Sender<usize>>) -> Self {
        running.send_modify(|running| *running += 1);
        Self(running.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

/// Counts a follower of a resource until it is dropped.
struct Follower {
    uri: String,
    following: Arc<watch::Sender<BTreeMap<String, usize>>>,
}

impl Follower {
    fn new(following: &Arc<watch::Sender<BTreeMap<String, usize>>>, uri: &str) -> Self {
        following.send_modify(|following| *following.entry(uri.to_owned()).or_default() += 1);
        Self { uri: uri.to_owned(), following: following.clone() }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.following.send_modify(|following| {
            let count = following.entry(self.uri.clone()).or_default();
            *count -= 1;
            if *count == 0 {
                following.remove(&self.uri);
            }
        });
    }
}

/// The definitions that a backend offers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offered {
    pub(crate) tools: &'static [&'static str],
    pub(crate) prompts: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
    pub(crate) templates: &'static [&'static str],
}

impl Offered {
    fn catalog(self) -> Catalog {
        let json = |text: &&str| Json::parse(text.to_string()).unwrap();
        Catalog {
            phase: BackendPhase::Ready,
            tools: self
                .tools
                .iter()
                .map(|text| Arc::new(Tool::from_definition(&json(text)).unwrap()))
                .collect(),
            prompts: self.prompts.iter().map(|text| item(&json(text))).collect(),
            resources: self.resources.iter().map(|text| item(&json(text))).collect(),
            templates: (self.templates.iter())
                .map(|text| Arc::new(PublishedTemplate::from_definition(&json(text)).unwrap()))
                .collect(),
            ..Catalog::default()
        }
    }
}

fn item<Kind: KeyedItem>(definition: &Json) -> Arc<PublishedItem<Kind>> {
    Arc::new(PublishedItem::from_definition(definition).unwrap())
}

/// The settings of a test gateway.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) offers: OfferedFeatures,
    pub(crate) limits: FrontendLimits,
    pub(crate) sessions: SessionLimits,
    pub(crate) offered: Offered,
    /// Timeout of a call.
    pub(crate) timeout: Duration,
    /// Maximum number of concurrent calls; further ones are refused.
    pub(crate) running: usize,
    /// True if the backend is connected from the beginning.
    pub(crate) settled: bool,
    /// Memory budget of large messages.
    pub(crate) budget_bytes: Option<usize>,
}

pub(crate) const EVERYTHING: OfferedFeatures = OfferedFeatures {
    tools: true,
    prompts: true,
    resources: true,
    completions: true,
    logging: true,
    tasks: TaskOffer::Declared,
};

/// Streams are not kept for resuming, which `resumability` tests.
const SESSIONS: SessionLimits = SessionLimits {
    max_sessions: 100,
    max_per_owner: 100,
    idle_timeout: Duration::from_secs(60),
    max_replay_bytes: 1 << 20,
    max_answers: 100,
    resume_timeout: Duration::ZERO,
};

impl Default for Setup {
    fn default() -> Self {
        Self {
            budget_bytes: None,
            offers: EVERYTHING,
            limits: FrontendLimits::default(),
            sessions: SESSIONS,
            offered: crate::script::OFFERED,
            timeout: Duration::from_secs(60),
            running: 100,
            settled: true,
        }
    }
}

/// Records how calls end.
#[derive(Default)]
struct Verdicts(watch::Sender<Vec<String>>);

impl CallObserver for Verdicts {
    fn begin<'a>(&'a self, _call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        Some(Box::new(CallObservation { verdicts: self, entry }))
    }
}

struct CallObservation<'a> {
    verdicts: &'a Verdicts,
    entry: &'a RegistryEntry,
}

impl ObservedCall for CallObservation<'_> {
    fn end(self: Box<Self>, call: layers::CallEnding<'_>) {
        let line = format!("{} {:?}", self.entry.name, call.verdict());
        self.verdicts.0.send_modify(|ended| ended.push(line));
    }
}

/// Lets all tasks of this thread run until each of them waits.
pub(crate) async fn let_tasks_settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// A frontend and everything behind it.
pub(crate) struct TestGateway {
    pub(crate) frontend: Arc<McpFrontend>,
    backend: Arc<Scripted>,
    handler: HandlerEntry,
    registry: watch::Sender<Arc<Registry>>,
    stopping: watch::Sender<bool>,
    verdicts: Arc<Verdicts>,
    sessions: SessionLimits,
    site: OnceLock<ServingSocket>,
}

/// Takes the principal from a header without authentication.
async fn trust_principal_header(mut request: Request, next: Next) -> Response {
    let says = request.headers().get("x-principal").and_then(|says| says.to_str().ok());
    if let Some(principal) = says.map(|says| HttpPrincipal(says.into())) {
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}

/// A frontend on a socket.
struct ServingSocket {
    address: SocketAddr,
    serving: JoinSet<()>,
}

impl TestGateway {
    /// Creates a gateway whose backend follows the arguments of its calls.
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        Self::build(setup, crate::script::run)
    }

    /// Creates a gateway with another backend.
    pub(crate) fn build<F>(setup: Setup, script: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let backend = Arc::new(Scripted {
            catalog: watch::Sender::new(Arc::new(setup.offered.catalog())),
            script: Box::new(move |call| Box::pin(script(call))),
            updates: broadcast::Sender::new(1000),
            running: Arc::default(),
            changed: watch::Sender::default(),
            following: Arc::default(),
        });
        let size = GateSize { running: setup.running, waiting: 0 };
        let limits = CallLimits { timeout: setup.timeout, gate: CallGate::new(size) };
        let handler = HandlerEntry::new("h", backend.clone(), limits);
        let (registry, registry_now) = watch::channel(Arc::default());
        let verdicts = Arc::<Verdicts>::default();
        let observers = Observers { of_calls: vec![verdicts.clone()], ..Observers::default() };
        let layers = Gateway::layers(observers, GateSize { running: 1000, waiting: 0 }, None, None);
        let gateway = Arc::new(Gateway::new(registry_now, layers));
        let info = ServerInfo { name: "gateway".into(), version: "1".into(), ..ServerInfo::default() };
        let options = FrontendOptions {
            info,
            offers: setup.offers,
            limits: setup.limits,
            budget: setup.budget_bytes.map(ByteBudget::new).unwrap_or_default(),
            ..FrontendOptions::default()
        };
        let (stopping, stopping_now) = watch::channel(false);
        let frontend = Arc::new(McpFrontend::new(gateway, options, stopping_now));
        let (sessions, site) = (setup.sessions, OnceLock::new());
        let gateway = Self { frontend, backend, handler, registry, stopping, verdicts, sessions, site };
        if setup.settled {
            gateway.offer(setup.offered);
        }
        gateway
    }

    /// Sets the definitions that the backend offers.
    pub(crate) fn offer(&self, offered: Offered) {
        let catalog = Arc::new(offered.catalog());
        self.backend.catalog.send_replace(catalog.clone());
        self.registry.send_replace(Arc::new(Registry::of(&self.handler, &catalog)));
    }

    /// Disconnects the backend.
    pub(crate) fn disconnect_backend(&self) {
        self.registry.send_replace(Arc::default());
    }

    /// Prevents further changes of the registry.
    pub(crate) fn freeze(&mut self) {
        drop(std::mem::take(&mut self.registry));
    }

    /// Sends an update of a resource.
    pub(crate) fn update(&self, uri: &str) {
        let _unheard = self.backend.updates.send(uri.to_owned());
    }

    /// Waits until exactly these resources have this many followers.
    pub(crate) async fn wait_for_followers(&self, expected: &[(&str, usize)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(uri, count)| (uri.to_string(), *count)).collect();
        let mut following = self.backend.following.subscribe();
        following.wait_for(|following| *following == expected).await.unwrap();
    }

    /// Waits for this many changes of roots and returns the number of their sessions.
    pub(crate) async fn roots_changed(&self, times: usize) -> usize {
        let mut changed = self.backend.changed.subscribe();
        let changed = changed.wait_for(|changed| changed.len() == times).await.unwrap();
        changed.iter().collect::<HashSet<_>>().len()
    }

    /// Waits until this many calls run.
    pub(crate) async fn wait_for_running(&self, count: usize) {
        self.backend.running.subscribe().wait_for(|running| *running == count).await.unwrap();
    }

    /// Returns the number of running calls.
    pub(crate) fn running(&self) -> usize {
        *self.backend.running.borrow()
    }

    /// Waits until this many calls have ended and returns how they ended.
    pub(crate) async fn ended(&self, count: usize) -> Vec<String> {
        let mut ended = self.verdicts.0.subscribe();
        ended.wait_for(|ended| ended.len() >= count).await.unwrap().clone()
    }

    /// Returns how calls have ended so far.
    pub(crate) fn over(&self) -> Vec<String> {
        self.verdicts.0.borrow().clone()
    }

    /// Ends all streams.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns the address of the frontend, which starts to listen on first use.
    pub(crate) fn address(&self) -> SocketAddr {
        self.site.get_or_init(|| self.serve()).address
    }

    fn serve(&self) -> ServingSocket {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let body_time = Duration::from_secs(10);
        let options = HttpOptions {
            guard: BrowserGuard::default(),
            max_body_bytes: 100_000,
            body_timeout: body_time,
            sessions: self.sessions,
            gateway_client: None,
        };
        let routes =
            router(self.frontend.clone(), options).layer(axum::middleware::from_fn(trust_principal_header));
        let limits = ListenerLimits {
            connections: 100,
            connections_per_address: 100,
            health_paths: &[],
            head_bytes: 8192,
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(60),
            drain_time: Duration::from_secs(60),
        };
        let mut stopping = self.stopping.subscribe();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let workers = WorkerPool::start(1).unwrap();
            let stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
            listener::serve(vec![listener.into()], routes, limits, &workers, stop).await;
        });
        ServingSocket { address, serving }
    }

    /// Waits until a stopped frontend has closed all connections.
    pub(crate) async fn wait_until_drained(mut self) {
        self.site.take().unwrap().serving.join_next().await.unwrap().unwrap();
    }
}
