//! A frontend over a gateway whose only backend does what a test says.

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
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::item::{Item, Keyed};
use toolyard_core::layers::{self, Observation, Observer};
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{
    Backend, Call, Caller, Catalog, Entry, Gateway, Json, Object, Observers, Outcome, Phase, Registry,
    Template, Tool, ToolError,
};
use toolyard_mcp::server::http::{HttpOptions, router};
use toolyard_mcp::server::{
    Frontend, FrontendLimits, FrontendOptions, Offers, Principal, ServerInfo, SessionLimits, TaskOffer,
};
use toolyard_net::guard::Guard;
use toolyard_net::listener::{self, ListenerLimits};
use toolyard_net::workers::Workers;

pub(crate) type Ended = Result<Outcome, ToolError>;

/// A backend that runs a closure for each call.
pub(crate) struct Scripted {
    catalog: watch::Sender<Arc<Catalog>>,
    script: Box<dyn Fn(Call) -> BoxFuture<'static, Ended> + Send + Sync>,
    updates: broadcast::Sender<String>,
    /// How many calls run.
    running: Arc<watch::Sender<usize>>,
    /// The sessions whose folders have changed.
    changed: watch::Sender<Vec<Arc<str>>>,
    /// How many follow each resource.
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

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        let follower = Follower::new(&self.following, uri);
        stream::unfold((self.updates.subscribe(), follower), async |(mut updates, follower)| {
            while updates.recv().await.ok()? != follower.uri {}
            Some((Object::new().with("uri", Json::string(&follower.uri)), (updates, follower)))
        })
        .boxed()
    }
}

/// Counts a call, until it is dropped.
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

/// Counts one who follows a resource, until it is dropped.
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

/// Definitions of what a backend offers.
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
            phase: Phase::Ready,
            tools: self
                .tools
                .iter()
                .map(|text| Arc::new(Tool::from_definition(&json(text)).unwrap()))
                .collect(),
            prompts: self.prompts.iter().map(|text| item(&json(text))).collect(),
            resources: self.resources.iter().map(|text| item(&json(text))).collect(),
            templates: (self.templates.iter())
                .map(|text| Arc::new(Template::from_definition(&json(text)).unwrap()))
                .collect(),
            ..Catalog::default()
        }
    }
}

fn item<Kind: Keyed>(definition: &Json) -> Arc<Item<Kind>> {
    Arc::new(Item::from_definition(definition).unwrap())
}

/// What a yard is built of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) offers: Offers,
    pub(crate) limits: FrontendLimits,
    pub(crate) sessions: SessionLimits,
    pub(crate) offered: Offered,
    /// The time of one call.
    pub(crate) timeout: Duration,
    /// Calls that run at once; no other waits.
    pub(crate) running: usize,
    /// Whether the backend is heard of from the beginning.
    pub(crate) settled: bool,
}

pub(crate) const EVERYTHING: Offers = Offers {
    tools: true,
    prompts: true,
    resources: true,
    completions: true,
    logging: true,
    tasks: TaskOffer::Declared,
};

/// Who leaves is gone at once: what it means to come back is what `resuming` is about.
const SESSIONS: SessionLimits = SessionLimits {
    sessions: 100,
    idle: Duration::from_secs(60),
    replay_bytes: 1 << 20,
    answers: 100,
    resume: Duration::ZERO,
};

impl Default for Setup {
    fn default() -> Self {
        Self {
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

/// Notes how calls ended.
#[derive(Default)]
struct Verdicts(watch::Sender<Vec<String>>);

impl Observer for Verdicts {
    fn begin<'a>(&'a self, _call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        Box::new(Begun { verdicts: self, entry })
    }
}

struct Begun<'a> {
    verdicts: &'a Verdicts,
    entry: &'a Entry,
}

impl Observation for Begun<'_> {
    fn end(self: Box<Self>, call: layers::Ended<'_>) {
        let line = format!("{} {:?}", self.entry.name, call.verdict());
        self.verdicts.0.send_modify(|ended| ended.push(line));
    }
}

/// Lets all tasks of this thread run until each of them waits for something.
pub(crate) async fn everybody_rests() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// A frontend, and what is behind it.
pub(crate) struct Yard {
    pub(crate) frontend: Arc<Frontend>,
    backend: Arc<Scripted>,
    handler: Handler,
    registry: watch::Sender<Arc<Registry>>,
    stopping: watch::Sender<bool>,
    verdicts: Arc<Verdicts>,
    sessions: SessionLimits,
    site: OnceLock<Site>,
}

