//! Watchdog for the memory and the number of processes of a tree that no cgroup limits. It polls, so a tree that grows
//! faster than the interval exceeds the limit for a moment, up to the limit of each process.
//!
//! It counts the resident memory of the processes, and for each socket the size of its buffers. Other kernel memory of
//! a sandbox shows only in the available memory of the machine ([`MemoryWatch`]).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use toolyard_process::ChildProcess;

use crate::cgroup::ResourceQuota;

/// Minimum time between two checks.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Ratio of idle time to the time spent on checks.
const IDLE_FACTOR: u32 = 10;

/// Time for the system to free the memory of a killed sandbox before the next one is killed.
const RECOVERY_TIME: Duration = Duration::from_millis(500);

/// Buffer size of a socket if the system does not report it, in bytes.
const DEFAULT_SOCKET_BYTES: u64 = 208 << 10;

/// Exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaViolation {
    Memory,
    Processes,
}

#[derive(Debug)]
pub(crate) struct ProcessWatchdog {
    violation: Arc<AtomicU8>,
    _task: JoinSet<()>,
}

/// All watched sandboxes, and the available memory of the machine.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    /// Available memory below which the largest sandbox is killed, in bytes.
    least_available_bytes: u64,
    /// The sockets of this machine, read with the first sandbox.
    sockets: OnceLock<SocketFacts>,
    sandboxes: Mutex<WatchedSandboxes>,
}

/// Properties of the sockets of this machine.
#[derive(Debug)]
struct SocketFacts {
    /// Buffer size of a socket in bytes.
    bytes: u64,
    /// Mount id of their file system.
    mount: u64,
}

impl SocketFacts {
    fn read() -> Self {
        let text = fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap_or_default();
        let bytes = text.trim().parse().unwrap_or(DEFAULT_SOCKET_BYTES);
        Self { bytes, mount: socket_mount_id().unwrap_or_default() }
    }
}

#[derive(Debug, Default)]
struct WatchedSandboxes {
    next_id: u64,
    /// Memory of each sandbox at its last check, in bytes.
    bytes: HashMap<u64, u64>,
    /// Time of the last kill because of low memory on the machine.
    killed: Option<Instant>,
}

/// Registration of a watched sandbox.
struct WatchEntry {
    watch: Arc<MemoryWatch>,
    number: u64,
}

impl MemoryWatch {
    pub(crate) fn new(least_available_bytes: u64) -> Self {
        Self { least_available_bytes, sockets: OnceLock::new(), sandboxes: Mutex::default() }
    }

    fn register(self: Arc<Self>) -> WatchEntry {
        let id = {
            let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
            sandboxes.next_id += 1;
            let number = sandboxes.next_id;
            sandboxes.bytes.insert(number, 0);
            number
        };
        WatchEntry { watch: self, number: id }
    }
}

impl WatchEntry {
    /// Records the memory of the sandbox. Returns true if the machine is low on memory and this is the largest sandbox.
    fn must_be_killed(&self, bytes: u64, available: Option<u64>, now: Instant) -> bool {
        let mut sandboxes = self.watch.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        sandboxes.bytes.insert(self.number, bytes);
        let is_low = available.is_some_and(|available| available < self.watch.least_available_bytes);
        let is_recovering = sandboxes.killed.is_some_and(|killed| now.duration_since(killed) < RECOVERY_TIME);
        let is_largest = sandboxes.bytes.values().all(|other| *other <= bytes);
        let goes = is_low && is_largest && !is_recovering;
        if goes {
            sandboxes.killed = Some(now);
        }
        goes
    }
}

impl Drop for WatchEntry {
    fn drop(&mut self) {
        let mut sandboxes = self.watch.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        sandboxes.bytes.remove(&self.number);
    }
}

impl ProcessWatchdog {
    pub(crate) fn start(child: Arc<ChildProcess>, quota: ResourceQuota, watch: Arc<MemoryWatch>) -> Self {
        let violation = Arc::<AtomicU8>::default();
        let mut task = JoinSet::new();
        task.spawn(watch_process(child, quota, watch.register(), violation.clone()));
        Self { violation, _task: task }
    }

    pub(crate) fn violation(&self) -> Option<QuotaViolation> {
        match self.violation.load(Ordering::Relaxed) {
            1 => Some(QuotaViolation::Memory),
            2 => Some(QuotaViolation::Processes),
            _ => None,
        }
    }
}

async fn watch_process(
    child: Arc<ChildProcess>,
    quota: ResourceQuota,
    entry: WatchEntry,
    violation: Arc<AtomicU8>,
) {
    let mut ending = child.exit_handle();
    let look = async {
        loop {
            let began = Instant::now();
            if let Some(trespass) = find_violation(&child.processes(), &quota, &entry) {
                violation.store(if trespass == QuotaViolation::Memory { 1 } else { 2 }, Ordering::Relaxed);
                child.kill();
                return;
            }
            sleep(MIN_INTERVAL.max(began.elapsed() * IDLE_FACTOR)).await;
        }
    };
    tokio::select! {
        () = look => {}
        _ = ending.wait() => {}
    }
}

