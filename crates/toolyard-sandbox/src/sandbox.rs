//! The sandbox: starts programs within walls.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use toolyard_process::{Pipes, Processes, Program};

use crate::cgroup::{self, Places, Quota, Slots};
use crate::confine::{Limits, REQUEST, Spec, Walls};
use crate::confined::{Confined, Parts};
use crate::home::Home;
use crate::{Cell, CellProgram, Isolation, Layer, LayerReport, SandboxError, probe};

/// How a sandbox is made.
#[derive(Clone)]
pub struct SandboxOptions {
    /// What happens where walls are missing.
    pub isolation: Isolation,
    /// What starts programs, and bounds how many run.
    pub processes: Processes,
    /// A binary that calls [`enter_if_asked`](crate::enter_if_asked) at its very beginning: ourselves.
    pub binary: PathBuf,
    /// A cgroup to make others in: an absolute path in its hierarchy, or one from the gateway's own group, which is
    /// the default. For machines on which groups are given otherwise than by systemd.
    pub cgroup_root: Option<PathBuf>,
}

/// Starts programs within walls. Clones are one and the same.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    options: SandboxOptions,
    /// Found out when somebody first needs it.
    machine: OnceCell<Machine>,
    homes: AtomicU64,
}

/// What this machine has.
struct Machine {
    reports: Vec<LayerReport>,
    slots: Arc<Slots>,
}

impl SandboxOptions {
    /// All walls, in processes of the binary that runs.
    #[must_use]
    pub fn new(processes: Processes) -> Self {
        let binary = PathBuf::from("/proc/self/exe");
        Self { isolation: Isolation::Required, processes, binary, cgroup_root: None }
    }
}

impl Sandbox {
    /// A sandbox. Which walls the machine has is found out when somebody first needs to know.
    #[must_use]
    pub fn new(options: SandboxOptions) -> Self {
        Self { shared: Arc::new(Shared { options, machine: OnceCell::new(), homes: AtomicU64::new(0) }) }
    }

    /// Which walls this machine has, and why not the others. Nothing fails here: where isolation is required, and
    /// something is missing, nothing can be started.
    pub async fn report(&self) -> &[LayerReport] {
        &self.machine().await.reports
    }

    async fn machine(&self) -> &Machine {
        self.shared.machine.get_or_init(|| Machine::probe(&self.shared.options)).await
    }

    /// How much isolation there has to be.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.shared.options.isolation
    }

    /// Whether programs can be started.
    ///
    /// # Errors
    /// When isolation is required and this machine has not all walls: which, and what to do.
    pub async fn ready(&self) -> Result<(), SandboxError> {
        let missing: Vec<_> =
            self.report().await.iter().filter(|report| !report.enforced()).cloned().collect();
        match self.isolation() {
            Isolation::Required if !missing.is_empty() => Err(SandboxError::Unenforceable(missing)),
            _ => Ok(()),
        }
    }

    /// Starts a program in a cell; `name` is for the list of processes. Dropping the future ends what it has started.
    /// That the walls are up is not known yet: [`Verdict::Refused`](crate::Verdict::Refused) says if they were not.
    ///
    /// # Errors
    /// When walls are missing that are required, the cell is impossible, as many programs run as may run, or the
    /// system does not let us.
    pub async fn start(
        &self,
        name: &Arc<str>,
        cell: &Cell,
        program: &CellProgram,
    ) -> Result<(Confined, Pipes), SandboxError> {
        self.ready().await?;
        cell.check()?;
        let machine = self.machine().await;
        let quota =
            Quota { memory_bytes: cell.memory_bytes, cpu_millis: cell.cpu_millis, processes: cell.processes };
        let lent = machine.slots.lend(&quota).map_err(SandboxError::at("limit a cgroup"))?;
        let walls = machine.walls(self.isolation());
        let home = self.home(walls)?;
        let spec = machine.spec(walls, lent.join(), home.path(), cell, program);
        let spec = serde_json::to_vec(&spec).map_err(|error| SandboxError::Cell(error.to_string()))?;
        let helper = Program {
            command: self.shared.options.binary.clone().into(),
            args: vec![REQUEST.into()],
            channel: true,
            ..Program::default()
        };
        let (child, mut pipes) = self.shared.options.processes.start(name, &helper).await?;
        let channel = say(pipes.channel.take(), &spec).await.map_err(SandboxError::at("say what to do"))?;
        let watched = self.isolation() != Isolation::None && !machine.limits_trees();
        Ok((Confined::new(Parts { child, channel, lent, home, quota, watched }), pipes))
    }

    /// In namespaces a cell has a folder of its own; without them it is one of the machine's.
    fn home(&self, walls: Walls) -> Result<Home, SandboxError> {
        if walls.namespaces {
            return Ok(Home::within());
        }
        let number = self.shared.homes.fetch_add(1, Ordering::Relaxed);
        Home::make(number, walls.user).map_err(SandboxError::at("make a folder for a cell"))
    }
}

