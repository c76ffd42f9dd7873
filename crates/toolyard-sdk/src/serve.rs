//! How a server is served.

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
use tokio::task::JoinSet;
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::layers::{Arguments, Concurrency, Deadline};
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{Backend, Gateway};
use toolyard_mcp::seal::Sealer;
use toolyard_mcp::server::duplex::{self, DuplexLimits};
use toolyard_mcp::server::http::{self as mcp, HttpOptions};
use toolyard_mcp::server::{Frontend, FrontendOptions, Offers, TaskOffer};
use toolyard_net::guard::Guard;
use toolyard_net::listener;
use toolyard_net::workers::Workers;

use crate::backend::{Door, Offered, Opened, Yard};
use crate::context::Shared;
use crate::error::{Error, Result};
use crate::options::{BODY_TIME, ServerOptions};
use crate::server::Server;
use crate::streams::{Input, Output, Until};

impl Server {
    /// Serves one client on standard input and output, until the client closes the input, or the process is told to stop
    /// by SIGTERM or Ctrl-C, or by [`ServerHandle::stop`](crate::ServerHandle::stop). Open requests may end then, for as
    /// long as [`ServerOptions::drain`] says; a second signal does not wait for them.
    ///
    /// Standard input is read, and standard output written, by threads that nobody waits for, so that the process can
    /// end whatever its client does. Standard output belongs to the protocol: log to standard error, and never `println!`.
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
    /// [`Error::Connection`] when the client does not take what it is told; [`Error::Start`].
    pub async fn serve_stdio(self) -> Result<()> {
        let mut signals = Signals::new().map_err(Error::Start)?;
        let input = Input::new(io::stdin()).map_err(Error::Start)?;
        let output = Output::new(io::stdout()).map_err(Error::Start)?;
        let site = Site::open(self);
        let told = async {
            signals.next().await;
            site.yard.stop();
            signals.next().await;
        };
        tokio::select! {
            served = site.serve(input, output) => served,
            () = told => Ok(()),
        }
    }

    /// Serves one client on a pair of streams, a message a line: a socket, or a pipe in a test. It ends with the
    /// client's stream, or by [`ServerHandle::stop`](crate::ServerHandle::stop).
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
        Site::open(self).serve(reader, writer).await
    }

    /// Serves over HTTP, as [`Server::listen`] does, until the process is told to stop by SIGTERM or Ctrl-C, or by
    /// [`ServerHandle::stop`](crate::ServerHandle::stop). Open requests may end then; a second signal does not wait for
    /// them.
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
        // First, so that a signal during the start is not lost.
        let mut signals = Signals::new().map_err(Error::Start)?;
        toolyard_process::raise_file_limit();
        let server = self.listen(address).await?;
        tracing::info!(url = server.url(), "serving MCP");
        tokio::select! {
            () = signals.next() => {}
            () = until(server.site.yard.stopping()) => {}
        }
        tokio::select! {
            () = server.stop() => {}
            () = signals.next() => {}
        }
        Ok(())
    }

    /// Serves over HTTP until it is stopped or dropped: streamable HTTP on `/mcp`, the transport of 2024-11-05 on
    /// `/sse` and `/message`, and `GET /health`. On port 0 the system chooses a port.
    ///
    /// Connections are served on threads of the server's own, one scheduler each: a handler that is async must not
    /// block, and `tokio::task::block_in_place` does not work in it.
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
    /// [`Error::Listen`]; [`Error::Unauthenticated`] for an address that other machines reach, unless
    /// [`ServerOptions::allow_unauthenticated`] is set; [`Error::Start`].
    pub async fn listen(self, address: impl ToSocketAddrs + fmt::Display) -> Result<HttpServer> {
        let shown = address.to_string();
        let listening = async {
            let listener = TcpListener::bind(address).await?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listening.await.map_err(|error| Error::Listen(shown, error))?;
        let exposed = !address.ip().is_loopback();
        if exposed && !self.options.allow_unauthenticated {
            return Err(Error::Unauthenticated(address));
        }
        let workers = Workers::start(self.options.workers).map_err(Error::Start)?;
        let limits = self.options.listener();
        let guard = guard(&self.options, vec![host_of(address.ip())], exposed);
        let site = Arc::new(Site::open(self));
        let (routes, stopping) = (site.routes(guard), site.yard.stopping());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            listener::serve(vec![listener.into()], routes, limits, &workers, until(stopping)).await;
        });
        Ok(HttpServer { address, site, serving })
    }

    /// The routes of [`Server::listen`], for an application that serves other things as well: to be merged with its
    /// own, or nested under a path. `/health` is among them: nest them where the application has one of its own.
    ///
    /// Requests have to name this machine as their host, or one of [`ServerOptions::allowed_hosts`]; with
    /// [`ServerOptions::allow_unauthenticated`] and no list, any.
    ///
    /// An application that waits for its connections when it ends calls
    /// [`ServerHandle::stop`](crate::ServerHandle::stop) before: clients keep streams open. One that knows who its
    /// callers are says so to handlers: see [`Context::principal`](crate::Context::principal).
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
        Arc::new(Site::open(self)).routes(guard)
    }

    /// The server as a backend: a handler of a gateway of Toolyard. The gateway's limits take the place of
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
        self.yard
    }
}