fn find_violation(processes: &[u32], quota: &ResourceQuota, entry: &WatchEntry) -> Option<QuotaViolation> {
    // Two processes are above the program.
    if processes.len() > quota.processes as usize + 2 {
        return Some(QuotaViolation::Processes);
    }
    let SocketFacts { bytes, mount } = entry.watch.sockets.get_or_init(SocketFacts::read);
    let sockets = socket_count(processes, *mount).saturating_mul(*bytes);
    let memory = memory_bytes(processes).unwrap_or_default().saturating_add(sockets);
    let goes = entry.must_be_killed(memory, available_bytes(), Instant::now());
    (memory > quota.memory_bytes || goes).then_some(QuotaViolation::Memory)
}

/// Available memory of the machine, in bytes.
fn available_bytes() -> Option<u64> {
    sum_kib_fields(&fs::read_to_string("/proc/meminfo").ok()?, &["MemAvailable:"])
}

/// Number of sockets of these processes.
fn socket_count(processes: &[u32], mount: u64) -> u64 {
    let mut seen = HashSet::new();
    let mut hidden = 0_u64;
    for pid in processes {
        // Other users can read `fdinfo`, but not `fd`.
        match fs::read_dir(format!("/proc/{pid}/fdinfo")) {
            Ok(files) => seen.extend(files.flatten().filter_map(|file| socket_inode(&file.path(), mount))),
            // A process that is ending cannot be inspected either, but has no memory.
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied && resident_bytes(*pid).is_some() =>
            {
                hidden += 1
            }
            Err(_) => {}
        }
    }
    // Process 1 of a sandbox cannot be inspected. Any other such process counts with the maximum number of sockets.
    seen.len() as u64 + hidden.saturating_sub(1) * u64::from(crate::sandbox::UNCOUNTED_FILES)
}

/// Inode of a socket, recognised by the file system that all sockets are in.
fn socket_inode(info: &Path, mount: u64) -> Option<u64> {
    let text = fs::read_to_string(info).ok()?;
    (field_value(&text, "mnt_id:") == Some(mount)).then(|| field_value(&text, "ino:")).flatten()
}

/// Mount id of the file system of sockets.
fn socket_mount_id() -> io::Result<u64> {
    let (socket, _) = UnixStream::pair()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", socket.as_raw_fd()))?;
    field_value(&info, "mnt_id:").ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn field_value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Memory of these processes in bytes, shared pages counted once; `None` if the system does not report it.
pub(crate) fn memory_bytes(processes: &[u32]) -> Option<u64> {
    processes
        .iter()
        .filter_map(|pid| proportional_bytes(*pid).or_else(|| resident_bytes(*pid)))
        .reduce(|sum, bytes| sum + bytes)
}

/// Memory of a process with its proportion of shared pages, including swap.
fn proportional_bytes(pid: u32) -> Option<u64> {
    sum_kib_fields(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, &["Pss:", "SwapPss:"])
}

/// Memory of a process as every user may read it; shared pages count for each process.
fn resident_bytes(pid: u32) -> Option<u64> {
    let names = ["RssAnon:", "RssShmem:", "VmSwap:"];
    sum_kib_fields(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, &names)
}

fn sum_kib_fields(text: &str, names: &[&str]) -> Option<u64> {
    let value = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        names.contains(&name).then(|| value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(value).reduce(|sum, kib| sum + kib).map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_sandbox_is_killed_when_the_machine_is_low_on_memory() {
        let watch = Arc::new(MemoryWatch::new(100));
        let [small, large, other] = [(); 3].map(|()| watch.clone().register());
        let now = Instant::now();
        let check = |entry: &WatchEntry, bytes, available, now, expected: bool, why| {
            assert_eq!(entry.must_be_killed(bytes, available, now), expected, "{why}");
        };
        check(&large, 50, Some(100), now, false, "enough is left");
        check(&large, 50, None, now, false, "it is not known");
        check(&small, 20, Some(99), now, false, "another one has more");
        check(&other, 49, Some(99), now, false, "another one has more");
        check(&large, 50, Some(99), now, true, "it has most");
        drop(large);
        check(&other, 49, Some(99), now, false, "memory is being freed");
        check(&small, 20, Some(99), now + RECOVERY_TIME, false, "another one has more");
        check(&other, 49, Some(99), now + RECOVERY_TIME, true, "it has most, and it was not enough");
    }

    #[test]
    fn shared_sockets_are_counted_once() {
        let pair = std::os::unix::net::UnixStream::pair().unwrap();
        let copy = pair.0.try_clone().unwrap();
        let own = std::process::id();
        let mount = socket_mount_id().unwrap();
        let before = socket_count(&[own, own], mount);
        drop(copy);
        assert!(before >= 2);
        assert_eq!(socket_count(&[own], mount), before);
        drop(pair);
        assert_eq!(socket_count(&[own], mount), before - 2);
    }
}
