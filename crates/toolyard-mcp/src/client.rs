//! The MCP client: a backend that turns calls into requests to an upstream server.
//!
//! A call to a server with streamable HTTP passes these functions on its way to the socket:
//!
//! 1. `McpBackend::call` counts the use of the server;
//! 2. `UpstreamRetry::run_attempts` decides after which failures the call is repeated;
//! 3. `RetrySchedule::run`, in core, pauses between the attempts;
//! 4. `McpBackend::attempt` chooses the era and the connection, and makes an outcome of the answer;
//! 5. `UpstreamConnection::invoke` makes a request of the call, and passes requests of the server to its client;
//! 6. `ClientTransport::request` chooses the transport, and detects a lost session;
//! 7. `HttpTransport::request` makes an HTTP request, reads its response, and cancels it when it is dropped;
//! 8. `HttpClient::send`, in `toolyard-net`, passes it to hyper.
//!
//! The modules:
//!
//! - `pool`: the shared connection and the dedicated ones, and what keeps them open;
//! - `connection`: one connection, its handshake and its state;
//! - `eras`: the era of each call, at servers that speak both;
//! - `transport`: streamable HTTP, HTTP+SSE, standard input and output, hosted functions;
//! - `server_requests`: requests of a legacy server to clients;
//! - `catalog`: the lists of a server and their expiry, and followed resources;
//! - `launcher`: installations by `npx` and others before the first start;
//! - `tasks`: tools that run as tasks of 2025-11-25;
//! - `tool_listing`: one listing of tools without a lasting connection;
//! - `retry`, `convert`: repeated attempts, and conversion of calls and answers.

mod catalog;
mod connection;
mod convert;
mod eras;
mod launcher;
mod pool;
mod retry;
mod server_requests;
mod tasks;
mod tool_listing;
mod transport;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::access::CallPrice;
use toolyard_core::backend::Installation;
use toolyard_core::{
    Backend, Call, CallTarget, Caller, Catalog, ClientIdentity, ErrorCode, FailureLog, MessageExchange,
    Object, Outcome, SecretRedactor, ToolError,
};
use toolyard_net::budget::ByteBudget;
use toolyard_process::{ProcessTable, ProgramSpec};

pub use catalog::filter::UpstreamToolFilter;
use catalog::followed_resources::FollowedConnections;
use catalog::published::CatalogPublisher;
use connection::UpstreamConnection;
use connection::declared_capabilities::DeclaredCapabilities;
pub use connection::liveness::LivenessProbe;
use connection::state::{ConnectionState, wait_connected};
pub use eras::EraPreference;
pub use launcher::{InstallQueues, LauncherKind, ServerLauncher};
use pool::connection_keeper::ConnectionKeeper;
use pool::connector::UpstreamConnector;
use pool::dedicated_connection::{ConnectionOwner, DedicatedKey};
use pool::dedicated_pool::{ConnectionLease, DedicatedPool};
pub use pool::dedicated_pool::{DedicatedOptions, SharingMode};
use pool::open_connections::FollowRegistration;
use pool::usage::ServerUsage;
use retry::AttemptError;
pub use retry::UpstreamRetry;
pub use tool_listing::list_tools;
pub use transport::endpoint::{HttpEndpoint, HttpStyle};
use transport::function::FunctionGeneration;
pub use transport::stderr_log::ErrorLines;

use crate::wire::{ProtocolEra, target_method};

/// Maximum wait of a call for a dedicated connection if the shared one would do as well: a server of one era can be
/// called on both.
const DEDICATED_WAIT: Duration = Duration::from_secs(10);

/// The location of an upstream server.
#[derive(Clone)]
pub enum ServerEndpoint {
    /// A server at a URL.
    Http(HttpEndpoint),
    /// A server that the gateway starts as a process.
    Stdio {
        /// The program.
        program: ProgramSpec,
        /// Starts the program.
        processes: ProcessTable,
    },
    /// A hosted function, which has no connection.
    Function(Arc<dyn MessageExchange>),
}

impl ServerEndpoint {
    /// Returns the version of the hosted function that answers now, if it has published ones.
    fn function_version(&self) -> Option<Arc<str>> {
        match self {
            Self::Function(exchange) => exchange.version(),
            Self::Http(_) | Self::Stdio { .. } => None,
        }
    }
}

