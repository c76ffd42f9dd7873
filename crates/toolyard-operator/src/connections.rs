//! Connections of the operator's listeners.
//!
//! Their number is limited. A new one takes the place of the one whose last request is longest ago, so that clients that
//! only connect, or send slowly, keep neither probes nor reviews waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Delay after a connection that was not accepted.
const ACCEPT_DELAY: Duration = Duration::from_millis(100);

/// Limits of a listener's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Maximum number at a time.
    pub(crate) connections: usize,
    /// Time limit of each.
    pub(crate) time: Duration,
}

/// Accepts connections until the future is dropped, which closes all of them.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    limits: ConnectionLimits,
    serve: impl Fn(TcpStream, LastRequest) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut open = OpenConnections::new(limits);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let last = LastRequest::now();
                open.start(last.clone(), serve(stream, last));
            }
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_DELAY).await;
            }
        }
    }
}

/// Time of the last request of a connection, or of its beginning.
#[derive(Debug, Clone)]
pub(crate) struct LastRequest(Arc<Mutex<Instant>>);

impl LastRequest {
    fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// Records a request.
    pub(crate) fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn time(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct OpenConnections {
    limits: ConnectionLimits,
    tasks: JoinSet<()>,
    connections: Vec<(AbortHandle, LastRequest)>,
}

impl OpenConnections {
    fn new(limits: ConnectionLimits) -> Self {
        Self { limits, tasks: JoinSet::new(), connections: Vec::new() }
    }

    /// Serves a connection, and closes another one if there are too many.
    fn start(&mut self, last: LastRequest, served: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.connections.retain(|(task, _)| !task.is_finished());
        if self.connections.len() >= self.limits.connections {
            let times = self.connections.iter().map(|(_, last)| last.time()).enumerate();
            if let Some((index, _)) = times.min_by_key(|(_, time)| *time) {
                self.connections.swap_remove(index).0.abort();
            }
        }
        let limit = self.limits.time;
        let task = self.tasks.spawn(async move { drop(tokio::time::timeout(limit, served).await) });
        self.connections.push((task, last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { connections: 3, time: Duration::from_secs(30) };

    /// Opens one connection a second; those of `requests` send a request before the last one. Returns those that are open in
    /// the end.
    async fn open(number: usize, requests: &[usize]) -> Vec<usize> {
        let mut open = OpenConnections::new(LIMITS);
        let mut all = Vec::new();
        for index in 0..number {
            tokio::time::advance(Duration::from_secs(1)).await;
            if index + 1 == number {
                requests.iter().for_each(|request: &usize| LastRequest::record(&all[*request]));
            }
            let last = LastRequest::now();
            open.start(last.clone(), std::future::pending());
            all.push(last);
        }
        let is_open =
            |last: &LastRequest| open.connections.iter().any(|(_, other)| Arc::ptr_eq(&other.0, &last.0));
        (0..number).filter(|index| is_open(&all[*index])).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_takes_the_place_of_the_idlest() {
        assert_eq!(open(3, &[]).await, [0, 1, 2]);
        assert_eq!(open(4, &[]).await, [1, 2, 3]);
        assert_eq!(open(4, &[0]).await, [0, 2, 3]);
        assert_eq!(open(4, &[0, 1]).await, [0, 1, 3]);
        assert_eq!(open(50, &[]).await, [47, 48, 49]);
        assert_eq!(open(50, &[46]).await, [46, 48, 49]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_with_their_time() {
        let mut open = OpenConnections::new(LIMITS);
        open.start(LastRequest::now(), std::future::pending());
        let start = Instant::now();
        open.tasks.join_next().await;
        assert_eq!(start.elapsed(), LIMITS.time);
    }
}
