//! What happens with one fault.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::Signal;
use tokio::time::timeout;

use super::Plan;
use super::fault::Fault;
use super::load::{Callers, Tally, await_answer, call_all};
use super::status::{await_ready, kill_often};
use super::yard::{FAULTY, Gateway, Yard, good_tools};
use crate::measure::{Memory, cpu_time_of, memory_of};
use crate::process::START_LIMIT;

/// How long a handler may take to be back. The gateway's longest pause between two attempts is half of it.
pub(super) const RECOVERY_LIMIT: Duration = Duration::from_secs(60);

/// What was seen of one fault.
pub(super) struct Row {
    pub fault: Fault,
    /// How often it has shown.
    pub shown: u64,
    /// The calls of the good servers.
    pub good: Tally,
    /// The calls of the faulty one.
    pub faulty: Tally,
    /// How long it took until the server answered again after it was a good one, if it did; after the gateway's
    /// start, where the fault is in how the server begins.
    pub recovered: Option<Duration>,
    /// The gateway's, without its servers.
    pub memory: Memory,
    /// The gateway's, without its servers, from its start.
    pub cpu: Duration,
    /// Bytes of the gateway's log.
    pub logged: u64,
    /// Processes of servers after the gateway was told to end.
    pub left_by_term: usize,
    /// Processes of servers after the gateway was killed while the server was faulty.
    pub left_by_kill: usize,
}

/// Puts the gateway in front of a server with this fault.
pub(super) async fn fight(fault: Fault, plan: &Plan, binary: &Path) -> anyhow::Result<Row> {
    let mut yard = Yard::open(fault, binary)?;
    let started = Instant::now();
    if fault.is_of_the_start() {
        yard.hurt()?;
    }
    let gateway = yard.start_gateway().await?;
    if !fault.is_of_the_start() {
        await_answer(gateway.address, FAULTY, START_LIMIT).await?;
        yard.hurt()?;
    }
    let mut callers = Callers::start(gateway.address, FAULTY);
    let killer = (fault == Fault::Kill).then(|| tokio::spawn(kill_often(gateway.address, yard.switch())));
    let tools = good_tools();
    let calls = call_all(gateway.address, &tools, plan.calls, plan.time);
    let (good, shown, recovered) = if fault.is_of_the_start() {
        let (good, recovered) = tokio::join!(calls, recovery(&gateway, &mut callers, started));
        (good?, yard.shown(), recovered)
    } else {
        let good = calls.await?;
        if let Some(killer) = killer {
            killer.abort();
        }
        let shown = yard.shown();
        yard.mend()?;
        (good, shown, recovery(&gateway, &mut callers, Instant::now()).await)
    };
    let faulty = callers.stop().await?;
    let (pid, logged) = ([gateway.pid()], yard.logged());
    let (memory, cpu) = (memory_of(&pid), cpu_time_of(&pid));
    let left_by_term = yard.end(gateway, Signal::TERM).context("SIGTERM")?;
    let left_by_kill = kill_amid(&mut yard, fault).await?;
    Ok(Row { fault, shown, good, faulty, recovered, memory, cpu, logged, left_by_term, left_by_kill })
}

/// Waits until a client is answered and the status agrees. Says how long it took the client.
async fn recovery(gateway: &Gateway, callers: &mut Callers, since: Instant) -> Option<Duration> {
    let recovery = async {
        callers.answered_since(since).await?;
        let took = since.elapsed();
        await_ready(gateway.address).await?;
        anyhow::Ok(took)
    };
    timeout(RECOVERY_LIMIT, recovery).await.ok()?.ok()
}

/// Kills a gateway whose server is faulty from the start, and counts what is left.
async fn kill_amid(yard: &mut Yard, fault: Fault) -> anyhow::Result<usize> {
    if !fault.is_of_the_start() {
        yard.hurt()?;
    }
    let gateway = yard.start_gateway().await?;
    yard.end(gateway, Signal::KILL)
}
