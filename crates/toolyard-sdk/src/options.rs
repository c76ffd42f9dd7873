//! Limits of a server.

use std::time::Duration;

use toolyard_core::gate::GateSize;
use toolyard_mcp::server::{CacheHint, CacheScope, FrontendLimits, SessionLimits};
use toolyard_net::listener::ListenerLimits;

/// Limits that protect a server from its clients. The defaults suit most servers.
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
    /// Maximum number of running calls; further calls are queued. 256.
    pub concurrent_calls: usize,
    /// Maximum number of queued calls; further calls are refused. 1024.
    pub queued_calls: usize,
    /// Deadline of a call. The time that the client takes to answer questions does not count. 10 minutes.
    pub timeout: Duration,
    /// Maximum size of a message from a client, in bytes. 4 MiB.
    pub message_bytes: usize,
    /// Maximum number of queued notifications per client; further ones are dropped. 256.
    pub queued_notices: usize,
    /// Maximum time to wait for the client's answer to a question. 10 minutes.
    pub ask_time: Duration,
    /// Maximum number of calls that wait for an answer from clients of revision 2026-07-28; further calls fail. 1000.
    pub waiting_calls: usize,
    /// Maximum number of tasks, running or completed. 1000.
    pub tasks: usize,
    /// Lifetime of a task, counted from its creation. 1 hour.
    pub task_ttl: Duration,
    /// Time that a client without change notifications may cache a list. 30 s.
    pub list_ttl: Duration,
    /// HTTP: maximum number of sessions. Clients of revision 2026-07-28 have none. 10 000.
    pub sessions: usize,
    /// HTTP: lifetime of a session without requests. 30 minutes.
    pub session_idle: Duration,
    /// HTTP: maximum number of open connections. 10 000.
    pub connections: usize,
    /// HTTP: number of threads that serve connections. Default: the number of processors.
    pub workers: usize,
    /// Time that open requests may take to finish when the server stops. 10 s.
    pub drain: Duration,
    /// HTTP: allows listening on addresses that other machines can reach, which opens every tool to them. Set it for
    /// servers behind something that authenticates callers. Default: `false`.
    pub allow_unauthenticated: bool,
    /// HTTP: hosts that requests may name, besides the listening address and this machine. If the server is reachable
    /// from other machines, an empty list allows any host.
    pub allowed_hosts: Vec<String>,
    /// HTTP: origins of web pages that may send requests, such as `https://inspector.example.com`. Origins of this
    /// machine are always allowed, unless the server is reachable from other machines.
    pub allowed_origins: Vec<String>,
}

/// Maximum size of the head of an HTTP request, in bytes: room for long tokens and cookies.
const HEAD_BYTES: usize = 64 << 10;

/// Maximum time for the head of a request, and for a connection without requests.
const HEAD_TIME: Duration = Duration::from_secs(90);

/// Minimum time of a call that continues as a task. Shorter than at a gateway, since only tools that may take long are
/// called as tasks.
const TASK_AFTER: Duration = Duration::from_millis(50);

/// Maximum time that a client may leave a response unread.
const WRITE_TIME: Duration = Duration::from_secs(60);

/// Maximum time for the body of a request.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

impl Default for ServerOptions {
    fn default() -> Self {
        let limits = FrontendLimits::default();
        Self {
            concurrent_calls: 256,
            queued_calls: 1024,
            timeout: Duration::from_secs(600),
            message_bytes: 4 << 20,
            queued_notices: limits.max_queued_notices,
            ask_time: limits.ask_timeout,
            waiting_calls: limits.suspended_calls,
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

    /// Maximum number of concurrent requests of one client on a pipe. While it is reached nothing is read, and no
    /// request can be cancelled.
    pub(crate) const fn requests(&self) -> usize {
        self.concurrent_calls.saturating_add(self.queued_calls)
    }

    pub(crate) const fn cache(&self) -> CacheHint {
        CacheHint { ttl: self.list_ttl, scope: CacheScope::Public }
    }

    pub(crate) fn frontend(&self) -> FrontendLimits {
        FrontendLimits {
            max_queued_notices: self.queued_notices,
            suspended_calls: self.waiting_calls,
            ask_timeout: self.ask_time,
            tasks: self.tasks,
            task_ttl: self.task_ttl,
            task_after: TASK_AFTER,
            ..FrontendLimits::default()
        }
    }

    pub(crate) fn session(&self) -> SessionLimits {
        SessionLimits {
            max_sessions: self.sessions,
            idle_timeout: self.session_idle,
            ..SessionLimits::default()
        }
    }

    pub(crate) const fn listener(&self) -> ListenerLimits {
        ListenerLimits {
            connections: self.connections,
            // A proxy in front of the server uses all connections from one address.
            connections_per_address: self.connections,
            health_paths: &[],
            head_bytes: HEAD_BYTES,
            head_time: HEAD_TIME,
            write_time: WRITE_TIME,
            drain_time: self.drain,
        }
    }
}
