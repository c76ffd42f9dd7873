//! The programs that run.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::process::Pid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::child::Child;
use crate::{Pipes, Program, SpawnError, direct, tree};

/// How programs are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spawner {
    /// Below a supervisor, which ends all of them when it has to, or when we are gone.
    Supervised {
        /// A program that calls [`supervise_if_asked`](crate::supervise_if_asked) at its very beginning.
        by: PathBuf,
    },
    /// As children of ours. Those that leave their process group are not found again, and none ends when we are
    /// killed.
    Direct,
}

/// Starts programs, bounds how many run at a time, and knows those that do. Clones are one and the same.
#[derive(Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    spawner: Spawner,
    limit: usize,
    places: Arc<Semaphore>,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    running: BTreeMap<u64, Running>,
    /// How many programs were started so far, by the name under which they were.
    starts: HashMap<Arc<str>, u64>,
    next: u64,
}

#[derive(Clone)]
struct Running {
    name: Arc<str>,
    command: OsString,
    pid: Pid,
    supervisor: Option<Pid>,
    since: SystemTime,
    restarts: u64,
}

/// A program that runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The name under which it was started: the handler's.
    pub name: Arc<str>,
    /// The program.
    pub command: OsString,
    /// Its process id.
    pub pid: u32,
    /// Since when it runs.
    pub since: SystemTime,
    /// How many programs were started under this name before.
    pub restarts: u64,
    /// How many processes there are: the program, and those that it started.
    pub processes: usize,
    /// Memory that they have to themselves and that is in use now, in bytes; `None` where the system does not tell.
    pub memory_bytes: Option<u64>,
}

/// What a start comes to.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) pipes: Pipes,
    pub(crate) pid: Pid,
    pub(crate) supervisor: Option<Pid>,
}

/// A line of the list. It is crossed out when this is dropped.
pub(crate) struct Entry {
    shared: Arc<Shared>,
    number: u64,
    _place: OwnedSemaphorePermit,
}

impl Spawner {
    /// Below supervisors that are processes of this program, which calls
    /// [`supervise_if_asked`](crate::supervise_if_asked) at its very beginning. On other systems than Linux there
    /// are none.
    pub fn supervised_by(program: impl Into<PathBuf>) -> Self {
        if cfg!(target_os = "linux") { Self::Supervised { by: program.into() } } else { Self::Direct }
    }

    /// Below supervisors that are processes of the program that runs: the very file, also where another one has
    /// taken its place meanwhile, as when it was upgraded.
    #[must_use]
    pub fn supervised_by_ourselves() -> Self {
        Self::supervised_by("/proc/self/exe")
    }
}

impl Processes {
    /// At most `limit` programs at a time.
    #[must_use]
    pub fn new(spawner: Spawner, limit: usize) -> Self {
        let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self { shared: Arc::new(Shared { spawner, limit, places, list: Mutex::default() }) }
    }

    /// Starts a program; `name` is for the list. Dropping the future ends what it has started.
    ///
    /// # Errors
    /// When as many run as may run, or the system cannot start it: not found, not executable, no such folder.
    pub async fn start(&self, name: &Arc<str>, program: &Program) -> Result<(Child, Pipes), SpawnError> {
        let place = self.shared.places.clone().try_acquire_owned();
        let place = place.map_err(|_| SpawnError::Full(self.shared.limit))?;
        let started = match &self.shared.spawner {
            Spawner::Direct => direct::start(program),
            #[cfg(target_os = "linux")]
            Spawner::Supervised { by } => crate::supervised::start(by, program).await,
            #[cfg(not(target_os = "linux"))]
            Spawner::Supervised { .. } => direct::start(program),
        };
        let failed = |source| SpawnError::Start { command: program.command.clone(), source };
        let mut started = started.map_err(failed)?;
        let number = self.shared.enter(name, program, &started);
        started.child.entry = Some(Entry { shared: self.shared.clone(), number, _place: place });
        Ok((started.child, started.pipes))
    }

    /// How programs are started.
    #[must_use]
    pub fn spawner(&self) -> &Spawner {
        &self.shared.spawner
    }

    /// The programs that run, in the order in which they were started.
    #[must_use]
    pub fn list(&self) -> Vec<ProcessInfo> {
        let running: Vec<_> = self.shared.lock().running.values().cloned().collect();
        running.iter().map(Running::info).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, name: &Arc<str>, program: &Program, started: &Started) -> u64 {
        let mut list = self.lock();
        let starts = list.starts.entry(name.clone()).or_default();
        let restarts = *starts;
        *starts += 1;
        let running = Running {
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

impl Running {
    fn tree(&self) -> Vec<Pid> {
        // Of what has left its parents, only the supervisor knows.
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

impl Entry {
    pub(crate) fn processes(&self) -> Vec<u32> {
        let running = self.shared.lock().running.get(&self.number).cloned();
        let tree = running.map(|running| running.tree()).unwrap_or_default();
        tree.into_iter().map(|pid| pid.as_raw_pid().unsigned_abs()).collect()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.lock().running.remove(&self.number);
    }
}
