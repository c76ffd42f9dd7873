//! The load: as many connections as calls are in flight, each of which asks again as soon as it is answered.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;

use super::sample::Sample;
use super::targets::Target;
use crate::client::{Connection, Era};
use crate::measure;

/// What is asked of a target.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub era: Era,
    pub in_flight: usize,
    pub duration: Duration,
    pub work: Work,
}

/// What each request is.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A call of `echo` with a text of its own.
    Call,
    /// The same as a plain request.
    Post,
    /// A whole list of so many tools.
    List(usize),
}

impl Load {
    /// Puts the load on a target and measures, once it has warmed up. A wrong reply is an error.
    pub(super) async fn measure(&self, target: &Target) -> anyhow::Result<Sample> {
        let sample = self.try_measure(target).await;
        sample.with_context(|| format!("{} with {} in flight", target.name, self.in_flight))
    }

    async fn try_measure(&self, target: &Target) -> anyhow::Result<Sample> {
        let opening = (0..self.in_flight).map(|_| target.connect(self.era));
        let connections = try_join_all(opening).await?;
        let warm = self.drive(connections, self.duration / 5).await?;
        self.catch_up(target).await?;

        let before = measure::cpu_time(target.pid());
        let begun = Instant::now();
        // Every call that was begun is awaited, so that the CPU time and the calls it was used for agree.
        let done = self.drive(warm.connections, self.duration).await?;
        let elapsed = begun.elapsed();
        self.catch_up(target).await?;
        let cpu = measure::cpu_time(target.pid()).saturating_sub(before);

        try_join_all(done.connections.into_iter().map(Connection::close)).await?;
        Ok(Sample::new(done.latencies, elapsed, cpu))
    }

    /// Waits until a target has done what it put off: then the CPU time that it has used is that of all calls until now.
    async fn catch_up(&self, target: &Target) -> anyhow::Result<()> {
        /// Longer than the gateway waits before it sends what has come together.
        const SILENCE: Duration = Duration::from_millis(1200);
        /// What it uses meanwhile for looking after keys and files.
        const AT_REST: Duration = Duration::from_millis(5);
        const PATIENCE: Duration = Duration::from_secs(60);
        // Of tenths of seconds nobody wants figures, but an end.
        let silence = SILENCE.min(2 * self.duration);
        if !target.puts_off {
            return Ok(());
        }
        let begun = Instant::now();
        loop {
            let before = measure::cpu_time(target.pid());
            tokio::time::sleep(silence).await;
            if measure::cpu_time(target.pid()).saturating_sub(before) < AT_REST {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "still busy {PATIENCE:?} after the last call");
        }
    }

    async fn drive(&self, connections: Vec<Connection>, duration: Duration) -> anyhow::Result<Driven> {
        let until = Instant::now() + duration;
        let lanes = connections.into_iter().enumerate();
        let lanes =
            lanes.map(|(lane, connection)| tokio::spawn(drive_lane(connection, lane, self.work, until)));
        let mut driven = Driven { connections: Vec::new(), latencies: Vec::new() };
        for lane in lanes.collect::<Vec<_>>() {
            let (connection, latencies) = lane.await??;
            driven.connections.push(connection);
            driven.latencies.extend(latencies);
        }
        Ok(driven)
    }
}

struct Driven {
    connections: Vec<Connection>,
    latencies: Vec<Duration>,
}

/// Asks until the time is over, and once at least.
async fn drive_lane(
    mut connection: Connection,
    lane: usize,
    work: Work,
    until: Instant,
) -> anyhow::Result<(Connection, Vec<Duration>)> {
    let mut latencies = Vec::new();
    connection.take_waited(); // what opening it took
    loop {
        work.ask(&mut connection, &format!("{lane}-{}", latencies.len())).await?;
        latencies.push(connection.take_waited());
        if Instant::now() >= until {
            return Ok((connection, latencies));
        }
    }
}

impl Work {
    async fn ask(self, connection: &mut Connection, unique: &str) -> anyhow::Result<()> {
        match self {
            Work::Call => connection.call_echo(unique).await,
            Work::Post => connection.post_echo(unique).await,
            Work::List(tools) => {
                let listing = connection.list().await?;
                ensure!(listing.tools == tools, "listed {} tools of {tools}", listing.tools);
                Ok(())
            }
        }
    }
}

/// Waits until a target lists as many tools as its upstream has, and gives the size of that list in bytes.
///
/// A gateway may answer before its upstream is connected: with a shorter list, which is asked for again.
pub(super) async fn first_list(target: &Target, tools: usize) -> anyhow::Result<usize> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let begun = Instant::now();
    let mut connection = target.connect(Era::Modern).await?;
    loop {
        let listing = connection.list().await?;
        if listing.tools == tools {
            return Ok(listing.bytes);
        }
        ensure!(begun.elapsed() < PATIENCE, "{} tools of {tools} after {PATIENCE:?}", listing.tools);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
