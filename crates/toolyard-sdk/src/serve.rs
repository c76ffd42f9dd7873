//! The transports of a server.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::{ArgumentValidation, BackgroundSpawner, ConcurrencyLimit, DeadlineLayer};
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::seal::StateSealer;
use toolyard_core::{Backend, CallerPeer, Gateway};
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_mcp::server::http::{self as mcp, HttpOptions};
use toolyard_mcp::server::{FrontendOptions, McpFrontend, OfferedFeatures, TaskOffer};
use toolyard_net::guard::BrowserGuard;
use toolyard_net::listener;
use toolyard_net::workers::WorkerPool;

use crate::backend::{OpenState, RegisteredItems, ServerBackend, WeakServerBackend};
use crate::context::SharedContext;
use crate::error::{Error, Result};
use crate::options::{BODY_TIME, ServerOptions};
use crate::server::Server;
use crate::streams::{ReadUntil, StdinReader, StdoutWriter};

impl Server {
    /// Serves one client on standard input and output until the client closes the input, the process receives SIGTERM
    /// or Ctrl-C, or [`ServerHandle::stop`](crate::ServerHandle::stop) is called. Open requests may then finish within
    /// [`ServerOptions::drain`]; a second signal does not wait for them.
    ///
    /// Dedicated threads read standard input and write standard output. The process does not wait for them, so it can
    /// end even if its client neither writes nor reads. Standard output belongs to the protocol: log to standard error,
    /// and never use `println!`.
    ///
    /// ```no_run
    /// # use toolyard_sdk::{Result, Server};
    /// #[tokio::main]
    /// async fn main() -> Result<()> {
    ///     Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open")?.serve_stdio().await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Connection`] if the client does not read its messages; [`Error::Start`].
    pub async fn serve_stdio(self) -> Result<()> {
        let mut signals = StopSignals::new().map_err(Error::Start)?;
        let input = StdinReader::new(io::stdin()).map_err(Error::Start)?;
        let output = StdoutWriter::new(io::stdout()).map_err(Error::Start)?;
        let state = ServingState::open(self);
        let told_to_stop = async {
            signals.next().await;
            state.backend.stop();
            signals.next().await;
        };
        tokio::select! {
            served = state.serve(input, output) => served,
            () = told_to_stop => Ok(()),
        }
    }

    /// Serves one client on a pair of streams, one message per line: a socket, or a pipe in a test. It ends with the
    /// client's stream, or on [`ServerHandle::stop`](crate::ServerHandle::stop).
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new("door", "1.0.0").tool("open", "Opens the door.", async || "open")?;
    /// let (ours, theirs) = tokio::io::duplex(4096);
    /// let (reader, writer) = tokio::io::split(theirs);
    /// tokio::spawn(server.serve(reader, writer));
    ///
    /// let mut client = BufReader::new(ours);
    /// let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"}}"#;
    /// client.write_all(format!("{call}\n").as_bytes()).await?;
    /// let mut answer = String::new();
    /// client.read_line(&mut answer).await?;
    /// assert!(answer.contains(r#""content":[{"type":"text","text":"open"}]"#));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Connection`].
    pub async fn serve(self, reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) -> Result<()> {
        ServingState::open(self).serve(reader, writer).await
    }

