//! A program that runs in a sandbox.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use toolyard_process::{ChildProcess, ExitHandle};

use crate::cgroup::{CgroupSlot, ResourceQuota, SlotLease};
use crate::confine::refusal_reason;
use crate::home::HomeFolder;
use crate::users::UserLease;
use crate::watchdog::{self, MemoryWatch, ProcessWatchdog, QuotaViolation};

/// A program that runs in a sandbox. Dropping it kills the program and its descendants.
#[derive(Debug)]
pub struct SandboxedProcess {
    watchdog: Option<ProcessWatchdog>,
    killed: Arc<AtomicU8>,
    child: Arc<ChildProcess>,
    /// Channel on which the helper reports the start of the program.
    channel: UnixStream,
    refusal: OnceLock<Option<String>>,
    slot_lease: SlotLease,
    _home: HomeFolder,
    _user_lease: UserLease,
}

/// Outcome of a sandboxed program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxOutcome {
    /// The program exited with this status.
    Exited(i32),
    /// A signal that the gateway did not send terminated the program.
    Signalled(i32),
    /// The processes exceeded the memory limit, and the system killed some or all of them.
    OutOfMemory,
    /// The watchdog found more processes than the limit. Occurs only without the pids cgroup.
    TooManyProcesses,
    /// [`SandboxedProcess::kill`] was called.
    Killed,
    /// The program never started: an isolation layer could not be set up, or the program does not exist. Standard
    /// error has the reason, and so has [`SandboxedProcess::refusal_reason`].
    Refused,
    /// The supervisor ended, and the outcome is not known.
    Unknown,
}

pub(crate) struct SandboxedProcessParts {
    pub(crate) child: ChildProcess,
    /// Non-blocking socket to the helper.
    pub(crate) channel: UnixStream,
    pub(crate) slot_lease: SlotLease,
    pub(crate) user_lease: UserLease,
    pub(crate) home: HomeFolder,
    pub(crate) quota: ResourceQuota,
    /// Memory watch, if no cgroup limits memory and processes.
    pub(crate) watch: Option<Arc<MemoryWatch>>,
}

impl SandboxedProcess {
    pub(crate) fn new(parts: SandboxedProcessParts) -> Self {
        let SandboxedProcessParts { child, channel, slot_lease: lent, user_lease: lease, home, quota, watch } =
            parts;
        let child = Arc::new(child);
        let watchdog = watch.map(|watch| ProcessWatchdog::start(child.clone(), quota, watch));
        let refused = OnceLock::new();
        Self {
            watchdog,
            killed: Arc::default(),
            child,
            channel,
            refusal: refused,
            slot_lease: lent,
            _home: home,
            _user_lease: lease,
        }
    }

    /// Returns a handle that waits for the end of the program.
    #[must_use]
    pub fn ending(&self) -> ExitHandle {
        self.child.exit_handle()
    }

    /// Kills the program and its descendants.
    pub fn kill(&self) {
        self.killed.store(1, Ordering::Relaxed);
        if let Some(slot) = self.slot_lease.slot() {
            slot.kill();
        }
        self.child.kill();
    }

    /// Waits for the end of the program and returns its outcome.
    pub async fn outcome(&self) -> SandboxOutcome {
        let status = self.ending().wait().await;
        let trespass = self.watchdog.as_ref().and_then(ProcessWatchdog::violation);
        if self.slot_lease.slot().is_some_and(CgroupSlot::ran_out_of_memory)
            || trespass == Some(QuotaViolation::Memory)
        {
            return SandboxOutcome::OutOfMemory;
        }
        match status {
            _ if trespass == Some(QuotaViolation::Processes) => SandboxOutcome::TooManyProcesses,
            _ if self.killed.load(Ordering::Relaxed) != 0 => SandboxOutcome::Killed,
            Some(_) if self.is_refused() => SandboxOutcome::Refused,
            Some(status) => outcome_of_status(status),
            None => SandboxOutcome::Unknown,
        }
    }

    /// True if the program never started. Valid only after the program's end.
    fn is_refused(&self) -> bool {
        self.refusal.get_or_init(|| refusal_reason(&self.channel)).is_some()
    }

    /// Returns the reason of a [`SandboxOutcome::Refused`].
    #[must_use]
    pub fn refusal_reason(&self) -> Option<&str> {
        self.refusal.get()?.as_deref()
    }

    /// Memory in use by the processes, in bytes; `None` if the system does not report it.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let counted = self.slot_lease.slot().and_then(CgroupSlot::memory_bytes);
        counted.or_else(|| watchdog::memory_bytes(&self.child.processes()))
    }
}

fn outcome_of_status(status: ExitStatus) -> SandboxOutcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => SandboxOutcome::Exited(code),
        (None, Some(signal)) => SandboxOutcome::Signalled(signal),
        (None, None) => SandboxOutcome::Unknown,
    }
}

impl Drop for SandboxedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