impl Machine {
    async fn probe(options: &SandboxOptions) -> Self {
        let places = match options.isolation {
            Isolation::None => Places::none("there is no isolation"),
            Isolation::Required | Isolation::BestEffort => find_places(options.cgroup_root.clone()).await,
        };
        let mut reports = vec![probe::supervisor(&options.processes)];
        reports.extend(probe::groups(&places));
        if options.isolation == Isolation::None {
            let none = |layer| LayerReport { layer, missing: Some("there is no isolation".to_owned()) };
            reports.extend([Layer::Namespaces, Layer::Landlock, Layer::Seccomp].map(none));
        } else {
            reports.extend(probe::walls(&options.processes, &options.binary).await);
        }
        Self { reports, slots: Arc::new(Slots::new(places)) }
    }

    fn has(&self, layer: Layer) -> bool {
        self.reports.iter().any(|report| report.layer == layer && report.enforced())
    }

    /// Whether cgroups limit memory and processes, or somebody has to look at them.
    fn limits_trees(&self) -> bool {
        self.has(Layer::Memory) && self.has(Layer::Processes)
    }

    fn walls(&self, isolation: Isolation) -> Walls {
        Walls {
            user: isolation != Isolation::None,
            namespaces: self.has(Layer::Namespaces),
            landlock: self.has(Layer::Landlock),
            seccomp: self.has(Layer::Seccomp),
        }
    }

    fn spec(
        &self,
        walls: Walls,
        join: Vec<PathBuf>,
        home: &Path,
        cell: &Cell,
        program: &CellProgram,
    ) -> Spec {
        let counted = self.has(Layer::Processes) || !walls.namespaces;
        let limits = Limits {
            data_bytes: cell.memory_bytes,
            address_bytes: (!self.has(Layer::Memory)).then_some(cell.memory_bytes * 2 + (1 << 30)),
            file_bytes: cell.disk_bytes,
            files: cell.files.into(),
            // Outside of a namespace of users, all that the user runs would count.
            processes: (!counted).then_some(u64::from(cell.processes) + 2),
        };
        Spec {
            walls,
            join,
            network: cell.network,
            limits,
            mounts: cell.readable.clone(),
            home: home.to_owned(),
            program: program.clone(),
            env: cell.env.clone(),
        }
    }
}

/// Tells a helper what to do.
async fn say(channel: Option<tokio::net::UnixStream>, spec: &[u8]) -> io::Result<UnixStream> {
    let mut channel = channel.ok_or(io::ErrorKind::NotConnected)?;
    // One that has ended already hears nothing. Its end says so.
    if channel.write_all(spec).await.is_ok() {
        let _ended = channel.shutdown().await;
    }
    channel.into_std()
}

/// To make groups and to remove those of the dead may block for a moment.
async fn find_places(root: Option<PathBuf>) -> Places {
    let find = move || {
        let places = Places::find(&cgroup::Sources::read(), root.as_deref());
        cgroup::sweep(&places);
        places
    };
    let found = tokio::task::spawn_blocking(find).await;
    found.unwrap_or_else(|_| Places::none("looking for cgroups failed"))
}
