//! The table of running programs.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::process::Pid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::child::ChildProcess;
use crate::{ChildPipes, ProgramSpec, SpawnError, tree, unsupervised};

/// The way to start programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSpawner {
    /// Below a supervisor, which ends all descendants on request or when the gateway is gone.
    Supervised {
        /// A program that calls [`run_supervisor_if_requested`](crate::run_supervisor_if_requested) first in `main`.
        supervisor: PathBuf,
    },
    /// As direct children. Descendants that leave the process group are lost, and no process ends when the gateway is
    /// killed.
    Direct,
}

/// Starts programs, limits their number, and lists the running ones. Clones share the same table.
#[derive(Clone)]
pub struct ProcessTable {
    shared: Arc<ProcessRegistry>,
}

struct ProcessRegistry {
    spawner: ProcessSpawner,
    limit: usize,
    permits: Arc<Semaphore>,
    list: Mutex<ProcessList>,
}

#[derive(Default)]
struct ProcessList {
    running: BTreeMap<u64, RunningProcess>,
    /// Number of starts so far, by name.
    starts: HashMap<Arc<str>, u64>,
    next: u64,
}

#[derive(Clone)]
struct RunningProcess {
    name: Arc<str>,
    command: OsString,
    pid: Pid,
    supervisor: Option<Pid>,
    since: SystemTime,
    restarts: u64,
}

/// A running program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The name it was started under: that of the handler.
    pub name: Arc<str>,
    /// The executable.
    pub command: OsString,
    /// The process id.
    pub pid: u32,
    /// Time of the start.
    pub since: SystemTime,
    /// Number of earlier starts under this name.
    pub restarts: u64,
    /// Number of processes: the program and its descendants.
    pub processes: usize,
    /// Resident private memory of these processes, in bytes; `None` if the system does not report it.
    pub memory_bytes: Option<u64>,
}

/// A successfully started program.
pub(crate) struct StartedProcess {
    pub(crate) child: ChildProcess,
    pub(crate) pipes: ChildPipes,
    pub(crate) pid: Pid,
    pub(crate) supervisor: Option<Pid>,
}

/// An entry in the process table. Dropping it removes the program from the table.
pub(crate) struct ProcessEntry {
    shared: Arc<ProcessRegistry>,
    number: u64,
    _place: OwnedSemaphorePermit,
}

impl ProcessSpawner {
    /// Starts programs below supervisors that are processes of this program, which calls
    /// [`run_supervisor_if_requested`](crate::run_supervisor_if_requested) first in `main`. On systems other than Linux
    /// there are no supervisors.
    pub fn supervised_by(program: impl Into<PathBuf>) -> Self {
        if cfg!(target_os = "linux") { Self::Supervised { supervisor: program.into() } } else { Self::Direct }
    }

    /// Starts programs below supervisors that are processes of the running program. Uses the running executable even if
    /// its file was replaced meanwhile, as in an upgrade.
    #[must_use]
    pub fn supervised_by_this_program() -> Self {
        Self::supervised_by("/proc/self/exe")
    }
}

impl ProcessTable {
    /// A table for at most `limit` running programs.
    #[must_use]
    pub fn new(spawner: ProcessSpawner, limit: usize) -> Self {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { shared: Arc::new(ProcessRegistry { spawner, limit, permits: places, list: Mutex::default() }) }
    }

    /// Starts a program and lists it under `name`. Dropping the future ends what it has started.
    ///
    /// # Errors
    /// If the limit is reached, or the system cannot start the program: not found, not executable, no such folder.
    pub async fn start(
        &self,
        name: &Arc<str>,
        program: &ProgramSpec,
    ) -> Result<(ChildProcess, ChildPipes), SpawnError> {
        let place = self.shared.permits.clone().try_acquire_owned();
        let place = place.map_err(|_| SpawnError::Full(self.shared.limit))?;
        let started = match &self.shared.spawner {
            ProcessSpawner::Direct => unsupervised::start(program),
            #[cfg(target_os = "linux")]
            ProcessSpawner::Supervised { supervisor: by } => crate::supervised::start(by, program).await,
            #[cfg(not(target_os = "linux"))]
            ProcessSpawner::Supervised { .. } => unsupervised::start(program),
        };
        let mut started = started.map_err(|source| match &program.work_dir {
            // The system has the same error for it as for a missing program.
            Some(folder) if !folder.is_dir() => SpawnError::WorkDir(folder.clone()),
            _ => SpawnError::Start { command: program.command.clone(), source },
        })?;
        let number = self.shared.register(name, program, &started);
        started.child.entry = Some(ProcessEntry { shared: self.shared.clone(), number, _place: place });
        Ok((started.child, started.pipes))
    }

    /// The way to start programs.
    #[must_use]
    pub fn spawner(&self) -> &ProcessSpawner {
        &self.shared.spawner
    }

    /// The running programs, in the order of their start.
    #[must_use]
    pub fn list(&self) -> Vec<ProcessInfo> {
        let running: Vec<_> = self.shared.lock().running.values().cloned().collect();
        running.iter().map(RunningProcess::info).collect()
    }
}

impl ProcessRegistry {
    fn lock(&self) -> MutexGuard<'_, ProcessList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, name: &Arc<str>, program: &ProgramSpec, started: &StartedProcess) -> u64 {
        let mut list = self.lock();
        let starts = list.starts.entry(name.clone()).or_default();
        let restarts = *starts;
        *starts += 1;
        let running = RunningProcess {
            name: name.clone(),
            command: program.command.clone(),
            pid: started.pid,
            supervisor: started.supervisor,
            since: SystemTime::now(),
            restarts,
        };
        let number = list.next;
        list.next += 1;
        list.running.insert(number, running);
        number
    }
}

impl RunningProcess {
    fn tree(&self) -> Vec<Pid> {
        // Only the supervisor is an ancestor of processes that have left their parents.
        match self.supervisor {
            Some(supervisor) => tree::descendants(supervisor),
            None => [vec![self.pid], tree::descendants(self.pid)].concat(),
        }
    }

    fn info(&self) -> ProcessInfo {
        let tree = self.tree();
        ProcessInfo {
            name: self.name.clone(),
            command: self.command.clone(),
            pid: self.pid.as_raw_pid().unsigned_abs(),
            since: self.since,
            restarts: self.restarts,
            processes: tree.len(),
            memory_bytes: tree::memory_of(&tree),
        }
    }
}

impl ProcessEntry {
    pub(crate) fn processes(&self) -> Vec<u32> {
        let running = self.shared.lock().running.get(&self.number).cloned();
        let tree = running.map(|running| running.tree()).unwrap_or_default();
        tree.into_iter().map(|pid| pid.as_raw_pid().unsigned_abs()).collect()
    }
}

impl Drop for ProcessEntry {
    fn drop(&mut self) {
        self.shared.lock().running.remove(&self.number);
    }
}
