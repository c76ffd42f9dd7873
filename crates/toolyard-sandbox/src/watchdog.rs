//! Who looks at the memory and the number of processes of a tree where no cgroup limits them. It looks, and looks
//! again: what grows faster than it looks overshoots, up to the limit of each process.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use toolyard_process::Child;

use crate::cgroup::Quota;

/// The shortest time between two looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// At most one part in so many of the time is spent on looking.
const SHARE: u32 = 10;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trespass {
    Memory,
    Processes,
}

#[derive(Debug)]
pub(crate) struct Watchdog {
    found: Arc<AtomicU8>,
    _task: JoinSet<()>,
}

impl Watchdog {
    pub(crate) fn start(child: Arc<Child>, quota: Quota) -> Self {
        let found = Arc::<AtomicU8>::default();
        let mut task = JoinSet::new();
        task.spawn(watch(child, quota, found.clone()));
        Self { found, _task: task }
    }

    pub(crate) fn found(&self) -> Option<Trespass> {
        match self.found.load(Ordering::Relaxed) {
            1 => Some(Trespass::Memory),
            2 => Some(Trespass::Processes),
            _ => None,
        }
    }
}

async fn watch(child: Arc<Child>, quota: Quota, found: Arc<AtomicU8>) {
    let mut ending = child.ending();
    let look = async {
        loop {
            let began = Instant::now();
            if let Some(trespass) = look(&child.processes(), &quota) {
                found.store(if trespass == Trespass::Memory { 1 } else { 2 }, Ordering::Relaxed);
                child.kill();
                return;
            }
            sleep(INTERVAL.max(began.elapsed() * SHARE)).await;
        }
    };
    tokio::select! {
        () = look => {}
        _ = ending.wait() => {}
    }
}

fn look(processes: &[u32], quota: &Quota) -> Option<Trespass> {
    // Two are above the program.
    if processes.len() > quota.processes as usize + 2 {
        return Some(Trespass::Processes);
    }
    let memory = memory(processes).unwrap_or_default();
    (memory > quota.memory_bytes).then_some(Trespass::Memory)
}

/// Memory of these processes, what they share counted once; `None` where the system does not tell.
pub(crate) fn memory(processes: &[u32]) -> Option<u64> {
    processes.iter().filter_map(|pid| share(*pid).or_else(|| resident(*pid))).reduce(|sum, bytes| sum + bytes)
}

/// Its part of what it shares, and all that it does not.
fn share(pid: u32) -> Option<u64> {
    kib(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, &["Pss:"])
}

/// What every user may know of a process: what is shared is counted for each.
fn resident(pid: u32) -> Option<u64> {
    kib(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, &["RssAnon:", "RssShmem:"])
}

fn kib(text: &str, names: &[&str]) -> Option<u64> {
    let value = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        names.contains(&name).then(|| value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(value).reduce(|sum, kib| sum + kib).map(|kib| kib * 1024)
}