    /// Serves over HTTP as [`Server::listen`] does, until the process receives SIGTERM or Ctrl-C, or
    /// [`ServerHandle::stop`](crate::ServerHandle::stop) is called. Open requests may then finish; a second signal does
    /// not wait for them.
    ///
    /// ```no_run
    /// # use toolyard_sdk::{Result, Server};
    /// #[tokio::main]
    /// async fn main() -> Result<()> {
    ///     Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open")?.serve_http("127.0.0.1:8080").await
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Server::listen`].
    pub async fn serve_http(self, address: impl ToSocketAddrs + fmt::Display) -> Result<()> {
        // Before listening, so that a signal during the start is not lost.
        let mut signals = StopSignals::new().map_err(Error::Start)?;
        toolyard_process::raise_file_limit();
        let server = self.listen(address).await?;
        tracing::info!(url = server.url(), "serving MCP");
        tokio::select! {
            () = signals.next() => {}
            () = until_stopped(server.state.backend.stopping()) => {}
        }
        tokio::select! {
            () = server.stop() => {}
            () = signals.next() => {}
        }
        Ok(())
    }

    /// Serves over HTTP until it is stopped or dropped: streamable HTTP on `/mcp`, the transport of 2024-11-05 on
    /// `/sse` and `/message`, and `GET /health`. With port 0 the system chooses a port.
    ///
    /// The server runs connections on its own threads, with one scheduler per thread: an async handler must not block,
    /// and `tokio::task::block_in_place` does not work in it.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> toolyard_sdk::Result<()> {
    /// let server = Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open")?;
    /// let running = server.listen("127.0.0.1:0").await?;
    /// assert!(running.url().ends_with("/mcp"));
    /// running.stop().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Listen`]; [`Error::Unauthenticated`] for an address that other machines can reach, unless
    /// [`ServerOptions::allow_unauthenticated`] is set; [`Error::Start`].
    pub async fn listen(self, address: impl ToSocketAddrs + fmt::Display) -> Result<HttpServer> {
        let requested = address.to_string();
        let listening = async {
            let listener = TcpListener::bind(address).await?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listening.await.map_err(|error| Error::Listen(requested, error))?;
        let exposed = !address.ip().is_loopback();
        if exposed && !self.options.allow_unauthenticated {
            return Err(Error::Unauthenticated(address));
        }
        let workers = WorkerPool::start(self.options.workers).map_err(Error::Start)?;
        let limits = self.options.listener();
        let guard = guard(&self.options, vec![host_of(address.ip())], exposed);
        let state = Arc::new(ServingState::open(self));
        let (routes, stopping) = (state.routes(guard), state.backend.stopping());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            listener::serve(vec![listener.into()], routes, limits, &workers, until_stopped(stopping)).await;
        });
        Ok(HttpServer { address, state, serving })
    }

    /// The routes of [`Server::listen`] for an application that serves other things as well. Merge them with the
    /// application's routes, or nest them under a path. They include `/health`: nest them if the application has its
    /// own.
    ///
    /// The `Host` of a request must be this machine or one of [`ServerOptions::allowed_hosts`]. With
    /// [`ServerOptions::allow_unauthenticated`] and an empty list, any host is accepted.
    ///
    /// An application that waits for its connections on shutdown must call
    /// [`ServerHandle::stop`](crate::ServerHandle::stop) first, because clients keep streams open. An application that
    /// authenticates its callers passes the principal to handlers: see
    /// [`Context::principal`](crate::Context::principal).
    ///
    /// ```
    /// # use toolyard_sdk::{Server, ServerOptions};
    /// use toolyard_sdk::axum::Router;
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let options = ServerOptions { allowed_hosts: vec!["door.example.com".into()], ..ServerOptions::default() };
    /// let mcp = Server::new("door", "1.0.0").options(options).tool("open", "Opens the door.", || "open")?.into_router();
    /// let app = Router::new().nest("/door", mcp);
    /// # let _: Router = app;
    /// # Ok(()) }
    /// ```
    pub fn into_router(self) -> Router {
        let guard = guard(&self.options, Vec::new(), self.options.allow_unauthenticated);
        Arc::new(ServingState::open(self)).routes(guard)
    }

    /// The server as a backend, to be the handler of a Toolyard gateway. The gateway's limits replace
    /// [`ServerOptions`].
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let backend = Server::new("door", "1.0.0").tool("open", "Opens the door.", || "open")?.into_backend();
    /// assert_eq!(&*backend.catalog().borrow().tools[0].name, "open");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn into_backend(self) -> Arc<dyn Backend> {
        open(&self);
        self.backend
    }
}

/// Makes the registered items callable.
fn open(server: &Server) {
    let Server { backend, info, options, key, .. } = server;
    let limits = CallLimits { timeout: options.timeout, gate: unbounded() };
    let weak = Arc::new(WeakServerBackend(Arc::downgrade(backend)));
    let handler = HandlerEntry::new(info.name.as_str(), weak, limits);
    // A nested call that waited for a slot could wait for the slot of its own caller: only outer calls are limited.
    let nested = Gateway::new(
        backend.registry(),
        vec![Box::new(ArgumentValidation::new(Some(background()))), Box::new(DeadlineLayer)],
    );
    let nested = Arc::new(nested);
    let shared = Arc::new(SharedContext::new(key.map_or_else(StateSealer::random, StateSealer::with_key)));
    let _first = shared.gateway.set(Arc::downgrade(&nested));
    backend.open(OpenState { handler, shared, _nested: nested });
}

/// Returns an unlimited gate for the only handler: the gateway in front of it has a gate already.
fn unbounded() -> CallGate {
    CallGate::new(GateSize { running: usize::MAX, waiting: 0 })
}

fn guard(options: &ServerOptions, own: Vec<String>, exposed: bool) -> BrowserGuard {
    BrowserGuard {
        own_hosts: own,
        hosts: options.allowed_hosts.clone(),
        origins: options.allowed_origins.clone(),
        exposed,
    }
}

/// The address in the form of a `Host` header.
fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The state shared by all connections of a served server.
struct ServingState {
    /// The only strong reference while serving: registered items do not hold the backend.
    backend: Arc<ServerBackend>,
    frontend: Arc<McpFrontend>,
    duplex: DuplexLimits,
    http: HttpLimits,
}

/// Runs long checks on the blocking threads of the runtime.
fn background() -> BackgroundSpawner {
    Arc::new(|work| drop(spawn_blocking(work)))
}

/// Limits of the HTTP routes.
struct HttpLimits {
    body_bytes: usize,
    body_time: Duration,
    sessions: toolyard_mcp::server::SessionLimits,
}

