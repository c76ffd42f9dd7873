//! Accepts connections, within limits, until it drains.
//!
//! - [`SocketListener`]: sockets, and the protocols ahead of HTTP;
//! - [`TlsSettings`]: certificates and keys, read from files;
//! - [`proxy`]: the PROXY protocol of trusted proxies;
//! - [`ClientAddress`]: the origin of a request, in its extensions;
//! - `connection_permits`: the limits of open connections, and eviction; `connection`: the state of one;
//! - `http2`: connections of gRPC, and clients of these that do not read;
//! - `timed`: clients that do not read; `framing`: requests with an ambiguous end or host.

mod accepted;
mod connection;
mod connection_permits;
mod framing;
#[cfg(feature = "http2")]
mod http2;
pub mod proxy;
mod socket;
mod timed;
mod tls;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use axum::{BoxError, Router};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout_at};
use tower_service::Service;

use self::accepted::{AcceptedConnection, ClientStream};
use self::connection::{ConnectionSignal, OpenConnection, OpenRequest, ResponseBody};
use self::connection_permits::{ConnectionPermit, ConnectionPermits, PermitRefusal};
use self::framing::RequestFraming;
use self::socket::ListenerSet;
use self::timed::TimedWrites;
use crate::workers::WorkerPool;

pub use self::accepted::ClientAddress;
pub use self::connection::ClientConnection;
pub use self::socket::SocketListener;
pub use self::tls::{TlsError, TlsFiles, TlsSettings};

/// Answers the requests of all connections.
pub trait HttpService: Send + Sync {
    /// Answers a request.
    fn answer(&self, request: Request<Body>) -> BoxFuture<'static, Response>;
}

impl HttpService for Router {
    fn answer(&self, request: Request<Body>) -> BoxFuture<'static, Response> {
        let response = self.clone().call(request);
        async move {
            match response.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
        .boxed()
    }
}

/// Limits of one client, and of all clients together.
#[derive(Debug, Clone, Copy)]
pub struct ListenerLimits {
    /// Maximum number of open connections. A further connection replaces the one that has been silent for longest, or
    /// is refused if each has an open request.
    pub connections: usize,
    /// Maximum number of connections from one address: an IPv4 address, or the first 64 bits of an IPv6 address. This
    /// machine and Unix sockets have no such limit.
    pub connections_per_address: usize,
    /// Paths of the health checks, for which connections beyond `connections` are reserved.
    pub health_paths: &'static [&'static str],
    /// Maximum size of the head of a request, in bytes.
    pub head_bytes: usize,
    /// Maximum time to send the head of a request, and before that the header of a proxy and the TLS handshake. Also
    /// the maximum time between two requests of a connection.
    pub head_time: Duration,
    /// Maximum time that a client may leave a response unread.
    pub write_time: Duration,
    /// Maximum time of open requests after draining began.
    pub drain_time: Duration,
}

/// Number of additional connections that only serve the health check.
const HEALTH_CONNECTIONS: usize = 16;

/// Time that draining waits for requests on open, silent connections: they may be on their way.
const LINGER_TIME: Duration = Duration::from_millis(500);

/// Time between two checks for open requests while draining.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Serves until `stop` resolves, then lets open requests end and returns. While it drains, new connections are
/// accepted for one request each, which tells the client that the server stops.
pub async fn serve(
    listeners: Vec<SocketListener>,
    service: impl HttpService + 'static,
    limits: ListenerLimits,
    workers: &WorkerPool,
    stop: impl Future<Output = ()>,
) {
    let service = ConnectionService {
        service: Arc::new(service),
        limits,
        version: SpokenVersion::Http1,
        is_draining: Arc::default(),
        health_only: false,
    };
    ListenerServer::new(listeners, service, workers).run(stop).await;
}

/// Serves HTTP/2 until `stop` resolves, as [`serve`] serves HTTP/1.1. Requests of HTTP/1 are refused.
///
/// A connection has any number of requests at a time. Those whose paths begin with one of `unguarded` need no key, and
/// do not keep a connection open: it is closed if all others are silent.
#[cfg(feature = "http2")]
pub async fn serve_http2(
    listeners: Vec<SocketListener>,
    router: Router,
    limits: ListenerLimits,
    unguarded: &'static [&'static str],
    workers: &WorkerPool,
    stop: impl Future<Output = ()>,
) {
    let service = ConnectionService {
        service: Arc::new(router),
        limits,
        version: SpokenVersion::Http2 { unguarded },
        is_draining: Arc::default(),
        health_only: false,
    };
    let listeners = listeners.into_iter().map(|listener| listener.offering(tls::OfferedVersion::Http2));
    ListenerServer::new(listeners.collect(), service, workers).run(stop).await;
}

