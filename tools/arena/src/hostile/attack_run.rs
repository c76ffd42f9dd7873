//! The run of one attack, from the start of the gateway to its end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use xtask_support::measure::{anonymous_memory, cpu_time_of};
use xtask_support::process::pid_of;

use super::attacks::{AttackTarget, HostileClients};
use super::good_client::{GoodClient, GoodClientTally};
use super::report::IDLE_MEMORY_LIMIT;
use super::test_bed::AttackTestBed;
use super::{AttackStrength, HostileAttack};

/// Memory in KiB beyond which a gateway is killed, to protect the machine.
const KILL_LIMIT: u64 = 1 << 20;

/// Maximum time until the first attempt, on a busy machine.
const FIRST_ATTEMPT_LIMIT: Duration = Duration::from_secs(60);

/// Maximum time until the gateway has released the memory of the attack: longer than `HOLD_TIME`.
const RETURN_LIMIT: Duration = Duration::from_secs(20);

/// Time without growth after which the memory counts as stable.
const STABLE_TIME: Duration = Duration::from_secs(1);

/// Time between two measurements of the memory.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The measurements of one attack.
pub(super) struct AttackRow {
    pub attack: HostileAttack,
    /// Attempts of the hostile clients that got as far as intended.
    pub completed: usize,
    /// Attempts that the gateway refused or cut off.
    pub refused: usize,
    pub answers: GoodClientTally,
    /// Peak memory of the gateway, in KiB.
    pub peak: u64,
    /// Memory of the gateway after the attack, in KiB.
    pub idle: u64,
    pub cpu: Duration,
    /// `true` if the gateway ended properly on SIGTERM.
    pub terminated: bool,
}

/// Attacks a gateway that serves a good client.
pub(super) async fn run_attack(
    attack: HostileAttack,
    strength: AttackStrength,
    binary: &Path,
) -> anyhow::Result<AttackRow> {
    let test_bed = AttackTestBed::start(attack, strength, binary).await?;
    let guard = MemoryGuard::start(test_bed.pid());
    let good = GoodClient::start(&test_bed).await?;
    let clients = attack.clients(strength);
    let hostile =
        HostileClients::start(attack, clients, &AttackTarget::new(test_bed.gateway, &test_bed.hostile_key));
    wait_for(strength.start, || hostile.completed() + hostile.refused() >= clients).await;
    wait_for(FIRST_ATTEMPT_LIMIT, || hostile.completed() + hostile.refused() > 0).await;
    guard.wait_until_stable(strength.growth).await;
    let answers = good.finish().await?;
    let (completed, refused) = (hostile.completed(), hostile.refused());
    drop(hostile);
    wait_for(RETURN_LIMIT, || anonymous_memory(test_bed.pid()).resident <= IDLE_MEMORY_LIMIT).await;
    let (memory, cpu) = (anonymous_memory(test_bed.pid()), cpu_time_of(&[test_bed.pid()]));
    let peak = guard.peak().max(memory.peak);
    Ok(AttackRow {
        attack,
        completed,
        refused,
        answers,
        peak,
        idle: memory.resident,
        cpu,
        terminated: test_bed.terminate(),
    })
}

async fn wait_for(limit: Duration, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() && started.elapsed() < limit {
        sleep(POLL_INTERVAL).await;
    }
}

/// Watches the memory of a gateway, and kills the gateway if it takes too much.
struct MemoryGuard {
    peak: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl MemoryGuard {
    fn start(pid: u32) -> MemoryGuard {
        let peak = Arc::new(AtomicU64::new(0));
        let shared_peak = peak.clone();
        let task = tokio::spawn(async move {
            loop {
                let resident = anonymous_memory(pid).resident;
                shared_peak.fetch_max(resident, Ordering::Relaxed);
                if resident > KILL_LIMIT {
                    pid_of(pid).and_then(|pid| kill_process(pid, Signal::KILL).ok());
                }
                sleep(POLL_INTERVAL).await;
            }
        });
        MemoryGuard { peak, task }
    }

    /// Waits until the memory of the gateway is stable, for `limit` at most.
    async fn wait_until_stable(&self, limit: Duration) {
        let started = Instant::now();
        let (mut peak, mut last_growth) = (self.peak(), started);
        while last_growth.elapsed() < STABLE_TIME && started.elapsed() < limit {
            sleep(POLL_INTERVAL).await;
            if self.peak() > peak {
                (peak, last_growth) = (self.peak(), Instant::now());
            }
        }
    }

    /// Peak memory in KiB. The kernel loses its own figure when the gateway is killed.
    fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.task.abort();
    }
}
