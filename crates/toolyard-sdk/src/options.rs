//! What a server allows its clients.

use std::time::Duration;

use toolyard_core::gate::GateSize;
use toolyard_mcp::server::{CacheHint, CacheScope, FrontendLimits, SessionLimits};
use toolyard_net::listener::ListenerLimits;

/// What a server allows its clients, so that none of them can use it up. The defaults suit most servers.
///
/// ```
/// use std::time::Duration;
/// use toolyard_sdk::{Server, ServerOptions};
///
/// let options = ServerOptions { timeout: Duration::from_secs(30), ..ServerOptions::default() };
/// let server = Server::new("quick", "1.0.0").options(options);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Calls that run at once; more wait. 256.
    pub concurrent_calls: usize,
    /// Calls that wait for others to end; more are refused. 1024.
    pub queued_calls: usize,
    /// The time of one call. What the client takes to answer questions is not counted. 10 minutes.
    pub timeout: Duration,
    /// Size of a message from a client, in bytes. 4 MiB.
    pub message_bytes: usize,
    /// Notifications that wait for one client; of more, some are dropped. 64.
    pub queued_notices: usize,
    /// How long a question to a client waits for its answer. 10 minutes.
    pub ask_time: Duration,
    /// Calls that wait for an answer of a client of revision 2026-07-28; more fail. 1000.
    pub waiting_calls: usize,
    /// Tasks that are remembered, running or over. 1000.
    pub tasks: usize,
    /// How long a task is remembered, from its beginning. 1 hour.
    pub task_ttl: Duration,
    /// How long a client that does not listen for changes may keep a list. 30 s.
    pub list_ttl: Duration,
    /// HTTP: sessions of clients that keep one, which those of revision 2026-07-28 do not. 10 000.
    pub sessions: usize,
    /// HTTP: how long a session lives without a request. 30 minutes.
    pub session_idle: Duration,
    /// HTTP: connections that are open at once. 10 000.
    pub connections: usize,
    /// HTTP: threads that serve connections. As many as the machine has processors.
    pub workers: usize,
    /// How long open requests may take to end when the server stops. 10 s.
    pub drain: Duration,
    /// HTTP: whether to listen beyond this machine, where everybody who reaches the address may call every tool.
    /// False: it is for servers behind something that asks callers who they are.
    pub allow_unauthenticated: bool,
    /// HTTP: what a request may name as its host, beside the address that is listened on and this machine. Beyond
    /// this machine, an empty list stands for any host.
    pub allowed_hosts: Vec<String>,
    /// HTTP: web pages that may send requests, such as `https://inspector.example.com`. Those of this machine may
    /// anyhow, unless the server is reached from other ones.
    pub allowed_origins: Vec<String>,
}

/// Size of the head of an HTTP request, in bytes: room for long tokens and cookies.
const HEAD_BYTES: usize = 64 << 10;

/// How long a client may take to send the head of a request, or keep a connection without one.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// How long a client may take to send the body of a request.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

impl Default for ServerOptions {
    fn default() -> Self {
        let limits = FrontendLimits::default();
        Self {
            concurrent_calls: 256,
            queued_calls: 1024,
            timeout: Duration::from_secs(600),
            message_bytes: 4 << 20,
            queued_notices: limits.queued_notices,
            ask_time: limits.ask_time,
            waiting_calls: limits.parked_calls,
            tasks: limits.tasks,
            task_ttl: limits.task_ttl,
            list_ttl: CacheHint::default().ttl,
            sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            connections: 10_000,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            drain: Duration::from_secs(10),
            allow_unauthenticated: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl ServerOptions {
    pub(crate) const fn gate(&self) -> GateSize {
        GateSize { running: self.concurrent_calls, waiting: self.queued_calls }
    }

    /// Requests of one client on a pipe. While as many run nothing is read, and nothing can be withdrawn.
    pub(crate) const fn requests(&self) -> usize {
        self.concurrent_calls.saturating_add(self.queued_calls)
    }

    pub(crate) const fn cache(&self) -> CacheHint {
        CacheHint { ttl: self.list_ttl, scope: CacheScope::Public }
    }

    pub(crate) fn frontend(&self) -> FrontendLimits {
        FrontendLimits {
            queued_notices: self.queued_notices,
            parked_calls: self.waiting_calls,
            ask_time: self.ask_time,
            tasks: self.tasks,
            task_ttl: self.task_ttl,
            ..FrontendLimits::default()
        }
    }

    pub(crate) fn session(&self) -> SessionLimits {
        SessionLimits { sessions: self.sessions, idle: self.session_idle, ..SessionLimits::default() }
    }

    pub(crate) const fn listener(&self) -> ListenerLimits {
        ListenerLimits {
            connections: self.connections,
            head_bytes: HEAD_BYTES,
            head_time: HEAD_TIME,
            drain_time: self.drain,
        }
    }
}