/// The listeners and the state for serving their connections.
struct ListenerServer<'a> {
    listeners: ListenerSet,
    permits: ConnectionPermits,
    health_permits: ConnectionPermits,
    service: ConnectionService,
    workers: &'a WorkerPool,
}

impl<'a> ListenerServer<'a> {
    fn new(listeners: Vec<SocketListener>, service: ConnectionService, workers: &'a WorkerPool) -> Self {
        let limits = service.limits;
        Self {
            listeners: ListenerSet::new(listeners),
            permits: ConnectionPermits::new(limits.connections, limits.connections_per_address),
            health_permits: ConnectionPermits::new(HEALTH_CONNECTIONS, HEALTH_CONNECTIONS),
            service,
            workers,
        }
    }

    /// Serves until `stop` resolves, and drains.
    async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.listeners.accept() => self.handle_accepted(accepted).await,
            }
        }
        self.drain().await;
    }

    /// Serves an accepted connection if there is a permit for it.
    async fn handle_accepted(&mut self, accepted: io::Result<AcceptedConnection>) {
        match accepted {
            Ok(arrival) => self.start_connection(arrival).await,
            Err(error) => self.recover_accept(&error).await,
        }
    }

    async fn start_connection(&self, arrival: AcceptedConnection) {
        let client = arrival.client();
        let (permit, health_only) = match self.permits.acquire(client).await {
            Err(PermitRefusal::Full) => (self.health_permits.acquire(client).await, true),
            permit => (permit, false),
        };
        match permit {
            Ok(permit) => {
                let service = ConnectionService { health_only, ..self.service.clone() };
                self.workers.spawn(service.serve_connection(arrival, permit));
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "refused a connection");
                arrival.refuse();
            }
        }
    }

    /// Waits until connections can be accepted again.
    async fn recover_accept(&self, error: &io::Error) {
        if !is_exhausted(error) {
            return tracing::debug!(%error, "lost a connection before it was accepted");
        }
        tracing::warn!(%error, "cannot accept connections");
        self.permits.evict();
        // An immediate retry would only consume CPU time.
        sleep(POLL_INTERVAL).await;
    }

    /// Lets open requests end, answers requests on their way, and closes all connections.
    async fn drain(&mut self) {
        self.service.is_draining.store(true, Ordering::Relaxed);
        if self.service.version != SpokenVersion::Http1 {
            // HTTP/2 has a frame for it, after which clients open other connections for further requests.
            self.permits.send(ConnectionSignal::Finish);
        }
        let end = Instant::now() + self.service.limits.drain_time;
        let permits = self.permits.clone();
        self.accept_until(end, || !permits.is_busy()).await;
        let linger = end.min(Instant::now() + LINGER_TIME);
        self.accept_until(linger, || permits.open() == 0).await;
        self.permits.send(ConnectionSignal::Finish);
        self.health_permits.send(ConnectionSignal::Finish);
        let closed = async {
            while permits.open() > 0 {
                sleep(POLL_INTERVAL).await;
            }
        };
        if timeout_at(end, closed).await.is_err() {
            tracing::warn!("requests were still open after the drain time");
        }
    }

    /// Accepts connections until a condition holds or until `end`.
    async fn accept_until(&mut self, end: Instant, is_done: impl Fn() -> bool) {
        let waited = async {
            while !is_done() {
                sleep(POLL_INTERVAL).await;
            }
        };
        let mut waited = pin!(timeout_at(end, waited));
        loop {
            tokio::select! {
                _ = &mut waited => return,
                accepted = self.listeners.accept() => self.handle_accepted(accepted).await,
            }
        }
    }
}

/// `true` if the system has no resources to accept a connection; otherwise only one connection failed.
fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

/// The version of HTTP that connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpokenVersion {
    Http1,
    #[cfg(feature = "http2")]
    Http2 {
        /// Beginnings of the paths of requests that do not keep a connection open.
        unguarded: &'static [&'static str],
    },
}

