//! A running program and its descendants.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::process_table::ProcessEntry;

/// A running program. Dropping it ends the program and all its descendants: a supervisor sends them SIGTERM and gives
/// them one second to exit; without a supervisor they are killed at once.
pub struct ChildProcess {
    state: watch::Receiver<ChildState>,
    /// Ends the program when it is dropped.
    hold: Option<TerminationHandle>,
    /// The task that updates the state.
    _watcher: JoinSet<()>,
    /// The entry in the process table.
    pub(crate) entry: Option<ProcessEntry>,
}

/// Observes the exit of a program without owning it.
#[derive(Clone, Debug)]
pub struct ExitHandle(watch::Receiver<ChildState>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum ChildState {
    Running,
    /// The program has exited. Its descendants may still run.
    Ended(ExitStatus),
    /// No process is left. The exit status of the program may be unknown.
    Gone(Option<ExitStatus>),
}

pub(crate) enum TerminationHandle {
    /// The control socket of a supervisor. The supervisor ends the program when it is closed, also if the gateway is
    /// killed.
    Supervisor {
        control: OwnedWriteHalf,
    },
    Group(ProcessGroup),
}

/// A process group. Dropping it kills the group, even if its leader has exited already: its descendants are still in
/// the group.
pub(crate) struct ProcessGroup(pub(crate) Pid);

/// Time to wait for the end of killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

impl ChildProcess {
    pub(crate) fn new(
        hold: TerminationHandle,
        state: watch::Receiver<ChildState>,
        watcher: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(watcher);
        Self { state, hold: Some(hold), _watcher: tasks, entry: None }
    }

    /// Returns a handle to wait for the exit of the program.
    #[must_use]
    pub fn exit_handle(&self) -> ExitHandle {
        ExitHandle(self.state.clone())
    }

    /// Ends the program and all its descendants as MCP specifies (2026-07-28, basic/transports/stdio, shutdown). The
    /// caller has closed its standard input: the program gets `grace` to exit, then SIGTERM and some time again, then
    /// SIGKILL.
    pub async fn shut_down(mut self, grace: Duration) {
        let _in_time = timeout(grace, self.exit_handle().wait()).await;
        match self.hold.take() {
            Some(TerminationHandle::Supervisor { control }) => {
                drop(control);
                if timeout(KILL_TIMEOUT, self.wait_until_gone()).await.is_err() {
                    tracing::warn!("killed processes do not exit: the system blocks them");
                }
            }
            Some(TerminationHandle::Group(group)) => {
                group.signal(Signal::TERM);
                let _in_time = timeout(grace, self.wait_until_gone()).await;
            }
            None => {}
        }
    }

    /// Kills the program and all its descendants at once, without SIGTERM. They are gone a moment later: see
    /// [`exit_handle`](Self::exit_handle).
    pub fn kill(&self) {
        match &self.hold {
            // A single byte is the only message to a supervisor. If it cannot be written, the supervisor is gone
            // already.
            Some(TerminationHandle::Supervisor { control }) => drop(control.try_write(&[0])),
            Some(TerminationHandle::Group(group)) => group.signal(Signal::KILL),
            None => {}
        }
    }

    /// The process ids of the program and its descendants that are currently known.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.entry.as_ref().map(ProcessEntry::processes).unwrap_or_default()
    }

    async fn wait_until_gone(&self) {
        // A watcher that is gone sends no more states.
        let _gone = self.state.clone().wait_for(|state| matches!(state, ChildState::Gone(_))).await.map(drop);
    }
}

impl ExitHandle {
    /// Waits until the program has exited, even if another process holds its pipes; returns its status, if known.
    /// Further calls return the same result.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        match self.0.wait_for(|state| !matches!(state, ChildState::Running)).await.as_deref() {
            Ok(ChildState::Ended(status)) => Some(*status),
            Ok(ChildState::Gone(status)) => *status,
            Ok(ChildState::Running) | Err(_) => None,
        }
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

impl ProcessGroup {
    pub(crate) fn of(child: &tokio::process::Child) -> io::Result<Self> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        id.map(Self).ok_or_else(|| io::Error::other("the child has no process id"))
    }

    fn signal(&self, signal: Signal) {
        // Fails only if the group is empty, which is the desired result.
        let _gone = kill_process_group(self.0, signal);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
