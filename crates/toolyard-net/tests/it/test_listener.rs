//! A listener with a page that returns the address of the client, and pages that take their time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::routing::get;
use futures_util::stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use toolyard_net::listener::{self, ClientAddress, ClientConnection, ListenerLimits, SocketListener};
use toolyard_net::workers::WorkerPool;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Limits that no test reaches unless it lowers them.
pub(crate) const LIMITS: ListenerLimits = ListenerLimits {
    connections: 100,
    connections_per_address: 100,
    health_paths: &["/health"],
    head_bytes: 8192,
    head_time: LONG,
    write_time: LONG,
    drain_time: LONG,
};

/// A listener that serves until it is dropped.
pub(crate) struct TestListener {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    events: Arc<ListenerEvents>,
}

/// Events of a listener.
struct ListenerEvents {
    /// Started requests to `/wait`.
    started: Semaphore,
    /// Lets them end.
    may_end: Semaphore,
    /// Notified when a response of `/endless` ends.
    cut: Notify,
}

/// Notifies on drop.
struct NotifyOnDrop(Arc<ListenerEvents>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.cut.notify_one();
    }
}

fn routes(events: &Arc<ListenerEvents>) -> Router {
    let (waiting, endless) = (events.clone(), events.clone());
    let wait = async move || {
        waiting.started.add_permits(1);
        waiting.may_end.acquire().await.unwrap().forget();
        "done"
    };
    let endless = async move || {
        let state = NotifyOnDrop(endless.clone());
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        Body::from_stream(stream::unfold(state, move |state| {
            let piece = piece.clone();
            async move { Some((Ok::<_, Infallible>(piece), state)) }
        }))
    };
    let enter = async |connection: Option<Extension<ClientConnection>>| match connection {
        Some(Extension(connection)) => {
            connection.set_authenticated();
            "welcome"
        }
        None => "known",
    };
    Router::new()
        .route("/", get(async |Extension(client): Extension<ClientAddress>| client.to_string()))
        .route("/health", get(async || "well"))
        .route("/wait", get(wait))
        .route("/endless", get(endless))
        .route("/enter", get(enter))
}

impl TestListener {
    /// Serves on a port that the system chooses, and on the other listeners.
    pub(crate) async fn open(
        head_time: Duration,
        more: impl FnOnce(SocketListener) -> Vec<SocketListener>,
    ) -> Self {
        Self::with(ListenerLimits { head_time, ..LIMITS }, more).await
    }

    /// As [`TestListener::open`], with these limits.
    pub(crate) async fn with(
        limits: ListenerLimits,
        more: impl FnOnce(SocketListener) -> Vec<SocketListener>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listeners = more(listener.into());
        let none = || Semaphore::new(0);
        let events = Arc::new(ListenerEvents { started: none(), may_end: none(), cut: Notify::new() });
        let routes = routes(&events);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let workers = WorkerPool::start(1).unwrap();
            listener::serve(listeners, routes, limits, &workers, async { drop(stopped.await) }).await;
        });
        Self { address, stop, serving, events }
    }

    /// Sends a request that waits, and returns once it is being served.
    pub(crate) async fn start_wait(&self, stream: &mut (impl AsyncWrite + Unpin)) {
        send(stream, "/wait").await;
        self.events.started.acquire().await.unwrap().forget();
    }

    /// Lets waiting requests end.
    pub(crate) fn end_waits(&self, count: usize) {
        self.events.may_end.add_permits(count);
    }

    /// Waits for the end of an endless response.
    pub(crate) async fn cut(&self) {
        self.events.cut.notified().await;
    }

    /// Starts to drain, and returns once new connections are told to close.
    pub(crate) async fn start_draining(self) -> DrainingListener {
        self.stop.send(()).unwrap();
        loop {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let (head, _) = get_page(&mut stream, "/").await;
            if head.contains("connection: close") {
                return DrainingListener { serving: self.serving, events: self.events };
            }
        }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Stops, and lets open requests end.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

/// A draining listener.
pub(crate) struct DrainingListener {
    serving: JoinHandle<()>,
    events: Arc<ListenerEvents>,
}

impl DrainingListener {
    /// Lets waiting requests end.
    pub(crate) fn end_waits(&self, count: usize) {
        self.events.may_end.add_permits(count);
    }

    pub(crate) async fn end(self) {
        self.serving.await.unwrap();
    }
}

pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), path: &str) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
}

/// Requests the main page; returns the client address in the response.
pub(crate) async fn get_client_address(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    get_page(stream, "/").await.1
}

/// Requests a page; returns head and body of the response.
pub(crate) async fn get_page(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
) -> (String, String) {
    send(stream, path).await;
    answer(stream).await
}

/// The head and the body of a response.
pub(crate) async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "no answer");
        let text = str::from_utf8(&bytes).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split_once("content-length: ").unwrap().1.lines().next().unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return (head, body.to_owned());
        }
    }
}

/// All bytes until the other side closes the connection.
pub(crate) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends the connection as well.
    stream.read_to_end(&mut bytes).await.ok();
    bytes
}
