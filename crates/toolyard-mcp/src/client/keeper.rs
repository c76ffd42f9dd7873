//! Keeps one server connected.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use toolyard_core::{Catalog, Phase};

use super::connection::{Connection, OpenError};
use super::declared::Declared;
use super::exchange::Generation;
use super::expiry::Expiry;
use super::link::{Link, reason};
use super::opener::Opener;
use super::probe;
use super::stale::Lists;
use super::usage::Usage;

/// The first pause after a failure, and the longest. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// A connection that lasted so many times the pause before it, or the longest pause, counts as a good one: a server
/// that connects and ends, again and again, is as good as one that does not connect, but one that ends now and then
/// is back at once.
const WORTH: u32 = 10;

/// How long a change is left to be followed by others before the list is asked for.
const DAMPING: Duration = Duration::from_millis(200);

/// The task that connects, lists, and begins anew when the connection is lost.
pub(super) struct Keeper {
    pub(super) opener: Arc<Opener>,
    /// What a legacy server is told that it may ask.
    pub(super) declared: Declared,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    pub(super) link: watch::Sender<Link>,
    /// Where the server is ended when it is not used.
    pub(super) usage: Option<Arc<Usage>>,
    /// Somebody wants to know what there is now.
    pub(super) refresh: Arc<Notify>,
    /// Who answers, where that may be another one without a word.
    pub(super) generation: Generation,
}

/// Why a connection is left.
enum Left {
    /// It is of no use any more.
    Lost,
    /// Nobody needs it now.
    Idle,
    /// It is as good as before, and what it leads to may be another server.
    Renewed,
}