/// Makes what is registered callable.
fn open(server: &Server) {
    let Server { yard, info, options, key } = server;
    let limits = Limits { timeout: options.timeout, gate: unbounded() };
    let backend = Arc::new(Door(Arc::downgrade(yard)));
    let handler = Handler::new(info.name.as_str(), backend, limits);
    // What waits for a place here could be what its caller's place depends on: only calls from outside are bounded.
    let nested = Gateway::new(yard.registry(), vec![Box::new(Arguments), Box::new(Deadline)]);
    let nested = Arc::new(nested);
    let shared = Arc::new(Shared::new(key.map_or_else(Sealer::random, Sealer::with_key)));
    let _first = shared.gateway.set(Arc::downgrade(&nested));
    yard.open(Opened { handler, shared, _nested: nested });
}

/// The gate of the only handler: the gateway has one already.
fn unbounded() -> Gate {
    Gate::new(GateSize { running: usize::MAX, waiting: 0 })
}

fn guard(options: &ServerOptions, own: Vec<String>, exposed: bool) -> Guard {
    Guard { own, hosts: options.allowed_hosts.clone(), origins: options.allowed_origins.clone(), exposed }
}

/// An address as a `Host` header has it.
fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// What serving takes, until nobody serves any more.
struct Site {
    /// Nothing below holds it: what is registered does not hold itself.
    yard: Arc<Yard>,
    frontend: Arc<Frontend>,
    duplex: DuplexLimits,
    http: HttpLimits,
}

/// What routes are made with.
struct HttpLimits {
    body_bytes: usize,
    body_time: Duration,
    sessions: toolyard_mcp::server::SessionLimits,
}

impl Site {
    fn open(server: Server) -> Self {
        let offers = offers(&server.yard);
        open(&server);
        let Server { yard, info, options, key: _ } = server;
        let layers: Vec<Box<dyn toolyard_core::layers::Layer>> = vec![
            // Before the arguments are looked at: checking them is work, too.
            Box::new(Concurrency::new(Gate::new(options.gate()))),
            Box::new(Arguments),
            Box::new(Deadline),
        ];
        let gateway = Arc::new(Gateway::new(yard.registry(), layers));
        let (line_bytes, requests) = (options.message_bytes, options.requests());
        let duplex = DuplexLimits { line_bytes, requests, drain: options.drain };
        let http = HttpLimits {
            body_bytes: options.message_bytes,
            body_time: BODY_TIME,
            sessions: options.session(),
        };
        let (cache, limits) = (options.cache(), options.frontend());
        let options = FrontendOptions { info, offers, cache, limits, cluster: None };
        let frontend = Arc::new(Frontend::new(gateway, options, yard.stopping()));
        Self { yard, frontend, duplex, http }
    }

    /// Serves one client.
    async fn serve(&self, reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) -> Result<()> {
        // To be told to stop is as if the client had nothing more to say: what runs may end.
        let reader = Until::new(reader, until(self.yard.stopping()));
        let drained = async {
            until(self.yard.stopping()).await;
            tokio::time::sleep(self.duplex.drain).await;
        };
        tokio::select! {
            served = duplex::serve(self.frontend.clone(), reader, writer, self.duplex) => {
                served.map_err(Error::Connection)
            }
            () = drained => Ok(()),
        }
    }

    /// The routes hold the site, for as long as they are served.
    fn routes(self: &Arc<Self>, guard: Guard) -> Router {
        let HttpLimits { body_bytes, body_time, sessions } = self.http;
        let options = HttpOptions { guard, body_bytes, body_time, sessions, gateways: None };
        let site = self.clone();
        let health = get(move || std::future::ready(health(*site.yard.stopping().borrow())));
        mcp::router(self.frontend.clone(), options).route("/health", health)
    }
}

/// A kind of which there is nothing is not offered, unless somebody could add to it.
fn offers(yard: &Arc<Yard>) -> Offers {
    let has_handle = Arc::weak_count(yard) > 0;
    let Offered { tools, prompts, resources, templates } = &*yard.offered();
    let completes = prompts.iter().any(|prompt| prompt.completes())
        || templates.iter().any(|template| template.completes());
    let has_tasks = tools.iter().any(|tool| tool.item.definition.get("execution").is_some());
    Offers {
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

async fn until(mut stopping: watch::Receiver<bool>) {
    // A sender that is gone can say nothing any more, which means stop as well.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

/// What tells a process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
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

/// A server that listens. Dropping it ends it at once; [`HttpServer::stop`] lets requests end.
#[must_use = "dropping it ends the server"]
pub struct HttpServer {
    address: SocketAddr,
    site: Arc<Site>,
    serving: JoinSet<()>,
}

impl HttpServer {
    /// The address that is listened on, with the port that the system chose.
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

    /// The URL that clients of streamable HTTP want.
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

    /// Takes no more requests, lets those that are open end for as long as [`ServerOptions::drain`] says, and stops.
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
        self.site.yard.stop();
        while self.serving.join_next().await.is_some() {}
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}
