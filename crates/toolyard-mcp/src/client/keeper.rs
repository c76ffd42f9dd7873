//! Keeps one server connected.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{Catalog, Phase, Tool};

use super::connection::{Connection, OpenError};
use super::{ClientOptions, Endpoint};

/// The first pause after a failure, and the longest. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How long a change is left to be followed by others before the list is asked for.
const DAMPING: Duration = Duration::from_millis(200);

/// How the server is to be reached now.
#[derive(Clone)]
pub(super) enum Link {
    /// An attempt is under way.
    Connecting,
    /// Through this.
    Up(Arc<Connection>),
    /// Not at all: the last attempt failed for this reason.
    Down(Arc<str>),
}

/// The task that connects, lists, and begins anew when the connection is lost.
pub(super) struct Keeper {
    pub(super) name: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) options: Arc<ClientOptions>,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    pub(super) link: watch::Sender<Link>,
}

impl Keeper {
    pub(super) async fn keep(self) {
        let mut pause = BACKOFF.0;
        loop {
            match self.connect().await {
                Ok(connection) => {
                    let since = Instant::now();
                    self.stay(connection).await;
                    tracing::warn!(handler = %self.name, "the connection is lost");
                    // A server that connects and ends, again and again, is as good as one that does not.
                    if since.elapsed() >= BACKOFF.1 {
                        pause = BACKOFF.0;
                    }
                    // The tools stay listed, and calls wait for a first short pause: a server that comes
                    // back at once was never gone.
                    self.link.send_replace(match pause == BACKOFF.0 {
                        true => Link::Connecting,
                        false => Link::Down("the connection is lost again and again".into()),
                    });
                }
                Err(error) => self.give_up(&error),
            }
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF.1);
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, OpenError> {
        let attempt = timeout(self.options.connect_time, self.attempt());
        let (connection, tools) = attempt.await.map_err(|_| OpenError::TooSlow)??;
        let connection = Arc::new(connection);
        tracing::info!(handler = %self.name, revision = %connection.revision(), tools = tools.len(), "connected");
        self.link.send_replace(Link::Up(connection.clone()));
        self.catalog.send_replace(Arc::new(Catalog { phase: Phase::Ready, tools, ..Catalog::default() }));
        Ok(connection)
    }

    /// The first list is part of it: a server that cannot list is not connected.
    async fn attempt(&self) -> Result<(Connection, Vec<Arc<Tool>>), OpenError> {
        let connection = Connection::open(&self.name, &self.endpoint, self.options.clone()).await?;
        let tools = connection.list_tools().await?;
        Ok((connection, tools))
    }

    /// Follows the server's changes until the connection is lost.
    async fn stay(&self, connection: Arc<Connection>) {
        loop {
            tokio::select! {
                () = connection.lost() => return,
                () = connection.changed() => sleep(DAMPING).await,
            }
            match timeout(self.options.connect_time, connection.list_tools()).await {
                Ok(Ok(tools)) => {
                    self.catalog.send_replace(Arc::new(Catalog {
                        phase: Phase::Ready,
                        tools,
                        ..Catalog::default()
                    }));
                }
                Ok(Err(error)) => {
                    tracing::warn!(handler = %self.name, error = &error as &dyn Error, "cannot list again");
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn give_up(&self, error: &OpenError) {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        tracing::warn!(handler = %self.name, reason, "not connected");
        self.link.send_replace(Link::Down(reason.as_str().into()));
        let tools = self.catalog.borrow().tools.clone();
        self.catalog.send_replace(Arc::new(Catalog {
            phase: Phase::Unavailable { reason },
            tools,
            ..Catalog::default()
        }));
    }
}