/// The settings of an upstream server.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Name that the gateway reports as a client.
    pub name: String,
    /// Version that the gateway reports as a client.
    pub version: String,
    /// Maximum size of a message from the server, in bytes.
    pub max_message_bytes: usize,
    /// Maximum number of tools, and of prompts, resources and templates. Further ones are left out.
    pub max_list_items: usize,
    /// Maximum nesting of a definition, and of the structured content of a result.
    pub max_depth: usize,
    /// Timeout of connecting, including the first lists.
    pub connect_timeout: Duration,
    /// Timeout of the `server/discover` request that detects the era.
    pub discover_timeout: Duration,
    /// Time without calls after which a server process is stopped. Its tools stay listed, and the next call starts it
    /// again. `None`: it is never stopped.
    pub idle_timeout: Option<Duration>,
    /// The eras in which the server is spoken to.
    pub era: EraPreference,
    /// Selection of the tools that are served.
    pub filter: UpstreamToolFilter,
    /// Retries of calls that fail in the transport.
    pub retry: UpstreamRetry,
    /// Dedicated connections.
    pub dedicated: DedicatedOptions,
    /// Detection of a server that hangs. `None`: no detection.
    pub probe: Option<LivenessProbe>,
    /// Memory budget of large messages.
    pub budget: ByteBudget,
    /// Secrets that are redacted in the log and in connection errors.
    pub secrets: SecretRedactor,
    /// Counts notifications of the server that are certain to belong to no single client.
    pub dropped_notices: Arc<AtomicU64>,
    /// Counts what the server sends that is not a message.
    pub skipped_messages: Arc<AtomicU64>,
    /// Last lines of the error output of the server's program.
    pub error_lines: ErrorLines,
    /// The launcher of the server's program, if it may install it.
    pub launcher: Option<ServerLauncher>,
}

/// A dedicated connection and its lease.
struct LeasedConnection {
    lease: ConnectionLease,
    connection: Arc<UpstreamConnection>,
}

/// An upstream MCP server as a backend.
pub struct McpBackend {
    connector: Arc<UpstreamConnector>,
    catalog: Arc<CatalogPublisher>,
    state: watch::Receiver<ConnectionState>,
    retry: UpstreamRetry,
    /// The use of the server; `None` if it is never stopped when idle.
    usage: Option<Arc<ServerUsage>>,
    sharing: SharingMode,
    dedicated: DedicatedPool,
    /// True once the log has a warning about calls that share a connection.
    has_warned_of_sharing: AtomicBool,
    refresh: Arc<Notify>,
    /// The task that keeps the shared connection. Dropping it closes the connection.
    keeper: Mutex<JoinSet<()>>,
}

