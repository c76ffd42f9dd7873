//! Clients: of the good servers, each with a number of calls to make, and of the faulty one, until they are stopped.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};

use crate::client::{Connection, Era, Refused};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// The pause between two calls of the faulty server by the same client.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of calls.
#[derive(Default)]
pub(super) struct Tally {
    pub sent: usize,
    pub answered: usize,
    /// How many failed of what.
    pub failed: BTreeMap<String, usize>,
}

impl Tally {
    fn count(&mut self, answer: Result<(), String>) {
        self.sent += 1;
        match answer {
            Ok(()) => self.answered += 1,
            Err(kind) => *self.failed.entry(kind).or_default() += 1,
        }
    }

    fn add(&mut self, other: Tally) {
        self.sent += other.sent;
        self.answered += other.answered;
        for (kind, times) in other.failed {
            *self.failed.entry(kind).or_default() += times;
        }
    }
}

/// A client of the gateway that calls one tool, one call at a time.
struct Caller {
    gateway: SocketAddr,
    era: Era,
    tool: String,
    connection: Option<Connection>,
    calls: usize,
}

impl Caller {
    fn new(gateway: SocketAddr, era: Era, tool: &str) -> Caller {
        Caller { gateway, era, tool: tool.to_owned(), connection: None, calls: 0 }
    }

    /// Says what was wrong in as few words as are to be counted.
    async fn call(&mut self) -> Result<(), String> {
        let kind = |error: anyhow::Error| format!("no answer: {error:#}");
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.gateway, self.era).await.map_err(kind)?,
        };
        self.calls += 1;
        let text = format!("{} to {}", self.calls, self.tool);
        let answer = connection.call(&self.tool, &text).await;
        let answer = match answer {
            Ok(said) if said.starts_with(&text) => Ok(()),
            Ok(_) => Err("another text".to_owned()),
            Err(error) => Err(error.downcast::<Refused>().map_err(kind)?.kind()),
        };
        self.connection = Some(connection);
        answer
    }
}

/// Makes so many calls of each tool, spread over at least this time; half of them come from a client of each era.
pub(super) async fn call_all(
    gateway: SocketAddr,
    tools: &[String],
    calls: usize,
    time: Duration,
) -> anyhow::Result<Tally> {
    let mut clients = JoinSet::new();
    for tool in tools {
        for (era, calls) in ERAS.into_iter().zip([calls / 2, calls.div_ceil(2)]) {
            let caller = Caller::new(gateway, era, tool);
            clients.spawn(call_often(caller, calls, time));
        }
    }
    let mut tally = Tally::default();
    while let Some(client) = clients.join_next().await {
        tally.add(client?);
    }
    Ok(tally)
}

async fn call_often(mut caller: Caller, calls: usize, time: Duration) -> Tally {
    let mut tally = Tally::default();
    let mut beat = interval(time / u32::try_from(calls.max(1)).unwrap_or(u32::MAX));
    for _ in 0..calls {
        beat.tick().await;
        tally.count(caller.call().await);
    }
    tally
}

/// Waits until a tool answers.
pub(super) async fn await_answer(gateway: SocketAddr, tool: &str, limit: Duration) -> anyhow::Result<()> {
    let mut caller = Caller::new(gateway, Era::Modern, tool);
    let mut last = Ok(());
    let answered = timeout(limit, async {
        loop {
            last = caller.call().await;
            if last.is_ok() {
                return;
            }
            sleep(PAUSE).await;
        }
    });
    let in_time = answered.await.is_ok();
    in_time.then_some(()).with_context(|| format!("{tool} does not answer: {last:?}"))
}

/// Clients that call one tool now and then.
pub(super) struct Callers {
    clients: Vec<JoinHandle<Tally>>,
    /// When the latest call began that was answered.
    answered: watch::Receiver<Option<Instant>>,
    /// Says so when they are to stop.
    stop: watch::Sender<bool>,
}

impl Callers {
    /// A client of each era.
    pub(super) fn start(gateway: SocketAddr, tool: &str) -> Callers {
        let (answer, answered) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let client = |era| call_until(Caller::new(gateway, era, tool), answer.clone(), stopped.clone());
        let clients = ERAS.map(client).into_iter().map(tokio::spawn).collect();
        Callers { clients, answered, stop }
    }

    /// Waits until a call is answered that was begun at this time or later.
    pub(super) async fn answered_since(&mut self, since: Instant) -> anyhow::Result<()> {
        let is_since = |begun: &Option<Instant>| begun.is_some_and(|begun| begun >= since);
        self.answered.wait_for(is_since).await.context("the clients are gone").map(drop)
    }

    /// Lets the calls end that run.
    pub(super) async fn stop(self) -> anyhow::Result<Tally> {
        self.stop.send_replace(true);
        let mut tally = Tally::default();
        for client in self.clients {
            tally.add(client.await?);
        }
        Ok(tally)
    }
}

async fn call_until(
    mut caller: Caller,
    answered: watch::Sender<Option<Instant>>,
    stopped: watch::Receiver<bool>,
) -> Tally {
    let mut tally = Tally::default();
    while !*stopped.borrow() {
        let begun = Instant::now();
        let answer = caller.call().await;
        if answer.is_ok() {
            answered.send_replace(Some(begun));
        }
        tally.count(answer);
        sleep(PAUSE).await;
    }
    tally
}