impl Keeper {
    pub(super) async fn keep(mut self) {
        let mut pause = BACKOFF.0;
        loop {
            self.generation.note();
            match self.connect().await {
                Ok(connection) => {
                    let since = Instant::now();
                    let left = tokio::select! {
                        left = self.stay(&connection) => left,
                        never = connection.keep_subscribed() => match never {},
                    };
                    match left {
                        // Calls go on with it until there is the next one.
                        Left::Renewed => {
                            pause = BACKOFF.0;
                            continue;
                        }
                        Left::Idle => {
                            connection.end_process().await;
                            self.called().await;
                            self.link.send_replace(Link::Connecting);
                            continue;
                        }
                        Left::Lost => {
                            pause = match connection.is_forgotten() {
                                // The server is well: it only wants another session.
                                true => BACKOFF.0,
                                false => pause_after(since.elapsed(), pause),
                            };
                            self.lose(pause);
                            connection.end_process().await;
                        }
                    }
                }
                Err(error) => self.give_up(&error),
            }
            // Whoever asks for it has a new attempt at once, and so has who has changed the server.
            let early = async {
                tokio::select! {
                    () = self.refresh.notified() => {}
                    () = self.generation.renewed() => sleep(DAMPING).await,
                }
            };
            let _early = timeout(pause, early).await;
            pause = (pause * 2).min(BACKOFF.1);
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, OpenError> {
        let attempt = timeout(self.opener.options.connect_time, self.attempt());
        let (connection, catalog) = attempt.await.map_err(|_| OpenError::TooSlow)??;
        let connection = Arc::new(connection);
        let (revision, tools) = (connection.revision(), catalog.tools.len());
        tracing::info!(handler = %self.opener.name, %revision, tools, "connected");
        self.link.send_replace(Link::Up(connection.clone()));
        self.publish(&connection, catalog);
        Ok(connection)
    }

    /// The first lists are part of it: a server that cannot list its tools is not connected.
    async fn attempt(&self) -> Result<(Connection, Catalog), OpenError> {
        let connection = self.opener.open(&self.declared).await?;
        connection.callers.be_nobodys(&connection.transport);
        let protocol = Some(format!("MCP {}", connection.revision()).into());
        let unlisted = connection.capabilities.has_resources();
        let before = Catalog::clone(&self.catalog.borrow());
        let mut catalog = Catalog { phase: Phase::Ready, protocol, unlisted, ..before };
        connection.list(Lists::ALL, &mut catalog).await?;
        Ok((connection, catalog))
    }

    /// Follows the server's changes until the connection is lost, or not used any more.
    async fn stay(&self, connection: &Arc<Connection>) -> Left {
        let since = Instant::now();
        let (mut expiry, mut generation) = (Expiry::default(), self.generation.clone());
        expiry.renew(Lists::ALL, &connection.capabilities, &self.catalog.borrow().hints);
        loop {
            tokio::select! {
                () = connection.lost() => return Left::Lost,
                () = connection.stale().wait() => sleep(DAMPING).await,
                over = expiry.wait() => connection.stale().note(over),
                () = generation.renewed() => {
                    sleep(DAMPING).await;
                    return Left::Renewed;
                }
                () = self.refresh.notified() => match generation.may_change() {
                    true => return Left::Renewed,
                    false => connection.stale().note(Lists::ALL),
                },
                () = probe::unanswered(connection, self.opener.options.probe) => {
                    tracing::warn!(handler = %self.opener.name, "the server does not answer any more");
                    return Left::Lost;
                }
                () = self.idle(connection, since) => return Left::Idle,
            }
            let mut catalog = Catalog::clone(&self.catalog.borrow());
            let lists = connection.stale().take();
            let list = connection.list(lists, &mut catalog);
            match timeout(self.opener.options.connect_time, list).await {
                Ok(Ok(())) => {
                    expiry.renew(lists, &connection.capabilities, &catalog.hints);
                    self.publish(connection, catalog);
                }
                Ok(Err(error)) => {
                    let reason = reason(&error, &self.opener.options.secrets);
                    tracing::warn!(handler = %self.opener.name, reason, "cannot list again");
                    return Left::Lost;
                }
                Err(_) => return Left::Lost,
            }
        }
    }

    /// That a list was asked for again and is the same is no news.
    fn publish(&self, connection: &Connection, catalog: Catalog) {
        self.opener.learn(connection, &catalog.tools);
        self.catalog.send_if_modified(|now| {
            let is_other = **now != catalog;
            if is_other {
                *now = Arc::new(catalog);
            }
            is_other
        });
    }

    /// Waits until a server that is a process has not been called for as long as it may stay; calls that come now
    /// wait for the next connection.
    async fn idle(&self, connection: &Arc<Connection>, connected: Instant) {
        let (Some(time), Some(usage)) = (self.opener.options.idle_time, &self.usage) else {
            return std::future::pending().await;
        };
        loop {
            sleep_until(usage.last().max(connected) + time).await;
            if usage.last().max(connected).elapsed() < time {
                continue;
            }
            self.link.send_replace(Link::Asleep);
            // A call is counted before it looks for the connection: one that is not seen here will see this.
            if !usage.is_running() {
                tracing::info!(handler = %self.opener.name, "not called for long: its process ends until the next call");
                return;
            }
            self.link.send_replace(Link::Up(connection.clone()));
        }
    }

    /// Waits until somebody calls.
    async fn called(&self) {
        if let Some(usage) = &self.usage {
            usage.begun().await;
        }
    }

    /// The tools stay listed, and calls wait for a first short pause: a server that comes back at once was never
    /// gone.
    fn lose(&self, pause: Duration) {
        tracing::warn!(handler = %self.opener.name, "the connection is lost");
        match pause == BACKOFF.0 {
            true => drop(self.link.send_replace(Link::Connecting)),
            false => self.be_down("the connection is lost again and again".to_owned()),
        }
    }

    fn give_up(&self, error: &OpenError) {
        let reason = reason(error, &self.opener.options.secrets);
        tracing::warn!(handler = %self.opener.name, reason, "not connected");
        self.be_down(reason);
    }

    /// Calls still find the tools, and are told that they are unavailable. Where it takes no connection to make one, it
    /// is tried all the same.
    fn be_down(&self, reason: String) {
        self.link.send_if_modified(|link| {
            let is_tried = self.generation.may_change() && link.connection().is_some();
            if !is_tried {
                *link = Link::Down(reason.as_str().into());
            }
            !is_tried
        });
        let phase = Phase::Unavailable { reason };
        let catalog = Catalog { phase, protocol: None, ..Catalog::clone(&self.catalog.borrow()) };
        self.catalog.send_replace(Arc::new(catalog));
    }
}

/// The pause after a connection that has lasted for so long, where it would be `pause` otherwise.
fn pause_after(lasted: Duration, pause: Duration) -> Duration {
    if lasted >= (pause * WORTH).min(BACKOFF.1) { BACKOFF.0 } else { pause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_lasted_is_restored_at_once() {
        let cases = [
            (0, 250, 250),
            (2_400, 500, 500),
            (5_000, 500, 250),
            (29_000, 8_000, 8_000),
            (30_000, 8_000, 250),
            (30_000, 30_000, 250),
        ];
        for (lasted, pause, then) in cases {
            let [lasted, pause, then] = [lasted, pause, then].map(Duration::from_millis);
            assert_eq!(pause_after(lasted, pause), then, "{lasted:?} {pause:?}");
        }
    }
}