impl McpBackend {
    /// Starts to connect, and reconnects from then on. `name` appears in the log.
    #[must_use]
    pub fn start(name: &str, endpoint: ServerEndpoint, options: ClientOptions) -> Self {
        let options = match endpoint {
            ServerEndpoint::Function(_) => transport::function::without_connection_options(options),
            ServerEndpoint::Http(_) | ServerEndpoint::Stdio { .. } => options,
        };
        let catalog = Arc::new(CatalogPublisher::new());
        let (state, state_receiver) = watch::channel(ConnectionState::Connecting);
        let may_sleep = options.idle_timeout.is_some() && matches!(endpoint, ServerEndpoint::Stdio { .. });
        let usage = may_sleep.then(Arc::<ServerUsage>::default);
        let (sharing, retry) = (options.dedicated.sharing, options.retry);
        // With a dedicated connection per client, the shared connection only lists, and never serves requests of the
        // server.
        let declared = if sharing == SharingMode::Client {
            DeclaredCapabilities::all()
        } else {
            DeclaredCapabilities::none()
        };
        let generation = FunctionGeneration::of(&endpoint);
        let connector = Arc::new(UpstreamConnector::new(name, endpoint, options));
        let dedicated = DedicatedPool::new(connector.clone(), catalog.clone());
        let refresh = Arc::<Notify>::default();
        let keeper = ConnectionKeeper {
            connector: connector.clone(),
            declared,
            catalog: catalog.clone(),
            state,
            usage: usage.clone(),
            refresh: refresh.clone(),
            generation,
            failures: FailureLog::default(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.run());
        let has_warned_of_sharing = AtomicBool::new(false);
        let keeper = Mutex::new(tasks);
        Self {
            connector,
            catalog,
            state: state_receiver,
            retry,
            usage,
            sharing,
            dedicated,
            has_warned_of_sharing,
            refresh,
            keeper,
        }
    }

    /// Makes one attempt, in the era and on the connection that the call needs.
    async fn attempt(&self, call: Arc<Call>) -> Result<Outcome, AttemptError> {
        let shared = wait_connected(&self.state).await?;
        if let Some(legacy) = self.legacy_key(&call, &shared) {
            return Box::pin(self.attempt_in_eras(call, shared, legacy)).await;
        }
        match self.lease_own(&call).await? {
            Some(leased) => Box::pin(self.attempt_on(leased, call)).await,
            None => self.attempt_by_default(call, shared).await,
        }
    }

    /// Makes one attempt in the era of the shared connection, on a dedicated one if the call needs one.
    async fn attempt_by_default(
        &self,
        call: Arc<Call>,
        shared: Arc<UpstreamConnection>,
    ) -> Result<Outcome, AttemptError> {
        let leased = match self.dedicated_key(&call, &shared) {
            Some(key) => Box::pin(self.lease_dedicated(&key, call.deadline)).await?,
            None => None,
        };
        match leased {
            Some(leased) => Box::pin(self.attempt_on(leased, call)).await,
            None => self.invoke_on(&shared, &call).await,
        }
    }

    /// Makes one attempt on a dedicated connection.
    async fn attempt_on(
        &self,
        mut leased: LeasedConnection,
        call: Arc<Call>,
    ) -> Result<Outcome, AttemptError> {
        let outcome = self.invoke_on(&leased.connection, &call).await;
        // After an error of the transport the server may still be working for this client.
        leased.lease.is_answered = outcome.as_ref().err().is_none_or(AttemptError::is_from_server);
        outcome
    }

    async fn invoke_on(&self, connection: &UpstreamConnection, call: &Call) -> Result<Outcome, AttemptError> {
        let levels = convert::message_levels(&call.target);
        let answer = match self.connector.runs_as_task(&call.target) {
            true => Box::pin(connection.invoke_as_task(call)).await,
            false => connection.invoke(target_method(&call.target), call).await.map_err(AttemptError::from),
        };
        let (era, max_depth) = (connection.revision().era(), connection.options.max_depth);
        answer.and_then(|answer| Ok(convert::outcome(answer, era, max_depth, levels)?))
    }

    /// Leases the dedicated connection of the caller that alone lists the target of the call; `None` if there is none. A
    /// task exists in the modern era only.
    async fn lease_own(&self, call: &Call) -> Result<Option<LeasedConnection>, ToolError> {
        let Some(number) = self.catalog.connection_of(&call.caller, &call.target) else { return Ok(None) };
        let is_task = matches!(call.target, CallTarget::Task(_));
        Box::pin(async move {
            while let Some(mut lease) =
                lease_in_time(call.deadline, self.dedicated.lease_numbered(number)).await?
            {
                let Some(connection) = lease.connection().await? else { continue };
                if is_task && connection.revision().era() == ProtocolEra::Legacy {
                    lease.is_answered = true;
                    return Ok(None);
                }
                return Ok(Some(LeasedConnection { lease, connection }));
            }
            Ok(None)
        })
        .await
    }

    /// Returns the key of the dedicated connection that the call needs; `None` if the shared one will do.
    fn dedicated_key(&self, call: &Call, shared: &UpstreamConnection) -> Option<DedicatedKey> {
        if self.sharing == SharingMode::Shared {
            return None;
        }
        let is_legacy = shared.revision().era() == ProtocolEra::Legacy;
        // A modern server receives the capabilities with each request.
        let owner = ConnectionOwner::of(&call.caller);
        let declared = match is_legacy {
            true => {
                DeclaredCapabilities::of(&*call.client, matches!(owner, Some(ConnectionOwner::Session(_))))
            }
            false => DeclaredCapabilities::none(),
        };
        let is_per_client = self.sharing == SharingMode::Client;
        let is_dedicated = if is_per_client { shared.has_state() } else { !declared.is_empty() };
        is_dedicated.then_some(DedicatedKey { owner, declared, era: None })
    }

    /// Leases a dedicated connection in the era of the shared one; `None` if there is none and the shared one will do.
    async fn lease_dedicated(
        &self,
        key: &DedicatedKey,
        deadline: Option<Instant>,
    ) -> Result<Option<LeasedConnection>, ToolError> {
        loop {
            // Wait for a free one: on the shared connection the server could not send requests to the client.
            let Some(lease) = lease_in_time(deadline, self.dedicated.lease(key)).await? else {
                return Ok(None);
            };
            if self.sharing == SharingMode::Client {
                match lease.connection().await {
                    Ok(Some(connection)) => return Ok(Some(LeasedConnection { lease, connection })),
                    Ok(None) => continue,
                    Err(error) => return Err(error),
                }
            }
            // Prefer the shared connection to an endless wait.
            match timeout(DEDICATED_WAIT, lease.connection()).await {
                Ok(Ok(Some(connection))) => return Ok(Some(LeasedConnection { lease, connection })),
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => {
                    self.dedicated.pause_opening();
                    self.warn_once("could not open a dedicated connection");
                    return Ok(None);
                }
            }
        }
    }

    /// Warns once that calls of clients with capabilities share a connection.
    fn warn_once(&self, reason: &str) {
        if !self.has_warned_of_sharing.swap(true, Ordering::Relaxed) {
            tracing::warn!(handler = %self.dedicated.name(), reason, "calls share a connection: the server cannot send requests to their clients");
        }
    }
}

/// Waits for a lease until the deadline of the call.
async fn lease_in_time<T>(deadline: Option<Instant>, lease: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(deadline) = deadline else { return Ok(lease.await) };
    timeout_at(deadline, lease).await.map_err(|_| {
        ToolError::new(ErrorCode::Overloaded, "All dedicated connections to the server are in use")
    })
}

impl Backend for McpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn price(&self, call: &Call) -> Option<CallPrice> {
        match (&self.connector.endpoint, &call.target) {
            (ServerEndpoint::Function(exchange), CallTarget::Tool(_)) => exchange.status().borrow().price,
            _ => None,
        }
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let uri: Arc<str> = uri.into();
        let client = ClientIdentity::of(caller).filter(|_| self.sharing != SharingMode::Shared);
        let own = client.map(|client| self.dedicated.open_connections().register(client, uri.clone()));
        // The clients of one key may have different capabilities.
        let is_session = own.as_ref().is_some_and(FollowRegistration::is_of_session);
        let shares = self.sharing == SharingMode::Automatic && !is_session;
        let connections = FollowedConnections { shared: self.state.clone(), own, shares };
        let in_use = self.usage.as_ref().map(ServerUsage::begin);
        catalog::followed_resources::follow_resource(connections, uri, in_use)
    }

    fn roots_changed(&self, caller: &Caller) {
        self.dedicated.roots_changed(caller);
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn dropped_notices(&self) -> u64 {
        self.connector.options().dropped_notices.load(Ordering::Relaxed)
    }

    fn skipped_messages(&self) -> u64 {
        self.connector.options().skipped_messages.load(Ordering::Relaxed)
    }

    fn error_output(&self) -> String {
        self.connector.options().error_lines.text()
    }

    fn installation(&self) -> Option<Installation> {
        let options = self.connector.options();
        options.launcher.as_ref()?.installation(&options.error_lines)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let attempts = self.retry.run_attempts(call, |call| self.attempt(call));
        match &self.usage {
            None => Box::pin(attempts),
            Some(usage) => Box::pin(async move {
                let _running = usage.begin();
                attempts.await
            }),
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        let state = self.state.borrow().clone();
        Box::pin(async move {
            let shared = async {
                if let ConnectionState::Up(connection) = state {
                    connection.close().await;
                }
            };
            tokio::join!(shared, self.dedicated.stop());
        })
    }
}

#[cfg(test)]
mod future_sizes;
