//! The backend: calls become messages for a server, its answers become outcomes.
//!
//! - [`McpBackend`] is what the registry holds; a task of its own, the keeper, keeps it connected;
//! - `lanes`, `lane`: connections that are one client's alone, beside the one that all share;
//! - `opener`, `handshake`, `connection`: one server, spoken to in its own era;
//! - `capabilities`, `lists`, `stale`, `expiry`: what a server offers, and when it is to be asked again;
//! - `followed`, `subscriptions`: resources whose changes are told, and how a server is asked for that;
//! - `asked`, `declared`: what a legacy server may ask, and whom; `visits`: who opens a URL for it; `old_task`: what it
//!   runs as a task;
//! - `transport`, `http`, `sse`, `stdio`, `exchange`: how messages get there;
//! - `repeat`, `session`: what is done where they do not.

mod asked;
mod capabilities;
mod connection;
mod convert;
mod declared;
mod endpoint;
mod events;
mod exchange;
mod expiry;
mod filter;
mod follow;
mod followed;
mod handshake;
mod http;
mod inbox;
mod keeper;
mod lane;
mod lanes;
mod link;
mod lists;
mod old_task;
mod opener;
mod probe;
mod repeat;
mod said;
mod session;
mod sse;
mod stale;
mod stdio;
mod subscriptions;
mod transport;
mod usage;
mod visits;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::access::Price;
use toolyard_core::{
    Backend, Call, Caller, Catalog, Code, Exchange, Object, Outcome, Secrets, Target, ToolError,
};
use toolyard_process::{Processes, Program};

use connection::Connection;
use declared::Declared;
pub use endpoint::{HttpEndpoint, HttpStyle};
use exchange::Generation;
pub use filter::ToolFilter;
use keeper::Keeper;
use lane::{LaneKey, Owner};
pub use lanes::{LaneMode, LaneOptions};
use lanes::{Lanes, Lease};
use link::{Link, connected};
use opener::Opener;
pub use probe::Probe;
pub use repeat::Attempts;
use repeat::Failure;
use usage::Usage;

use crate::wire::Era;

/// How long a call waits until a connection of its client's own answers, where the shared one will do as well.
const LANE_TIME: Duration = Duration::from_secs(10);

/// Where a server is.
#[derive(Clone)]
pub enum Endpoint {
    /// At a URL.
    Http(HttpEndpoint),
    /// A program to start.
    Stdio {
        /// The program.
        program: Program,
        /// What starts it.
        processes: Processes,
    },
    /// Nowhere that a connection could lead to: a function.
    Exchange(Arc<dyn Exchange>),
}

/// What is said of the gateway to servers, and what they may take.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// What the gateway calls itself.
    pub name: String,
    /// The gateway's version.
    pub version: String,
    /// Size of a message from a server, in bytes.
    pub message_bytes: usize,
    /// Tools that one server may offer, and as many prompts, resources and templates. Any beyond that are left out.
    pub tools: usize,
    /// Time for connecting and for the first list.
    pub connect_time: Duration,
    /// Time that a server has to answer the first question of the modern era.
    pub probe_time: Duration,
    /// How long a server that is a process stays without a call. Then it is ended; its tools stay listed, and
    /// the next call starts it again. `None`: it stays.
    pub idle_time: Option<Duration>,
    /// Which of its tools are served.
    pub filter: ToolFilter,
    /// How often a call is made that does not reach it.
    pub attempts: Attempts,
    /// Connections that are one client's alone.
    pub lanes: LaneOptions,
    /// How a server that hangs is found. `None`: it is not.
    pub probe: Option<Probe>,
    /// What is kept out of the log, and out of the reason for which the server is not there.
    pub secrets: Secrets,
}

/// A server of MCP as a backend.
pub struct McpBackend {
    opener: Arc<Opener>,
    catalog: watch::Receiver<Arc<Catalog>>,
    link: watch::Receiver<Link>,
    attempts: Attempts,
    /// Where it matters, because the server is ended when it is not used.
    usage: Option<Arc<Usage>>,
    mode: LaneMode,
    lanes: Lanes,
    /// Whether the log says already that there are too few lanes.
    has_warned: AtomicBool,
    refresh: Arc<Notify>,
    /// The task that keeps the connection. It ends when this is dropped, and with it the connection.
    keeper: Mutex<JoinSet<()>>,
}

