//! The connections of one runtime.
//!
//! No task drives a connection: the request does that, and then the body of its response. A call thus wakes one task for
//! each arrival from the network, and no other.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::Connection;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::{IDLE_TIMEOUT, PolicyConnector};
use crate::proxy::ProxyStream;

type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why there is no response.
pub(super) enum ExchangeError {
    /// No connection was opened.
    Connect(BoxError),
    /// The connection broke before the head of the response.
    Broken(hyper::Error),
}

/// The connections of one runtime.
pub(super) struct ConnectionPool {
    connector: PolicyConnector,
    idle: IdleConnections,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").finish_non_exhaustive()
    }
}

impl ConnectionPool {
    pub(super) fn new(connector: PolicyConnector) -> Self {
        Self { connector, idle: IdleConnections::default() }
    }

    /// Sends a request on an idle connection or a new one, and waits for the head of the response. A request that an
    /// idle connection could not send, because the server had closed it, is sent on another one.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, ExchangeError> {
        let url = std::mem::take(request.uri_mut());
        let idle = self.idle.of_server(&url).map_err(ExchangeError::Connect)?;
        loop {
            let (connection, is_reused) = match idle.take() {
                Some(connection) => (connection, true),
                // In a box of its own, which most requests do not need.
                None => {
                    let connected = Box::pin(self.connect(&url)).await;
                    (connected.map_err(ExchangeError::Connect)?, false)
                }
            };
            connection.address(&mut request, &url);
            match connection.exchange(request).await {
                Ok((response, connection)) => {
                    let lease = ConnectionLease { connection, idle };
                    return Ok(response.map(|body| ResponseBody {
                        body,
                        has_ended: false,
                        lease: Some(lease),
                    }));
                }
                Err(mut failure) => match failure.take_message().filter(|_| is_reused) {
                    Some(unsent) => request = unsent,
                    None => return Err(ExchangeError::Broken(failure.into_error())),
                },
            }
        }
    }

    async fn connect(&self, url: &Uri) -> Result<Box<HttpConnection>, BoxError> {
        let mut connector = self.connector.clone();
        poll_fn(|context| connector.poll_ready(context)).await?;
        let stream = connector.call(url.clone()).await?;
        let is_proxied = stream.connected().is_proxied();
        let (sender, driver) = http1::handshake(stream).await?;
        Ok(Box::new(HttpConnection { sender, driver, host: host_header(url)?, is_proxied, is_closed: false }))
    }
}

/// Returns the `Host` header of requests to a server: without credentials, and without the default port.
fn host_header(url: &Uri) -> Result<HeaderValue, BoxError> {
    let default_port = if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let host = url.host().unwrap_or_default();
    Ok(match url.port_u16().filter(|port| *port != default_port) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}"))?,
        None => HeaderValue::from_str(host)?,
    })
}

// === a connection ===

/// An open connection, which its current request drives.
struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
    driver: http1::Connection<MaybeHttpsStream<ProxyStream>, Full<Bytes>>,
    host: HeaderValue,
    /// True if requests name the whole URL, for a proxy.
    is_proxied: bool,
    is_closed: bool,
}

impl HttpConnection {
    /// Sets the target and the host of a request.
    fn address(&self, request: &mut Request<Full<Bytes>>, url: &Uri) {
        *request.uri_mut() = match url.path_and_query() {
            _ if self.is_proxied => url.clone(),
            Some(path) => path.clone().into(),
            None => PathAndQuery::from_static("/").into(),
        };
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
    }

    /// Sends a request and waits for the head of its response.
    async fn exchange(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Box<Self>), TrySendError<Request<Full<Bytes>>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        let response = poll_fn(|context| {
            self.drive(context);
            response.as_mut().poll(context)
        });
        let response = response.await?;
        Ok((response, self))
    }

    /// Reads and writes what is possible. Errors reach the request or its body.
    fn drive(&mut self, context: &mut Context<'_>) {
        if !self.is_closed && Pin::new(&mut self.driver).poll(context).is_ready() {
            self.is_closed = true;
        }
    }

    /// Returns `true` if another request can be sent.
    fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.is_closed && self.sender.is_ready()
    }
}

