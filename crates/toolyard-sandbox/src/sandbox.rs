//! The sandbox: starts programs within the isolation layers.

use std::io;
use std::iter;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use toolyard_process::{ChildPipes, ProcessTable, ProgramSpec};

use crate::cgroup::{self, CgroupParents, CgroupPool, ResourceQuota};
use crate::confine::{EnabledLayers, HELPER_ARG, HelperRequest, ResourceLimits};
use crate::home::{HomeFolder, HomeFolders};
use crate::sandboxed_process::{SandboxedProcess, SandboxedProcessParts};
use crate::users::{self, SandboxUser, UidRange, UserAllocator};
use crate::watchdog::MemoryWatch;
use crate::{
    IsolationLayer, IsolationLevel, IsolationRequirement, LayerReport, SandboxError, SandboxProgram,
    SandboxSpec, probe,
};

/// Maximum number of open files per process if no cgroup counts the memory of sockets, each of which has a buffer.
pub(crate) const UNCOUNTED_FILES: u32 = 96;

/// Options of a [`Sandbox`].
#[derive(Clone)]
pub struct SandboxOptions {
    /// Behaviour if isolation layers are missing.
    pub isolation: IsolationRequirement,
    /// Process starter, which limits the number of running programs.
    pub processes: ProcessTable,
    /// A binary that calls [`enter_if_asked`](crate::enter_if_asked) first; by default this one.
    pub binary: PathBuf,
    /// Parent cgroup: an absolute path in its hierarchy, or a path relative to the gateway's own group, which is the
    /// default. For machines on which systemd does not delegate cgroups.
    pub cgroup_root: Option<PathBuf>,
    /// Uids of sandboxes if the gateway runs as root: a separate one for each sandbox.
    pub uids: UidRange,
    /// Minimum available memory of the machine, in bytes. If no memory cgroup is available and less memory is left, the
    /// largest sandbox is killed.
    pub least_available_bytes: u64,
    /// Folder of the lock files with which gateways on one machine share uids.
    pub runtime_folder: PathBuf,
}

/// Starts sandboxed programs. Clones share their state.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<SandboxState>,
}

struct SandboxState {
    options: SandboxOptions,
    /// Capabilities of the machine, detected on first use.
    machine: OnceCell<MachineCapabilities>,
    watch: Arc<MemoryWatch>,
}

/// Isolation layers and resources of this machine.
struct MachineCapabilities {
    reports: Vec<LayerReport>,
    slots: Arc<CgroupPool>,
    users: Arc<UserAllocator>,
    homes: HomeFolders,
}

impl SandboxOptions {
    /// Options with required isolation and this binary as the helper.
    #[must_use]
    pub fn new(processes: ProcessTable) -> Self {
        let binary = PathBuf::from("/proc/self/exe");
        Self {
            isolation: IsolationRequirement::Required,
            processes,
            binary,
            cgroup_root: None,
            uids: UidRange::default(),
            least_available_bytes: 128 << 20,
            runtime_folder: users::runtime_folder(),
        }
    }
}

impl Sandbox {
    /// Creates a sandbox. The layers of the machine are detected on first use.
    #[must_use]
    pub fn new(options: SandboxOptions) -> Self {
        let watch = Arc::new(MemoryWatch::new(options.least_available_bytes));
        Self { shared: Arc::new(SandboxState { options, machine: OnceCell::new(), watch }) }
    }

    /// Reports the availability of all isolation layers. Never fails; [`Sandbox::ready`] checks whether programs can
    /// start.
    pub async fn report(&self) -> &[LayerReport] {
        &self.machine().await.reports
    }

    async fn machine(&self) -> &MachineCapabilities {
        self.shared.machine.get_or_init(|| MachineCapabilities::probe(&self.shared.options)).await
    }

    /// Returns the configured isolation.
    #[must_use]
    pub fn isolation(&self) -> IsolationRequirement {
        self.shared.options.isolation
    }

    /// Returns the isolation level of sandboxed programs on this machine.
    pub async fn level(&self) -> IsolationLevel {
        match self.isolation() {
            IsolationRequirement::None => IsolationLevel::None,
            IsolationRequirement::Required | IsolationRequirement::BestEffort => {
                IsolationLevel::of(self.report().await)
            }
        }
    }

