//! Clients of the good servers, each with a number of calls, and of the faulty server, until they are stopped.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};
use xtask_client::{McpConnection, McpEra, RpcReplyError};

const ERAS: [McpEra; 2] = [McpEra::Legacy, McpEra::Modern];

/// Time between two calls of a client of the faulty server.
const CALL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time of a call unless the client sets another one. The connection has a shorter timeout of its own.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The results of calls.
#[derive(Default)]
pub(super) struct CallTally {
    pub sent: usize,
    pub answered: usize,
    /// Number of failures by kind.
    pub failed: BTreeMap<String, usize>,
    /// Time of the slowest response.
    pub slowest: Duration,
}

impl CallTally {
    /// Records a call that started at this time and has just ended.
    pub(super) fn record(&mut self, started: Instant, answer: Result<(), String>) {
        self.sent += 1;
        self.slowest = self.slowest.max(started.elapsed());
        match answer {
            Ok(()) => self.answered += 1,
            Err(kind) => *self.failed.entry(kind).or_default() += 1,
        }
    }

    pub(super) fn add(&mut self, other: CallTally) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.slowest = self.slowest.max(other.slowest);
        for (kind, times) in other.failed {
            *self.failed.entry(kind).or_default() += times;
        }
    }
}

/// A client of the gateway that calls one tool, one call at a time.
pub(super) struct LoadClient {
    gateway: SocketAddr,
    era: McpEra,
    tool: String,
    key: Option<Arc<str>>,
    /// `true` if each call uses a new connection.
    reconnects: bool,
    /// Maximum time of a call.
    limit: Duration,
    connection: Option<McpConnection>,
    calls: usize,
}

impl LoadClient {
    pub(super) fn new(gateway: SocketAddr, era: McpEra, tool: &str) -> LoadClient {
        let tool = tool.to_owned();
        LoadClient {
            gateway,
            era,
            tool,
            key: None,
            reconnects: false,
            limit: CALL_TIMEOUT,
            connection: None,
            calls: 0,
        }
    }

    /// Sets the API key.
    pub(super) fn with_key(self, key: &Arc<str>) -> LoadClient {
        LoadClient { key: Some(key.clone()), ..self }
    }

    /// Sets the maximum time of a call.
    pub(super) fn with_timeout(self, limit: Duration) -> LoadClient {
        LoadClient { limit, ..self }
    }

    /// Uses a new connection for each call.
    pub(super) fn reconnecting(self) -> LoadClient {
        LoadClient { reconnects: true, ..self }
    }

    /// Makes a call; the error is the kind of the failure, for counting.
    pub(super) async fn call(&mut self) -> Result<(), String> {
        let answer = timeout(self.limit, self.call_without_timeout()).await;
        answer.unwrap_or_else(|_| Err(format!("no response within {:?}", self.limit)))
    }

    async fn call_without_timeout(&mut self) -> Result<(), String> {
        let kind = |error: anyhow::Error| format!("no response: {error:#}");
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let opened = McpConnection::open_with_key(self.gateway, self.era, self.key.as_deref());
                opened.await.map_err(kind)?
            }
        };
        self.calls += 1;
        let text = format!("{} to {}", self.calls, self.tool);
        let answer = connection.call(&self.tool, &text).await;
        let answer = match answer {
            Ok(reply) if reply.starts_with(&text) => Ok(()),
            Ok(_) => Err("wrong text".to_owned()),
            Err(error) => Err(error.downcast::<RpcReplyError>().map_err(kind)?.kind()),
        };
        self.connection = Some(connection).filter(|_| !self.reconnects);
        answer
    }
}

/// Makes `calls` calls of each tool, spread over `time` at least; each era has a client for half of them.
pub(super) async fn call_all(
    gateway: SocketAddr,
    tools: &[String],
    calls: usize,
    time: Duration,
) -> anyhow::Result<CallTally> {
    let mut clients = JoinSet::new();
    for tool in tools {
        for (era, calls) in ERAS.into_iter().zip([calls / 2, calls.div_ceil(2)]) {
            let caller = LoadClient::new(gateway, era, tool);
            clients.spawn(repeat_calls(caller, calls, time));
        }
    }
    let mut tally = CallTally::default();
    while let Some(client) = clients.join_next().await {
        tally.add(client?);
    }
    Ok(tally)
}

async fn repeat_calls(mut caller: LoadClient, calls: usize, time: Duration) -> CallTally {
    let mut tally = CallTally::default();
    let mut ticks = interval(time / u32::try_from(calls.max(1)).unwrap_or(u32::MAX));
    for _ in 0..calls {
        ticks.tick().await;
        let started = Instant::now();
        tally.record(started, caller.call().await);
    }
    tally
}

/// Waits until a tool responds.
pub(super) async fn await_answer(gateway: SocketAddr, tool: &str, limit: Duration) -> anyhow::Result<()> {
    await_answer_to(LoadClient::new(gateway, McpEra::Modern, tool), limit).await
}

/// Waits until a call of this client succeeds.
pub(super) async fn await_answer_to(mut caller: LoadClient, limit: Duration) -> anyhow::Result<()> {
    let mut last = Ok(());
    let answered = timeout(limit, async {
        loop {
            last = caller.call().await;
            if last.is_ok() {
                return;
            }
            sleep(CALL_INTERVAL).await;
        }
    });
    let is_in_time = answered.await.is_ok();
    is_in_time.then_some(()).with_context(|| format!("{} does not respond: {last:?}", caller.tool))
}

/// Clients that call one tool at intervals.
pub(super) struct LoadClients {
    clients: Vec<JoinHandle<CallTally>>,
    /// Start of the latest call that succeeded.
    answered: watch::Receiver<Option<Instant>>,
    /// Set to `true` to stop the clients.
    stop: watch::Sender<bool>,
}

impl LoadClients {
    /// Starts a client of each era.
    pub(super) fn start(gateway: SocketAddr, tool: &str) -> LoadClients {
        LoadClients::of(ERAS.map(|era| LoadClient::new(gateway, era, tool)))
    }

    /// Starts these clients.
    pub(super) fn of(callers: impl IntoIterator<Item = LoadClient>) -> LoadClients {
        let (answer, answered) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let client = |caller| tokio::spawn(call_until(caller, answer.clone(), stopped.clone()));
        let clients = callers.into_iter().map(client).collect();
        LoadClients { clients, answered, stop }
    }

    /// Waits until a call succeeds that started at this time or later.
    pub(super) async fn answered_since(&mut self, since: Instant) -> anyhow::Result<()> {
        let is_since = |started: &Option<Instant>| started.is_some_and(|begun| begun >= since);
        self.answered.wait_for(is_since).await.context("the clients have ended").map(drop)
    }

    /// Stops the clients after their running calls.
    pub(super) async fn stop(self) -> anyhow::Result<CallTally> {
        self.stop.send_replace(true);
        let mut tally = CallTally::default();
        for client in self.clients {
            tally.add(client.await?);
        }
        Ok(tally)
    }
}

async fn call_until(
    mut caller: LoadClient,
    answered: watch::Sender<Option<Instant>>,
    stopped: watch::Receiver<bool>,
) -> CallTally {
    let mut tally = CallTally::default();
    while !*stopped.borrow() {
        let started = Instant::now();
        let answer = caller.call().await;
        if answer.is_ok() {
            answered.send_replace(Some(started));
        }
        tally.record(started, answer);
        sleep(CALL_INTERVAL).await;
    }
    tally
}
