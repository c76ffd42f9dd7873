//! The run of one fault.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::Signal;
use tokio::time::timeout;
use xtask_support::measure::{ProcessMemory, anonymous_memory, cpu_time_of};
use xtask_support::process::START_LIMIT;

use super::ArenaPlan;
use super::fault::ServerFault;
use super::fault_test_bed::{FAULTY, FaultTestBed, GatewayProcess, good_tools};
use super::load::{CallTally, LoadClients, await_answer, call_all};
use super::status::{await_ready, kill_repeatedly};

/// Maximum time until a handler has recovered. The gateway's longest delay between two attempts is half of it.
pub(super) const RECOVERY_LIMIT: Duration = Duration::from_secs(60);

/// The measurements of one fault.
pub(super) struct FaultRow {
    pub fault: ServerFault,
    /// Number of times the fault occurred.
    pub occurrences: u64,
    /// Calls to the good servers.
    pub good: CallTally,
    /// Calls to the faulty server.
    pub faulty: CallTally,
    /// Time from the removal of the fault to the first response; from the start of the gateway if the fault affects
    /// the start of the server. `None` if the server did not recover.
    pub recovery_time: Option<Duration>,
    /// Memory of the gateway without its servers.
    pub memory: ProcessMemory,
    /// CPU time of the gateway since its start, without its servers.
    pub cpu: Duration,
    /// Size of the log of the gateway, in bytes.
    pub log_bytes: u64,
    /// Number of server processes left after SIGTERM to the gateway.
    pub left_after_term: usize,
    /// Number of server processes left after SIGKILL to the gateway while the server was faulty.
    pub left_after_kill: usize,
}

/// Runs the gateway in front of a server with this fault.
pub(super) async fn run_fault(
    fault: ServerFault,
    plan: &ArenaPlan,
    binary: &Path,
) -> anyhow::Result<FaultRow> {
    let mut test_bed = FaultTestBed::start(fault, binary)?;
    let started = Instant::now();
    if fault.affects_startup() {
        test_bed.inject_fault()?;
    }
    let gateway = test_bed.start_gateway().await?;
    if !fault.affects_startup() {
        await_answer(gateway.address, FAULTY, START_LIMIT).await?;
        test_bed.inject_fault()?;
    }
    let mut callers = LoadClients::start(gateway.address, FAULTY);
    let killer = (fault == ServerFault::Kill)
        .then(|| tokio::spawn(kill_repeatedly(gateway.address, test_bed.switch())));
    let tools = good_tools();
    let calls = call_all(gateway.address, &tools, plan.calls, plan.time);
    let (good, shown, recovery_time) = if fault.affects_startup() {
        let (good, recovery_time) = tokio::join!(calls, measure_recovery(&gateway, &mut callers, started));
        (good?, test_bed.occurrences(), recovery_time)
    } else {
        let good = calls.await?;
        if let Some(killer) = killer {
            killer.abort();
        }
        let occurrences = test_bed.occurrences();
        test_bed.remove_fault()?;
        (good, occurrences, measure_recovery(&gateway, &mut callers, Instant::now()).await)
    };
    let faulty = callers.stop().await?;
    let (pid, log_bytes) = (gateway.pid(), test_bed.log_bytes());
    let (memory, cpu) = (anonymous_memory(pid), cpu_time_of(&[pid]));
    let left_after_term = test_bed.terminate(gateway, Signal::TERM).context("SIGTERM")?;
    let left_after_kill = kill_while_faulty(&mut test_bed, fault).await?;
    Ok(FaultRow {
        fault,
        occurrences: shown,
        good,
        faulty,
        recovery_time,
        memory,
        cpu,
        log_bytes,
        left_after_term,
        left_after_kill,
    })
}

/// Waits until a client gets a response and the status agrees; returns the time of the response.
async fn measure_recovery(
    gateway: &GatewayProcess,
    callers: &mut LoadClients,
    since: Instant,
) -> Option<Duration> {
    let recovery = async {
        callers.answered_since(since).await?;
        let elapsed = since.elapsed();
        await_ready(gateway.address, FAULTY, None).await?;
        anyhow::Ok(elapsed)
    };
    timeout(RECOVERY_LIMIT, recovery).await.ok()?.ok()
}

/// Kills a gateway whose server is faulty from the start, and counts the remaining processes.
async fn kill_while_faulty(test_bed: &mut FaultTestBed, fault: ServerFault) -> anyhow::Result<usize> {
    if !fault.affects_startup() {
        test_bed.inject_fault()?;
    }
    let gateway = test_bed.start_gateway().await?;
    test_bed.terminate(gateway, Signal::KILL)
}
