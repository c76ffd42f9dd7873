//! The load: a connection for each call in flight, which sends the next request as soon as it has a response.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use xtask_client::{McpConnection, McpEra};

use super::messages::LargeMessage;
use super::sample::LoadSample;
use super::targets::BenchTarget;

/// The load on a target.
#[derive(Clone, Copy)]
pub(super) struct BenchLoad {
    pub era: McpEra,
    pub in_flight: usize,
    pub duration: Duration,
    pub work: RequestKind,
}

/// The kind of the requests.
#[derive(Clone, Copy)]
pub(super) enum RequestKind {
    /// A call of `echo` with a unique text.
    Call,
    /// The same as a plain HTTP request.
    Post,
    /// A complete list of this many tools.
    List(usize),
    /// A call with a large message.
    Large(LargeMessage),
}

impl BenchLoad {
    /// Puts the load on a target and measures after a warm-up. A wrong response is an error.
    pub(super) async fn measure(&self, target: &BenchTarget) -> anyhow::Result<LoadSample> {
        let sample = self.measure_together(std::slice::from_ref(target)).await;
        sample.with_context(|| format!("{} with {} in flight", target.name, self.in_flight))
    }

    /// Divides the load among targets, and measures them as one: their CPU time is the sum.
    pub(super) async fn measure_together(&self, targets: &[BenchTarget]) -> anyhow::Result<LoadSample> {
        let opening = targets.iter().cycle().take(self.in_flight).map(|target| target.connect(self.era));
        let connections = try_join_all(opening).await?;
        let warm = self.drive_clients(connections, self.duration / 5).await?;
        self.catch_up_all(targets).await?;

        let cpu_time = || targets.iter().map(BenchTarget::cpu_time).sum::<Duration>();
        let before = cpu_time();
        let started = Instant::now();
        // Every call that was started is awaited, so that CPU time and calls match.
        let measured = self.drive_clients(warm.connections, self.duration).await?;
        let elapsed = started.elapsed();
        self.catch_up_all(targets).await?;
        let cpu = cpu_time().saturating_sub(before);

        try_join_all(measured.connections.into_iter().map(McpConnection::close)).await?;
        Ok(LoadSample::new(measured.latencies, elapsed, cpu))
    }

    async fn catch_up_all(&self, targets: &[BenchTarget]) -> anyhow::Result<()> {
        for target in targets {
            self.catch_up(target).await?;
        }
        Ok(())
    }

    /// Waits until a target has finished its deferred work, so that its CPU time includes all calls.
    async fn catch_up(&self, target: &BenchTarget) -> anyhow::Result<()> {
        /// Longer than the interval in which the gateway sends batches.
        const QUIET_TIME: Duration = Duration::from_millis(1200);
        /// CPU time of an idle gateway in that time, for reloading keys and files.
        const IDLE_CPU_TIME: Duration = Duration::from_millis(5);
        const CATCH_UP_LIMIT: Duration = Duration::from_secs(60);
        // Cells of tenths of a second are for the test of the bench only, so a short wait is enough.
        let quiet_time = QUIET_TIME.min(2 * self.duration);
        if !target.defers_work {
            return Ok(());
        }
        let started = Instant::now();
        loop {
            let before = target.cpu_time();
            tokio::time::sleep(quiet_time).await;
            if target.cpu_time().saturating_sub(before) < IDLE_CPU_TIME {
                return Ok(());
            }
            ensure!(started.elapsed() < CATCH_UP_LIMIT, "still busy {CATCH_UP_LIMIT:?} after the last call");
        }
    }

    async fn drive_clients(
        &self,
        connections: Vec<McpConnection>,
        duration: Duration,
    ) -> anyhow::Result<LoadResult> {
        let until = Instant::now() + duration;
        let clients = connections.into_iter().enumerate();
        let clients = clients
            .map(|(client, connection)| tokio::spawn(drive_client(connection, client, self.work, until)));
        let mut result = LoadResult { connections: Vec::new(), latencies: Vec::new() };
        for task in clients.collect::<Vec<_>>() {
            let (connection, latencies) = task.await??;
            result.connections.push(connection);
            result.latencies.extend(latencies);
        }
        Ok(result)
    }
}

struct LoadResult {
    connections: Vec<McpConnection>,
    latencies: Vec<Duration>,
}

/// Sends requests until the time is over, at least one.
async fn drive_client(
    mut connection: McpConnection,
    client: usize,
    work: RequestKind,
    until: Instant,
) -> anyhow::Result<(McpConnection, Vec<Duration>)> {
    let mut latencies = Vec::new();
    connection.take_wait_time(); // reset after the handshake
    loop {
        work.send(&mut connection, &format!("{client}-{}", latencies.len())).await?;
        latencies.push(connection.take_wait_time());
        if Instant::now() >= until {
            return Ok((connection, latencies));
        }
    }
}

impl RequestKind {
    async fn send(self, connection: &mut McpConnection, unique: &str) -> anyhow::Result<()> {
        match self {
            RequestKind::Call => connection.call_echo(unique).await,
            RequestKind::Post => connection.post_echo(unique).await,
            RequestKind::Large(message) => message.send(connection, unique).await,
            RequestKind::List(tools) => {
                let listing = connection.list().await?;
                ensure!(listing.tools == tools, "listed {} tools of {tools}", listing.tools);
                Ok(())
            }
        }
    }
}

/// Waits until a target lists all tools of its upstream, and returns the size of that list in bytes.
///
/// A gateway may respond before its upstream is connected, with a shorter list.
pub(super) async fn first_list(target: &BenchTarget, tools: usize) -> anyhow::Result<usize> {
    /// Long enough for a gateway with thousands of tools under valgrind.
    const LIST_TIMEOUT: Duration = Duration::from_secs(120);
    let started = Instant::now();
    let mut connection = target.connect(McpEra::Modern).await?;
    loop {
        let listing = connection.list().await?;
        if listing.tools == tools {
            return Ok(listing.bytes);
        }
        ensure!(
            started.elapsed() < LIST_TIMEOUT,
            "{} tools of {tools} after {LIST_TIMEOUT:?}",
            listing.tools
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