    /// Returns the process starter.
    pub(crate) fn processes(&self) -> &ProcessTable {
        &self.shared.options.processes
    }

    /// Checks that programs can be started.
    ///
    /// # Errors
    /// If the machine does not reach the required isolation level: the missing layers and remedies.
    pub async fn ready(&self) -> Result<(), SandboxError> {
        let least = match self.isolation() {
            IsolationRequirement::Required => IsolationLevel::SharedUids,
            IsolationRequirement::BestEffort => IsolationLevel::BestEffort,
            IsolationRequirement::None => IsolationLevel::None,
        };
        let level = self.level().await;
        if level >= least {
            return Ok(());
        }
        let missing = self.report().await.iter().filter(|report| report.is_required_and_missing());
        Err(SandboxError::Unenforceable { missing: missing.cloned().collect(), level })
    }

    /// Starts a sandboxed program; `name` identifies it in the list of processes. Dropping the future kills what it
    /// has started. A layer may still fail afterwards: then the outcome is
    /// [`SandboxOutcome::Refused`](crate::SandboxOutcome::Refused).
    ///
    /// # Errors
    /// If a required layer is missing, the specification is invalid, the maximum number of programs runs, or a system
    /// call fails.
    pub async fn start(
        &self,
        name: &Arc<str>,
        spec: &SandboxSpec,
        program: &SandboxProgram,
    ) -> Result<(SandboxedProcess, ChildPipes), SandboxError> {
        self.ready().await?;
        spec.check()?;
        let machine = self.machine().await;
        let quota = ResourceQuota {
            memory_bytes: spec.memory_bytes,
            cpu_millis: spec.cpu_millis,
            processes: spec.processes,
        };
        let slot_lease = machine.slots.acquire(&quota).map_err(SandboxError::at("limit a cgroup"))?;
        let layers = machine.enabled_layers();
        if spec.loopback && self.isolation() != IsolationRequirement::None && !layers.namespaces {
            return Err(SandboxError::InvalidSpec(
                "a separate loopback interface requires namespaces".to_owned(),
            ));
        }
        let lease = machine.users.lease().map_err(SandboxError::at("allocate a uid"))?;
        let home = match layers.namespaces {
            true => HomeFolder::in_namespace(),
            false => machine
                .homes
                .make(lease.user())
                .map_err(SandboxError::at("create the folder of a sandbox"))?,
        };
        let spec = machine.helper_request(lease.user(), slot_lease.procs_files(), home.path(), spec, program);
        let spec = serde_json::to_vec(&spec).map_err(|error| SandboxError::InvalidSpec(error.to_string()))?;
        let helper = ProgramSpec {
            command: self.shared.options.binary.clone().into(),
            args: vec![HELPER_ARG.into()],
            channel: true,
            ..ProgramSpec::default()
        };
        let (child, mut pipes) = self.shared.options.processes.start(name, &helper).await?;
        let channel = send_request(pipes.channel.take(), &spec)
            .await
            .map_err(SandboxError::at("send the request to the helper"))?;
        let is_watched = self.isolation() != IsolationRequirement::None && !machine.limits_process_trees();
        let watch = is_watched.then(|| self.shared.watch.clone());
        Ok((
            SandboxedProcess::new(SandboxedProcessParts {
                child,
                channel,
                slot_lease,
                user_lease: lease,
                home,
                quota,
                watch,
            }),
            pipes,
        ))
    }
}

impl MachineCapabilities {
    async fn probe(options: &SandboxOptions) -> Self {
        let supervisor = probe::supervisor_report(&options.processes);
        if options.isolation == IsolationRequirement::None {
            let none = |layer| LayerReport { layer, missing: Some("isolation is disabled".to_owned()) };
            let others = IsolationLayer::ALL
                .into_iter()
                .filter(|layer| *layer != IsolationLayer::Supervisor)
                .map(none);
            let slots = Arc::new(CgroupPool::new(CgroupParents::unavailable("isolation is disabled")));
            let reports = iter::once(supervisor).chain(others).collect();
            return Self {
                reports,
                slots,
                users: UserAllocator::without_isolation(),
                homes: find_homes().await,
            };
        }
        let places = find_cgroup_parents(options.cgroup_root.clone()).await;
        let mut reports = vec![supervisor];
        reports.extend(probe::cgroup_reports(&places));
        let users = find_users(options.uids, options.runtime_folder.clone()).await;
        let (layers, users) = probe::probe_layers(&options.processes, &options.binary, users).await;
        reports.extend(layers);
        Self { reports, slots: Arc::new(CgroupPool::new(places)), users, homes: find_homes().await }
    }

