//! The client that the gateway has to serve during an attack.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hyper::Request;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use xtask_client::{IdleSession, McpConnection, McpEra, exchange};

use super::test_bed::{AttackTestBed, TOOL};
use crate::load::{CallTally, LoadClient, LoadClients};

/// Maximum time of a response. A gateway whose threads are blocked takes longer; one that shares a slow machine with
/// hostile clients does not.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(25);

/// Time between two health checks.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// A session that makes calls, calls on a new connection each, health checks, and an idle session.
pub(super) struct GoodClient {
    gateway: SocketAddr,
    callers: LoadClients,
    health: JoinHandle<CallTally>,
    stop: watch::Sender<bool>,
    idle: IdleSession,
}

/// The results of the good client.
pub(super) struct GoodClientTally {
    /// Its last call is the one of the idle session.
    pub calls: CallTally,
    pub health: CallTally,
}

impl GoodClient {
    pub(super) async fn start(bed: &AttackTestBed) -> anyhow::Result<GoodClient> {
        let gateway = bed.gateway;
        let caller =
            |era| LoadClient::new(gateway, era, TOOL).with_key(&bed.good_key).with_timeout(ANSWER_LIMIT);
        let idle =
            McpConnection::open_with_key(gateway, McpEra::Legacy, Some(&bed.good_key)).await?.into_idle();
        let (stop, stopped) = watch::channel(false);
        let health = tokio::spawn(poll_health(gateway, stopped));
        let mut callers = LoadClients::of([caller(McpEra::Legacy), caller(McpEra::Modern).reconnecting()]);
        callers.answered_since(Instant::now()).await?;
        Ok(GoodClient { gateway, callers, health, stop, idle })
    }

    /// Waits for the running calls, and makes a call in the idle session.
    pub(super) async fn finish(self) -> anyhow::Result<GoodClientTally> {
        self.stop.send_replace(true);
        let (mut calls, health) = (self.callers.stop().await?, self.health.await?);
        let started = Instant::now();
        let call = async {
            let mut connection = self.idle.resume(self.gateway).await?;
            connection.call(TOOL, "back again").await
        };
        let answer = timeout(ANSWER_LIMIT, call).await;
        let kind = |error| format!("idle session: {error:#}");
        calls.record(
            started,
            answer
                .map_err(|_| "idle session: late".to_owned())
                .and_then(|answer| answer.map(drop).map_err(kind)),
        );
        Ok(GoodClientTally { calls, health })
    }
}

async fn poll_health(gateway: SocketAddr, stopped: watch::Receiver<bool>) -> CallTally {
    let mut tally = CallTally::default();
    while !*stopped.borrow() {
        let started = Instant::now();
        let answer = timeout(ANSWER_LIMIT, exchange(gateway, Request::get("/health"), "")).await;
        let answer = answer.map_err(|_| "late".to_owned());
        tally.record(
            started,
            answer.and_then(|answer| answer.map(drop).map_err(|error| format!("{error:#}"))),
        );
        sleep(PROBE_INTERVAL).await;
    }
    tally
}
