//! The backend: calls become messages for a server, its answers become outcomes.
//!
//! - [`McpBackend`] is what the registry holds; a task of its own, the keeper, keeps it connected;
//! - `handshake`, `connection`: one server, spoken to in its own era;
//! - `transport`, `http`, `sse`, `stdio`: how messages get there;
//! - `repeat`, `session`: what is done where they do not.

mod connection;
mod convert;
mod endpoint;
mod events;
mod filter;
mod follow;
mod handshake;
mod http;
mod inbox;
mod keeper;
mod repeat;
mod session;
mod sse;
mod stdio;
mod transport;
mod usage;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::{Backend, Call, Catalog, Code, Outcome, ToolError};
use toolyard_process::{Processes, Program};

use connection::Connection;
pub use endpoint::{HttpEndpoint, HttpStyle};
pub use filter::ToolFilter;
use keeper::{Keeper, Link};
pub use repeat::Attempts;
use repeat::Failure;
use usage::Usage;

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
    /// Tools that one server may offer. Any beyond that are left out.
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
}

/// A server of MCP as a backend.
pub struct McpBackend {
    catalog: watch::Receiver<Arc<Catalog>>,
    link: watch::Receiver<Link>,
    attempts: Attempts,
    /// Where it matters, because the server is ended when it is not used.
    usage: Option<Arc<Usage>>,
    /// The task that keeps the connection. It ends when this is dropped, and with it the connection.
    keeper: Mutex<JoinSet<()>>,
}

impl McpBackend {
    /// Begins to connect, and to stay connected. `name` is for the log.
    #[must_use]
    pub fn start(name: &str, endpoint: Endpoint, options: ClientOptions) -> Self {
        let (catalog, catalog_now) = watch::channel(Arc::default());
        let (link, link_now) = watch::channel(Link::Connecting);
        let may_sleep = options.idle_time.is_some() && matches!(endpoint, Endpoint::Stdio { .. });
        let usage = may_sleep.then(Arc::<Usage>::default);
        let attempts = options.attempts;
        let options = Arc::new(options);
        let keeper = Keeper { name: name.into(), endpoint, options, catalog, link, usage: usage.clone() };
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.keep());
        Self { catalog: catalog_now, link: link_now, attempts, usage, keeper: Mutex::new(tasks) }
    }

    /// Makes a call once.
    async fn run(&self, call: Call) -> Result<Outcome, Failure> {
        self.connection().await?.call(call).await
    }

    /// The connection. While it is being made, this waits: the keeper bounds for how long. A call that is counted
    /// wakes a keeper that sleeps.
    async fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        if let Some(connection) = self.link.borrow().connection() {
            return Ok(connection.clone());
        }
        let is_decided = |link: &Link| link.connection().is_some() || matches!(link, Link::Down(_));
        let mut link = self.link.clone();
        let link = link.wait_for(is_decided).await;
        match link.as_deref() {
            Ok(Link::Up(connection)) => Ok(connection.clone()),
            Ok(Link::Down(reason)) => {
                Err(ToolError::new(Code::Unavailable, "The server cannot be reached").caused_by(&**reason))
            }
            Ok(Link::Connecting | Link::Asleep) | Err(_) => {
                Err(ToolError::new(Code::Unavailable, "The gateway is stopping"))
            }
        }
    }
}

impl Backend for McpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let _running = self.usage.as_ref().map(|usage| usage.begin());
            self.attempts.run(call, |call| self.run(call)).await
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        let link = self.link.borrow().clone();
        Box::pin(async move {
            if let Link::Up(connection) = link {
                connection.close().await;
            }
        })
    }
}
