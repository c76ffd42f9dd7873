//! A program that was started, and all that it started in turn.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::processes::Entry;

/// A running program. Dropping it ends the program and all that it started: a supervisor gives them a second to
/// leave when told to (SIGTERM), and without one they are killed at once.
pub struct Child {
    state: watch::Receiver<State>,
    /// Whatever ends the program when this is dropped.
    hold: Option<Hold>,
    /// The task that sees to the state.
    _watcher: JoinSet<()>,
    /// Its line in the list.
    pub(crate) entry: Option<Entry>,
}

/// The end of a program, for those who do not hold it.
#[derive(Clone, Debug)]
pub struct Ending(watch::Receiver<State>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    Running,
    /// The program has ended. What it started may still run.
    Ended(ExitStatus),
    /// Nothing is left; of the program's end it may not be known how it came.
    Gone(Option<ExitStatus>),
}

pub(crate) enum Hold {
    /// What a supervisor watches. All that it does when this is closed, it also does when we are killed.
    Supervisor {
        control: OwnedWriteHalf,
    },
    Group(Group),
}

/// A process group. Dropping it kills it, also where the leader has ended already: those whom it started are
/// still in its group.
pub(crate) struct Group(pub(crate) Pid);

/// How much longer than the end of a tree may take the system is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

impl Child {
    pub(crate) fn new(
        hold: Hold,
        state: watch::Receiver<State>,
        watcher: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(watcher);
        Self { state, hold: Some(hold), _watcher: tasks, entry: None }
    }

    /// To be told of the program's end.
    #[must_use]
    pub fn ending(&self) -> Ending {
        Ending(self.state.clone())
    }

    /// Ends the program as MCP asks for (2026-07-28, basic/transports/stdio, shutdown), and all that it started.
    /// The caller has closed its standard input: it gets `grace` to leave, then SIGTERM and some time again, then
    /// SIGKILL.
    pub async fn end(mut self, grace: Duration) {
        let _in_time = timeout(grace, self.ending().wait()).await;
        match self.hold.take() {
            Some(Hold::Supervisor { control }) => {
                drop(control);
                if timeout(PATIENCE, self.gone()).await.is_err() {
                    tracing::warn!("processes that were killed do not end: the system holds them");
                }
            }
            Some(Hold::Group(group)) => {
                group.signal(Signal::TERM);
                let _in_time = timeout(grace, self.gone()).await;
            }
            None => {}
        }
    }

    /// Kills the program and all that it started, at once and without asking them to leave. What there was is gone
    /// a moment later: [`ending`](Self::ending) tells.
    pub fn kill(&self) {
        match &self.hold {
            // One byte is all that is ever said to a supervisor. Where it cannot be said, it is gone already.
            Some(Hold::Supervisor { control }) => drop(control.try_write(&[0])),
            Some(Hold::Group(group)) => group.signal(Signal::KILL),
            None => {}
        }
    }

    /// The process ids of the program and of all that it started, as far as they are known now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.entry.as_ref().map(Entry::processes).unwrap_or_default()
    }

    async fn gone(&self) {
        // A watcher that is gone has no more to tell.
        let _gone = self.state.clone().wait_for(|state| matches!(state, State::Gone(_))).await.map(drop);
    }
}

impl Ending {
    /// Waits until the program has ended, whatever may still hold its pipes; says how it ended, where that is
    /// known. Once it has ended this says so again and again.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        match self.0.wait_for(|state| !matches!(state, State::Running)).await.as_deref() {
            Ok(State::Ended(status)) => Some(*status),
            Ok(State::Gone(status)) => *status,
            Ok(State::Running) | Err(_) => None,
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

impl Group {
    pub(crate) fn of(child: &tokio::process::Child) -> io::Result<Self> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        id.map(Self).ok_or_else(|| io::Error::other("it has no process id"))
    }

    fn signal(&self, signal: Signal) {
        // The group is gone when nobody is left in it, which is what a signal is sent for.
        let _gone = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