    fn has(&self, layer: IsolationLayer) -> bool {
        self.reports.iter().any(|report| report.layer == layer && report.is_enforced())
    }

    /// True if cgroups limit memory and processes, so that no watchdog is needed.
    fn limits_process_trees(&self) -> bool {
        self.has(IsolationLayer::Memory) && self.has(IsolationLayer::Processes)
    }

    fn enabled_layers(&self) -> EnabledLayers {
        EnabledLayers {
            namespaces: self.has(IsolationLayer::Namespaces),
            landlock: self.has(IsolationLayer::Landlock),
            seccomp: self.has(IsolationLayer::Seccomp),
        }
    }

    fn helper_request(
        &self,
        user: SandboxUser,
        cgroup_procs: Vec<PathBuf>,
        home: &Path,
        spec: &SandboxSpec,
        program: &SandboxProgram,
    ) -> HelperRequest {
        let layers = self.enabled_layers();
        // Without a user namespace, the limit counts all processes of a shared user.
        let is_alone = layers.namespaces || self.has(IsolationLayer::Uids);
        // The two processes above the program have the same user, unless the uid is mapped for the program only.
        let above = if matches!(user, SandboxUser::Mapped { .. }) { 0 } else { 2 };
        let processes = u64::from(spec.processes) + above;
        let is_counted = self.has(IsolationLayer::Memory);
        // Without isolation, a file limit does not limit memory.
        let is_unbounded = !is_counted && layers.seccomp;
        let limits = ResourceLimits {
            data_bytes: spec.memory_bytes,
            address_bytes: (!is_counted && !spec.reserves_addresses)
                .then_some(spec.memory_bytes * 2 + (1 << 30)),
            file_bytes: spec.disk_bytes,
            files: if is_unbounded { spec.files.min(UNCOUNTED_FILES) } else { spec.files }.into(),
            processes: (is_alone && !self.has(IsolationLayer::Processes)).then_some(processes),
        };
        HelperRequest {
            layers,
            is_memory_counted: is_counted,
            user,
            cgroup_procs,
            network: spec.network,
            loopback: spec.loopback,
            limits,
            mounts: spec.readable.clone(),
            home: home.to_owned(),
            program: program.clone(),
            env: spec.env.clone(),
        }
    }
}

/// Sends the request to a helper.
async fn send_request(channel: Option<tokio::net::UnixStream>, spec: &[u8]) -> io::Result<UnixStream> {
    let mut channel = channel.ok_or(io::ErrorKind::NotConnected)?;
    // A helper that has ended does not read it. Its exit reports the failure.
    if channel.write_all(spec).await.is_ok() {
        let _ended = channel.shutdown().await;
    }
    channel.into_std()
}

/// Finds the parent folder of home folders and removes those of dead gateways.
async fn find_homes() -> HomeFolders {
    tokio::task::spawn_blocking(HomeFolders::find).await.unwrap_or_default()
}

/// Finds the available users; reads files.
async fn find_users(range: UidRange, runtime: PathBuf) -> Arc<UserAllocator> {
    let users = tokio::task::spawn_blocking(move || UserAllocator::find(range, &runtime)).await;
    Arc::new(users.unwrap_or_else(|_| UserAllocator::shared("detection of uids failed")))
}

/// Finds the parent cgroups and removes groups of dead gateways, which may block for a moment.
async fn find_cgroup_parents(root: Option<PathBuf>) -> CgroupParents {
    let find = move || {
        let places = CgroupParents::find(&cgroup::CgroupSources::read(), root.as_deref());
        cgroup::sweep(&places);
        places
    };
    let parents = tokio::task::spawn_blocking(find).await;
    parents.unwrap_or_else(|_| CgroupParents::unavailable("detection of cgroups failed"))
}
