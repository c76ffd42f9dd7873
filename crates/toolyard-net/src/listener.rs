//! Accepts connections, within bounds, until it is told to drain.
//!
//! - [`Listener`]: where connections come from, and what is asked of them before HTTP;
//! - [`Tls`]: how they are encrypted, read from files;
//! - [`proxy`]: whom a proxy in front of us says that it speaks for;
//! - [`ClientAddress`]: where a request came from, in its extensions.

mod arrival;
pub mod proxy;
mod socket;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::arrival::{Arrival, Stream};
use self::socket::Listeners;
use crate::workers::Workers;

pub use self::arrival::ClientAddress;
pub use self::socket::Listener;
pub use self::tls::{Tls, TlsError, TlsFiles};

/// What one client may take, and all of them together.
#[derive(Debug, Clone, Copy)]
pub struct ListenerLimits {
    /// Connections that are open at once. Further ones wait in the system's queue.
    pub connections: usize,
    /// Size of a request's head, in bytes.
    pub head_bytes: usize,
    /// Time that a client has to send a request's head, and before that for what comes ahead of HTTP: the header of
    /// a proxy and the handshake of TLS. A connection on which nothing is asked for as long is closed as well.
    pub head_time: Duration,
    /// Time that open requests have to end once draining began.
    pub drain_time: Duration,
}

/// Serves until `stop` resolves, then lets open requests end and returns. New connections are accepted
/// meanwhile, for one request each: whoever asks is to be told that the server is going.
pub async fn serve(
    listeners: Vec<Listener>,
    router: Router,
    limits: ListenerLimits,
    workers: &Workers,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let open = GracefulShutdown::new();
    let (draining, drain) = watch::channel(());
    let mut listeners = Listeners::new(listeners);
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept(&mut listeners, &places) => {
                let Some((arrival, place)) = accepted else { continue };
                let watched = Watched { watcher: open.watcher(), drain: drain.clone() };
                workers.spawn(attend(arrival, router.clone(), limits, Some(watched), place));
            }
        }
    }
    drop(draining);
    let drained = tokio::time::timeout(limits.drain_time, open.shutdown());
    tokio::select! {
        drained = drained => if drained.is_err() {
            tracing::warn!("requests were still open when the time to drain was over");
        },
        () = send_away(&mut listeners, &router, limits, &places, workers) => {}
    }
}

/// Goes on accepting connections, for one request each.
async fn send_away(
    listeners: &mut Listeners,
    router: &Router,
    limits: ListenerLimits,
    places: &Arc<Semaphore>,
    workers: &Workers,
) {
    loop {
        let Some((arrival, place)) = accept(listeners, places).await else { continue };
        workers.spawn(attend(arrival, router.clone(), limits, None, place));
    }
}

/// The next connection; `None` where it could not be accepted.
async fn accept(
    listeners: &mut Listeners,
    places: &Arc<Semaphore>,
) -> Option<(Arrival, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listeners.accept().await {
        Ok(arrival) => Some((arrival, place)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            // Out of file descriptors, most likely: trying again at once would only burn the processor.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// What ends a connection when draining begins.
struct Watched {
    /// Waits for its open request.
    watcher: Watcher,
    /// Does not wait for a client that has not even asked yet: it closes when draining begins.
    drain: watch::Receiver<()>,
}

/// Serves a connection to its end; its place is free then. Runs on the thread where the connection stays. One that
/// is not watched is for one request.
async fn attend(
    arrival: Arrival,
    router: Router,
    limits: ListenerLimits,
    watched: Option<Watched>,
    _place: OwnedSemaphorePermit,
) {
    let admitted = arrival.admit(limits.head_time);
    let (admitted, watcher) = match watched {
        None => (admitted.await, None),
        Some(Watched { watcher, mut drain }) => tokio::select! {
            biased;
            admitted = admitted => (admitted, Some(watcher)),
            _ = drain.changed() => return,
        },
    };
    let (stream, client) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return tracing::debug!(%error, "a connection was not admitted"),
    };
    let service = Site { router: TowerToHyperService::new(router), client };
    let ended = match stream {
        Stream::Tcp(stream) => converse(stream, service, limits, watcher).await,
        Stream::Unix(stream) => converse(stream, service, limits, watcher).await,
        Stream::Tls(stream) => converse(*stream, service, limits, watcher).await,
    };
    if let Err(error) = ended {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    service: Site,
    limits: ListenerLimits,
    watcher: Option<Watcher>,
) -> hyper::Result<()> {
    let connection =
        builder(limits).keep_alive(watcher.is_some()).serve_connection(TokioIo::new(stream), service);
    match watcher {
        Some(watcher) => watcher.watch(connection).await,
        None => connection.await,
    }
}

fn builder(limits: ListenerLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.header_read_timeout(limits.head_time);
    // The smallest buffer that hyper takes is 8 KiB.
    builder.max_buf_size(limits.head_bytes.max(8 * 1024));
    builder
}

/// The routes, as one client sees them.
#[derive(Clone)]
struct Site {
    router: TowerToHyperService<Router>,
    client: ClientAddress,
}

impl Service<Request<Incoming>> for Site {
    type Response = Response;
    type Error = Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.client);
        self.router.call(request)
    }
}