impl McpBackend {
    /// Begins to connect, and to stay connected. `name` is for the log.
    #[must_use]
    pub fn start(name: &str, endpoint: Endpoint, options: ClientOptions) -> Self {
        let options = match endpoint {
            Endpoint::Exchange(_) => exchange::without_connection(options),
            Endpoint::Http(_) | Endpoint::Stdio { .. } => options,
        };
        let (catalog, catalog_now) = watch::channel(Arc::default());
        let (link, link_now) = watch::channel(Link::Connecting);
        let may_sleep = options.idle_time.is_some() && matches!(endpoint, Endpoint::Stdio { .. });
        let usage = may_sleep.then(Arc::<Usage>::default);
        let (mode, attempts) = (options.lanes.mode, options.attempts);
        // Where each client has a lane of its own, this connection only lists, and nobody is asked through it.
        let declared = if mode == LaneMode::Client { Declared::everything() } else { Declared::nothing() };
        let generation = Generation::of(&endpoint);
        let opener = Arc::new(Opener::new(name, endpoint, options));
        let lanes = Lanes::new(opener.clone());
        let refresh = Arc::<Notify>::default();
        let keeper = Keeper {
            opener: opener.clone(),
            declared,
            catalog,
            link,
            usage: usage.clone(),
            refresh: refresh.clone(),
            generation,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.keep());
        let has_warned = AtomicBool::new(false);
        let keeper = Mutex::new(tasks);
        Self {
            opener,
            catalog: catalog_now,
            link: link_now,
            attempts,
            usage,
            mode,
            lanes,
            has_warned,
            refresh,
            keeper,
        }
    }

    /// Makes a call once, on the lane of its client if it is to have one.
    async fn run(&self, call: Call) -> Result<Outcome, Failure> {
        let shared = connected(&self.link).await?;
        let lane = match self.lane_of(&call, &shared) {
            Some(key) => Box::pin(self.lane(&key, call.deadline)).await?,
            None => None,
        };
        let (mut lease, connection) = match lane {
            Some((lease, own)) => (Some(lease), own),
            None => (None, shared),
        };
        let outcome = self.run_on(&connection, call).await;
        if let Some(lease) = &mut lease {
            // Where the answer broke off, the server may still be at work for this client.
            lease.is_answered = outcome.as_ref().err().is_none_or(Failure::is_answer);
        }
        outcome
    }

    async fn run_on(&self, connection: &Connection, call: Call) -> Result<Outcome, Failure> {
        match self.opener.runs_as_task(&call.target) {
            true => Box::pin(connection.call_as_task(call)).await,
            false => connection.call(call).await,
        }
    }

    /// The lane that a call is to have; `None` where it is the shared one.
    fn lane_of(&self, call: &Call, shared: &Connection) -> Option<LaneKey> {
        if self.mode == LaneMode::Shared {
            return None;
        }
        let is_legacy = shared.revision().era() == Era::Legacy;
        // A modern server is told with each request.
        let owner = Owner::of(&call.caller);
        let declared = match is_legacy {
            true => Declared::of(&*call.client, matches!(owner, Some(Owner::Session(_)))),
            false => Declared::nothing(),
        };
        let is_for_all = self.mode == LaneMode::Client;
        let has_one = if is_for_all { shared.has_state() } else { !declared.is_nothing() };
        has_one.then_some(LaneKey { owner, declared })
    }

    /// A lane and its connection; `None` where there is none, and the shared one will do.
    async fn lane(
        &self,
        key: &LaneKey,
        deadline: Option<Instant>,
    ) -> Result<Option<(Lease, Arc<Connection>)>, ToolError> {
        loop {
            // Where all are in use the call waits: through the shared connection its client would not be asked.
            let Some(lease) = within(deadline, self.lanes.lease(key)).await? else { return Ok(None) };
            if self.mode == LaneMode::Client {
                match lease.connection().await? {
                    Some(connection) => return Ok(Some((lease, connection))),
                    None => continue,
                }
            }
            // The shared connection is better than a call that waits in vain for one of its own.
            match timeout(LANE_TIME, lease.connection()).await {
                Ok(Ok(Some(connection))) => return Ok(Some((lease, connection))),
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => {
                    self.lanes.rest();
                    self.warn("a client's own connection is not to be had");
                    return Ok(None);
                }
            }
        }
    }

    /// Says once that clients that can be asked are not.
    fn warn(&self, reason: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(handler = %self.lanes.name(), reason, "calls share a connection, and their clients are not asked");
        }
    }
}

/// The lane, if it comes in time.
async fn within<T>(deadline: Option<Instant>, lease: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(deadline) = deadline else { return Ok(lease.await) };
    timeout_at(deadline, lease)
        .await
        .map_err(|_| ToolError::new(Code::Overloaded, "Other clients have all the connections to the server"))
}

impl Backend for McpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    fn price(&self, call: &Call) -> Option<Price> {
        match (&self.opener.endpoint, &call.target) {
            (Endpoint::Exchange(exchange), Target::Tool(_)) => exchange.standing().borrow().price,
            _ => None,
        }
    }

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        followed::changes(self.link.clone(), uri.into(), self.usage.as_ref().map(Usage::begin))
    }

    fn roots_changed(&self, caller: &Caller) {
        self.lanes.roots_changed(caller);
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let _running = self.usage.as_ref().map(Usage::begin);
            self.attempts.run(call, |call| self.run(call)).await
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        let link = self.link.borrow().clone();
        Box::pin(async move {
            let shared = async {
                if let Link::Up(connection) = link {
                    connection.close().await;
                }
            };
            tokio::join!(shared, self.lanes.stop());
        })
    }
}