/// Whom a request acts for is what it says: the tests are about what follows from that.
async fn believe(mut request: Request, next: Next) -> Response {
    let says = request.headers().get("x-principal").and_then(|says| says.to_str().ok());
    if let Some(principal) = says.map(|says| Principal(says.into())) {
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}

/// A frontend on a socket.
struct Site {
    address: SocketAddr,
    serving: JoinSet<()>,
}

impl Yard {
    /// A yard whose backend does what the arguments of its calls say.
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        Self::build(setup, crate::script::run)
    }

    /// A yard whose backend does something else.
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
        let limits = Limits { timeout: setup.timeout, gate: Gate::new(size) };
        let handler = Handler::new("h", backend.clone(), limits);
        let (registry, registry_now) = watch::channel(Arc::default());
        let verdicts = Arc::<Verdicts>::default();
        let observers = Observers { of_calls: vec![verdicts.clone()], ..Observers::default() };
        let layers = Gateway::layers(observers, GateSize { running: 1000, waiting: 0 }, None);
        let gateway = Arc::new(Gateway::new(registry_now, layers));
        let info = ServerInfo { name: "yard".into(), version: "1".into(), ..ServerInfo::default() };
        let options = FrontendOptions {
            info,
            offers: setup.offers,
            limits: setup.limits,
            ..FrontendOptions::default()
        };
        let (stopping, stopping_now) = watch::channel(false);
        let frontend = Arc::new(Frontend::new(gateway, options, stopping_now));
        let (sessions, site) = (setup.sessions, OnceLock::new());
        let yard = Self { frontend, backend, handler, registry, stopping, verdicts, sessions, site };
        if setup.settled {
            yard.offer(setup.offered);
        }
        yard
    }

    /// The backend offers this from now on.
    pub(crate) fn offer(&self, offered: Offered) {
        let catalog = Arc::new(offered.catalog());
        self.backend.catalog.send_replace(catalog.clone());
        self.registry.send_replace(Arc::new(Registry::of(&self.handler, &catalog)));
    }

    /// The backend is not heard of yet, again.
    pub(crate) fn unsettle(&self) {
        self.registry.send_replace(Arc::default());
    }

    /// The backend offers the same for ever.
    pub(crate) fn freeze(&mut self) {
        drop(std::mem::take(&mut self.registry));
    }

    /// The backend says that a resource has changed.
    pub(crate) fn update(&self, uri: &str) {
        let _unheard = self.backend.updates.send(uri.to_owned());
    }

    /// Waits until exactly these resources are followed, with how many do.
    pub(crate) async fn follows(&self, expected: &[(&str, usize)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(uri, count)| (uri.to_string(), *count)).collect();
        let mut following = self.backend.following.subscribe();
        following.wait_for(|following| *following == expected).await.unwrap();
    }

    /// Waits until folders have changed so often; says how many sessions that was in.
    pub(crate) async fn roots_changed(&self, times: usize) -> usize {
        let mut changed = self.backend.changed.subscribe();
        let changed = changed.wait_for(|changed| changed.len() == times).await.unwrap();
        changed.iter().collect::<HashSet<_>>().len()
    }

    /// Waits until as many calls run at once.
    pub(crate) async fn runs(&self, count: usize) {
        self.backend.running.subscribe().wait_for(|running| *running == count).await.unwrap();
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        *self.backend.running.borrow()
    }

    /// Waits until as many calls are over; says how they ended.
    pub(crate) async fn ended(&self, count: usize) -> Vec<String> {
        let mut ended = self.verdicts.0.subscribe();
        ended.wait_for(|ended| ended.len() >= count).await.unwrap().clone()
    }

    /// How the calls ended that are over.
    pub(crate) fn over(&self) -> Vec<String> {
        self.verdicts.0.borrow().clone()
    }

    /// Streams are to end.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Where the frontend listens. It begins to when it is first asked.
    pub(crate) fn address(&self) -> SocketAddr {
        self.site.get_or_init(|| self.serve()).address
    }

    fn serve(&self) -> Site {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let body_time = Duration::from_secs(10);
        let options = HttpOptions {
            guard: Guard::default(),
            body_bytes: 100_000,
            body_time,
            sessions: self.sessions,
            gateways: None,
        };
        let routes = router(self.frontend.clone(), options).layer(axum::middleware::from_fn(believe));
        let limits = ListenerLimits {
            connections: 100,
            head_bytes: 8192,
            head_time: Duration::from_secs(10),
            drain_time: Duration::from_secs(60),
        };
        let mut stopping = self.stopping.subscribe();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let workers = Workers::start(1).unwrap();
            let stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
            listener::serve(vec![listener.into()], routes, limits, &workers, stop).await;
        });
        Site { address, serving }
    }

    /// Waits until a frontend that stops has let go of all of its connections.
    pub(crate) async fn drained(mut self) {
        self.site.take().unwrap().serving.join_next().await.unwrap().unwrap();
    }
}
