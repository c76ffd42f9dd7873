//! A listener whose only page says where the request came from.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use axum::routing::get;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolyard_net::listener::{self, ClientAddress, Listener, ListenerLimits};
use toolyard_net::workers::Workers;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Serves until it is dropped.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Site {
    /// Serves on a port that the system chose, and on what else there is.
    pub(crate) async fn open(head_time: Duration, more: impl FnOnce(Listener) -> Vec<Listener>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listeners = more(listener.into());
        let limits = ListenerLimits { connections: 100, head_bytes: 8192, head_time, drain_time: LONG };
        let routes = Router::new()
            .route("/", get(async |Extension(client): Extension<ClientAddress>| client.to_string()));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let workers = Workers::start(1).unwrap();
            listener::serve(listeners, routes, limits, &workers, async { drop(stopped.await) }).await;
        });
        Self { address, stop, serving }
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

/// Asks for the page; gives what it says.
pub(crate) async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    loop {
        stream.read_buf(&mut said).await.unwrap();
        let text = str::from_utf8(&said).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split_once("content-length: ").unwrap().1.lines().next().unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return body.to_owned();
        }
    }
}

/// Everything that is said until the other side hangs up.
pub(crate) async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut said = Vec::new();
    // A reset is an end as well.
    stream.read_to_end(&mut said).await.ok();
    said
}