impl ServingState {
    fn open(server: Server) -> Self {
        let offers = offers(&server.backend);
        open(&server);
        let Server { backend, info, options, .. } = server;
        let layers: Vec<Box<dyn toolyard_core::layers::Layer>> = vec![
            // Before the arguments, because checking them is work too.
            Box::new(ConcurrencyLimit::new(CallGate::new(options.gate()))),
            Box::new(ArgumentValidation::new(Some(background()))),
            Box::new(DeadlineLayer),
        ];
        let gateway = Arc::new(Gateway::new(backend.registry(), layers));
        let (line_bytes, requests) = (options.message_bytes, options.requests());
        let duplex =
            DuplexLimits { max_line_bytes: line_bytes, max_requests: requests, drain_time: options.drain };
        let http = HttpLimits {
            body_bytes: options.message_bytes,
            body_time: BODY_TIME,
            sessions: options.session(),
        };
        let (cache, limits) = (options.cache(), options.frontend());
        let options = FrontendOptions { info, offers, cache, limits, ..FrontendOptions::default() };
        let frontend = Arc::new(McpFrontend::new(gateway, options, backend.stopping()));
        Self { backend, frontend, duplex, http }
    }

    /// Serves one client.
    async fn serve(&self, reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) -> Result<()> {
        // A stop is treated like the end of the client's input: running calls may finish.
        let reader = ReadUntil::new(reader, until_stopped(self.backend.stopping()));
        let drained = async {
            until_stopped(self.backend.stopping()).await;
            tokio::time::sleep(self.duplex.drain_time).await;
        };
        tokio::select! {
            served = duplex::serve(self.frontend.clone(), reader, writer, self.duplex, CallerPeer::Unknown) => {
                served.map_err(Error::Connection)
            }
            () = drained => Ok(()),
        }
    }

    /// Builds the routes, which keep the state alive while they are served.
    fn routes(self: &Arc<Self>, guard: BrowserGuard) -> Router {
        let HttpLimits { body_bytes, body_time, sessions } = self.http;
        let options = HttpOptions {
            guard,
            max_body_bytes: body_bytes,
            body_timeout: body_time,
            sessions,
            gateway_client: None,
        };
        let state = self.clone();
        let health = get(move || std::future::ready(health(*state.backend.stopping().borrow())));
        mcp::router(self.frontend.clone(), options).route("/health", health)
    }
}

/// Leaves out the kinds without items, unless a handle could still add some.
fn offers(backend: &Arc<ServerBackend>) -> OfferedFeatures {
    let has_handle = Arc::weak_count(backend) > 0;
    let RegisteredItems { tools, prompts, resources, templates } = &*backend.items();
    let completes = prompts.iter().any(|prompt| prompt.completes())
        || templates.iter().any(|template| template.completes());
    let has_tasks = tools.iter().any(|tool| tool.item.definition.get("execution").is_some());
    OfferedFeatures {
        tools: has_handle || tools.iter().next().is_some(),
        prompts: has_handle || prompts.iter().next().is_some(),
        resources: has_handle || resources.iter().next().is_some() || templates.iter().next().is_some(),
        completions: has_handle || completes,
        logging: true,
        tasks: if has_handle || has_tasks { TaskOffer::Declared } else { TaskOffer::Never },
    }
}

fn health(stopping: bool) -> Response {
    let (status, body) = match stopping {
        false => (StatusCode::OK, r#"{"status":"ok"}"#),
        true => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#),
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn until_stopped(mut stopping: watch::Receiver<bool>) {
    // A dropped sender can send nothing any more, which means stop as well.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

/// The signals that stop the process.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A listening server. Dropping it ends it at once; [`HttpServer::stop`] lets open requests finish.
#[must_use = "dropping it ends the server"]
pub struct HttpServer {
    address: SocketAddr,
    state: Arc<ServingState>,
    serving: JoinSet<()>,
}

impl HttpServer {
    /// The address the server listens on, with the port that the system chose.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> toolyard_sdk::Result<()> {
    /// let running = Server::new("door", "1.0.0").listen("127.0.0.1:0").await?;
    /// assert_ne!(running.address().port(), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients of streamable HTTP.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> toolyard_sdk::Result<()> {
    /// let running = Server::new("door", "1.0.0").listen("127.0.0.1:0").await?;
    /// assert_eq!(running.url(), format!("http://{}/mcp", running.address()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Accepts no more requests, lets open ones finish within [`ServerOptions::drain`], and stops.
    ///
    /// ```
    /// # use toolyard_sdk::Server;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> toolyard_sdk::Result<()> {
    /// let running = Server::new("door", "1.0.0").listen("127.0.0.1:0").await?;
    /// running.stop().await;
    /// # Ok(()) }
    /// ```
    pub async fn stop(mut self) {
        self.state.backend.stop();
        while self.serving.join_next().await.is_some() {}
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}