/// The service of connections.
#[derive(Clone)]
struct ConnectionService {
    service: Arc<dyn HttpService>,
    limits: ListenerLimits,
    version: SpokenVersion,
    /// `true` if each connection ends with its next response.
    is_draining: Arc<AtomicBool>,
    /// `true` if the connection serves one health check only.
    health_only: bool,
}

impl ConnectionService {
    /// Serves a connection to its end, and then frees its permit. Runs on the thread of the connection.
    async fn serve_connection(self, arrival: AcceptedConnection, mut permit: ConnectionPermit) {
        let connection = permit.connection.clone();
        let admitted = arrival.admit(self.limits.head_time, |client| Ok(permit.count_for(client)?));
        let (stream, client) = match unless_signaled(&connection, admitted).await {
            None => return tracing::debug!("a connection was closed before it was admitted"),
            Some(Err(error)) => return tracing::debug!(%error, "a connection was not admitted"),
            Some(Ok(admitted)) => admitted,
        };
        let ended = match stream {
            ClientStream::Tcp(stream) => self.serve_http(stream, client, connection).await,
            ClientStream::Unix(stream) => self.serve_http(stream, client, connection).await,
            ClientStream::Tls(stream) => self.serve_http(*stream, client, connection).await,
        };
        if let Err(error) = ended {
            tracing::debug!(error = &*error as &dyn std::error::Error, "a connection ended early");
        }
    }

    async fn serve_http(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client: ClientAddress,
        connection: Arc<OpenConnection>,
    ) -> Result<(), BoxError> {
        match self.version {
            SpokenVersion::Http1 => Ok(self.serve_http1(stream, client, connection).await?),
            #[cfg(feature = "http2")]
            SpokenVersion::Http2 { unguarded } => {
                http2::serve_connection(self, unguarded, stream, client, connection).await
            }
        }
    }

    async fn serve_http1(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        client: ClientAddress,
        connection: Arc<OpenConnection>,
    ) -> hyper::Result<()> {
        let builder = builder(self.limits);
        let framing = RequestFraming::default();
        let stream = framing.watch(stream);
        let stream = TimedWrites::new(stream, self.limits.write_time, connection.clone());
        let service = service_fn(|request| self.answer(&framing, request, client, &connection));
        let mut conversation = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut is_last = false;
        poll_fn(|context| {
            match connection.poll_signal(context) {
                ConnectionSignal::Cut => return Poll::Ready(Ok(())),
                ConnectionSignal::Finish if !is_last => {
                    is_last = true;
                    conversation.as_mut().graceful_shutdown();
                }
                ConnectionSignal::Finish | ConnectionSignal::None => {}
            }
            conversation.as_mut().poll(context)
        })
        .await
    }

    /// Answers a request, and closes the connection with the response if necessary.
    async fn answer(
        &self,
        framing: &RequestFraming,
        mut request: Request<Incoming>,
        client: ClientAddress,
        connection: &Arc<OpenConnection>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let open = OpenRequest::begin(connection);
        let mut response = if let Err(fault) = framing.check(&request) {
            framing::bad_request(fault)
        } else if self.health_only && !self.limits.health_paths.contains(&request.uri().path()) {
            overloaded_response()
        } else {
            request.extensions_mut().insert(client);
            if !connection.is_authenticated() {
                request.extensions_mut().insert(ClientConnection(connection.clone()));
            }
            self.service.answer(request.map(Body::new)).await
        };
        if self.health_only || self.is_draining.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| ResponseBody { body, _request: open }))
    }
}

/// Runs the protocols ahead of HTTP; `None` if the connection is told to end before they complete.
async fn unless_signaled<T>(connection: &OpenConnection, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match connection.poll_signal(context) {
        ConnectionSignal::None => work.as_mut().poll(context).map(Some),
        ConnectionSignal::Finish | ConnectionSignal::Cut => Poll::Ready(None),
    })
    .await
}

/// The response if each connection has an open request.
fn overloaded_response() -> Response {
    let mut response = Response::new(Body::from("too many connections are open"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn builder(limits: ListenerLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.header_read_timeout(limits.head_time);
    // The minimum of hyper is 8 KiB.
    builder.max_buf_size(limits.head_bytes.max(8 * 1024));
    builder
}
