//! Accepts connections, within bounds, until it is told to drain.

use std::future::Future;
use std::io;
use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::workers::Workers;

/// What one client may take, and all of them together.
#[derive(Debug, Clone, Copy)]
pub struct ListenerLimits {
    /// Connections that are open at once. Further ones wait in the system's queue.
    pub connections: usize,
    /// Size of a request's head, in bytes.
    pub head_bytes: usize,
    /// Time that a client has to send a request's head. A connection on which nothing is asked for as long
    /// is closed as well.
    pub head_time: Duration,
    /// Time that open requests have to end once draining began.
    pub drain_time: Duration,
}

/// Serves until `stop` resolves, then lets open requests end and returns. New connections are accepted
/// meanwhile, for one request each: whoever asks is to be told that the server is going.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ListenerLimits,
    workers: &Workers,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let open = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => {
                let Some((stream, place)) = accepted else { continue };
                let (watcher, router) = (open.watcher(), router.clone());
                workers.spawn(async move {
                    let Ok(connection) = connect(stream, router, &builder(limits)) else { return };
                    run(watcher.watch(connection), place).await;
                });
            }
        }
    }
    let drained = tokio::time::timeout(limits.drain_time, open.shutdown());
    tokio::select! {
        drained = drained => if drained.is_err() {
            tracing::warn!("requests were still open when the time to drain was over");
        },
        () = send_away(&listener, &router, limits, &places, workers) => {}
    }
}

/// Goes on accepting connections, for one request each.
async fn send_away(
    listener: &TcpListener,
    router: &Router,
    limits: ListenerLimits,
    places: &Arc<Semaphore>,
    workers: &Workers,
) {
    loop {
        let Some((stream, place)) = accept(listener, places).await else { continue };
        let router = router.clone();
        workers.spawn(async move {
            let Ok(connection) = connect(stream, router, builder(limits).keep_alive(false)) else { return };
            run(connection, place).await;
        });
    }
}

type Connection = http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>>;

/// Takes a connection over. Called on the thread that is to serve it.
fn connect(stream: StdStream, router: Router, builder: &http1::Builder) -> io::Result<Connection> {
    let stream = TcpStream::from_std(stream)?;
    Ok(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)))
}

/// Runs a connection to its end; its place is free then.
async fn run(connection: impl Future<Output = hyper::Result<()>>, _place: OwnedSemaphorePermit) {
    if let Err(error) = connection.await {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
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

/// The next connection; `None` where it could not be accepted.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(StdStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _peer)) => {
            // Without it a reply in two writes waits for an acknowledgement: 40 ms.
            stream.set_nodelay(true).ok()?;
            Some((stream.into_std().ok()?, place))
        }
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            // Out of file descriptors, most likely: trying again at once would only burn the processor.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}
