//! A program in its cell.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use toolyard_process::{Child, Ending};

use crate::cgroup::{Lent, Quota, Slot};
use crate::confine::why_refused;
use crate::home::Home;
use crate::watchdog::{self, Trespass, Watchdog};

/// A program that runs in a cell. Dropping it kills the program and all that it started.
#[derive(Debug)]
pub struct Confined {
    watchdog: Option<Watchdog>,
    killed: Arc<AtomicU8>,
    child: Arc<Child>,
    /// By which the helper says whether the program began.
    channel: UnixStream,
    refused: OnceLock<Option<String>>,
    lent: Lent,
    _home: Home,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal, which nobody of us sent.
    Signalled(i32),
    /// Its processes needed more memory than they have: the system killed some or all of them.
    OutOfMemory,
    /// It started more processes than it may, where only a look from outside finds that.
    TooManyProcesses,
    /// [`Confined::kill`] did it.
    Killed,
    /// It never began: a wall could not be put up, or there is no such program. What failed is on standard error,
    /// and [`Confined::why_refused`] says it.
    Refused,
    /// With its supervisor, and nobody knows how.
    Unknown,
}

pub(crate) struct Parts {
    pub(crate) child: Child,
    /// It never blocks.
    pub(crate) channel: UnixStream,
    pub(crate) lent: Lent,
    pub(crate) home: Home,
    pub(crate) quota: Quota,
    /// Whether somebody has to look at memory and processes.
    pub(crate) watched: bool,
}

impl Confined {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { child, channel, lent, home, quota, watched } = parts;
        let child = Arc::new(child);
        let watchdog = watched.then(|| Watchdog::start(child.clone(), quota));
        let refused = OnceLock::new();
        Self { watchdog, killed: Arc::default(), child, channel, refused, lent, _home: home }
    }

    /// To be told of the program's end.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.child.ending()
    }

    /// Kills the program and all that it started, at once.
    pub fn kill(&self) {
        self.killed.store(1, Ordering::Relaxed);
        if let Some(slot) = self.lent.slot() {
            slot.kill();
        }
        self.child.kill();
    }

    /// Waits for the program's end, and says how it came.
    pub async fn verdict(&self) -> Verdict {
        let status = self.ending().wait().await;
        let trespass = self.watchdog.as_ref().and_then(Watchdog::found);
        if self.lent.slot().is_some_and(Slot::ran_out_of_memory) || trespass == Some(Trespass::Memory) {
            return Verdict::OutOfMemory;
        }
        match status {
            _ if trespass == Some(Trespass::Processes) => Verdict::TooManyProcesses,
            _ if self.killed.load(Ordering::Relaxed) != 0 => Verdict::Killed,
            Some(_) if self.is_refused() => Verdict::Refused,
            Some(status) => of(status),
            None => Verdict::Unknown,
        }
    }

    /// Only once it has ended.
    fn is_refused(&self) -> bool {
        self.refused.get_or_init(|| why_refused(&self.channel)).is_some()
    }

    /// Why it never began, after [`Verdict::Refused`].
    #[must_use]
    pub fn why_refused(&self) -> Option<&str> {
        self.refused.get()?.as_deref()
    }

    /// Memory that its processes use now, in bytes; `None` where the system does not tell.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let counted = self.lent.slot().and_then(Slot::memory_bytes);
        counted.or_else(|| watchdog::memory(&self.child.processes()))
    }
}

fn of(status: ExitStatus) -> Verdict {
    match (status.code(), status.signal()) {
        (Some(code), _) => Verdict::Exited(code),
        (None, Some(signal)) => Verdict::Signalled(signal),
        (None, None) => Verdict::Unknown,
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.kill();
    }
}