/// A connection with its way back.
struct ConnectionLease {
    connection: Box<HttpConnection>,
    idle: Arc<ServerConnections>,
}

/// The body of a response, which drives its connection. After its end the connection serves other requests; if it is
/// dropped earlier, the connection is closed.
pub struct ResponseBody {
    body: Incoming,
    /// True once the end was read. The body itself knows its end only if its length was announced.
    has_ended: bool,
    /// `None` only while this is dropped.
    lease: Option<ConnectionLease>,
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        // The first poll asks the connection for data.
        let mut frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_pending()
            && let Some(lease) = &mut this.lease
        {
            lease.connection.drive(context);
            frame = Pin::new(&mut this.body).poll_frame(context);
        }
        this.has_ended |= matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let Some(ConnectionLease { mut connection, idle }) = self.lease.take() else { return };
        if (self.has_ended || self.body.is_end_stream()) && connection.is_ready() {
            idle.put(connection);
        }
    }
}

// === idle connections ===

/// The idle connections of a pool, by the scheme and the authority of their servers.
#[derive(Default)]
struct IdleConnections {
    http: Mutex<HashMap<Box<str>, Arc<ServerConnections>>>,
    https: Mutex<HashMap<Box<str>, Arc<ServerConnections>>>,
}

/// Number of servers from which those without connections are removed.
const MANY_SERVERS: usize = 256;

impl IdleConnections {
    /// Returns the idle connections to the server of a URL.
    fn of_server(&self, url: &Uri) -> Result<Arc<ServerConnections>, BoxError> {
        let authority = url.authority().ok_or("the URL has no host")?.as_str();
        let servers = if url.scheme() == Some(&Scheme::HTTPS) { &self.https } else { &self.http };
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(authority) {
            return Ok(server.clone());
        }
        if servers.len() >= MANY_SERVERS {
            servers
                .retain(|_, server| Arc::strong_count(server) > 1 || !server.lock().connections.is_empty());
        }
        let server = Arc::<ServerConnections>::default();
        servers.insert(authority.into(), server.clone());
        Ok(server)
    }
}

/// The idle connections to one server.
#[derive(Default)]
struct ServerConnections(Mutex<IdleState>);

#[derive(Default)]
struct IdleState {
    /// Those that were used last are at the end.
    connections: Vec<(Instant, Box<HttpConnection>)>,
    /// The task that closes connections after their time, while there are any.
    expiry: JoinSet<()>,
}

impl ServerConnections {
    fn lock(&self) -> MutexGuard<'_, IdleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection that was used last. The server may have closed it since.
    fn take(&self) -> Option<Box<HttpConnection>> {
        loop {
            let (since, mut connection) = self.lock().connections.pop()?;
            if since.elapsed() < IDLE_TIMEOUT && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    fn put(self: Arc<Self>, connection: Box<HttpConnection>) {
        let mut state = self.lock();
        state.connections.push((Instant::now(), connection));
        if state.expiry.is_empty() && Handle::try_current().is_ok() {
            state.expiry.spawn(expire(Arc::downgrade(&self)));
        }
    }

    /// Closes the connections that have been idle for long. Returns `true` if none is left: then the next one starts
    /// another task.
    fn close_expired(&self) -> bool {
        let mut state = self.lock();
        state.connections.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
        let is_empty = state.connections.is_empty();
        if is_empty {
            state.expiry.detach_all();
        }
        is_empty
    }
}

/// Closes connections after their time until none is left.
async fn expire(idle: Weak<ServerConnections>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        let Some(idle) = idle.upgrade() else { return };
        if idle.close_expired() {
            return;
        }
    }
}
