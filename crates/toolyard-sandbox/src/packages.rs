//! Python packages: installed once per list in a sandbox, and cached.
//!
//! pip, or uv if the machine has it, runs in a sandbox of its own. Its only network is a proxy of the gateway to the
//! package index and the hosts of its files. The sandbox cannot write to the machine; it sends the installed files as a
//! stream. The gateway writes them to a folder of the cache and inspects them ([`PackageError::Refused`]). Workers and
//! scripts read that folder, which does not change afterwards.
//!
//! pip's own configuration sets the source of packages; a list with URLs, paths or options is refused. Only wheels are
//! installed, unless [`PackageOptions::build_from_source`] is set: then the code of packages runs in the same sandbox.
//!
//! - [`requirements`]: lists of packages;
//! - `cache`: the folders, their locks and their removal;
//! - `pip`, `config`, `uv`: the pip of the machine, its configuration, and the uv of the machine;
//! - `command`: the command lines of both;
//! - `installer`: one installation and its limits; `in_sandbox`: the part of it that runs in the sandbox;
//! - `proxy`: the network of that sandbox; `archive`: the stream of files; `inspect`: checks of the files.

mod archive;
mod cache;
mod command;
mod config;
mod error;
mod in_sandbox;
mod inspect;
mod installer;
mod pip;
mod proxy;
pub mod requirements;
mod uv;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore, watch};
use tokio::task::JoinSet;

use crate::Sandbox;
use cache::EnvironmentCache;
pub use cache::PackageEnvironment;
pub use error::PackageError;
pub(crate) use in_sandbox::run as install_in_cell;
use pip::PythonWithPip;
use requirements::RequirementList;

/// Name of the entry function that runs in the sandbox of an installation.
pub(crate) const INSTALLER: &str = "install packages";

/// Options of package installation and of the cache.
#[derive(Clone)]
pub struct PackageOptions {
    /// Sandbox of the installer.
    pub sandbox: Sandbox,
    /// Folder of the cache. Several gateways of one machine may share it.
    pub folder: PathBuf,
    /// Python interpreter of the packages, which has pip: a path, or a name that is searched as by sandboxed programs.
    /// Nothing is searched before the first installation.
    pub python: OsString,
    /// The program uv, which replaces pip: a path, or a name that is searched on the search path of this process. `None`:
    /// pip is used.
    pub uv: Option<PathBuf>,
    /// Environment of pip in addition to its configuration files: `PIP_INDEX_URL`, `PIP_PROXY`.
    pub env: Vec<(OsString, OsString)>,
    /// Hosts of files in addition to the index, with or without a port: `files.example.com`.
    pub hosts: Vec<String>,
    /// True if packages may be built from source, which runs their code in the sandbox. The code can read pip's
    /// configuration, including credentials of the index.
    pub build_from_source: bool,
    /// Time limit of one installation.
    pub timeout: Duration,
    /// Maximum size of one installation, in bytes.
    pub max_bytes: u64,
    /// Maximum size of all installations together, in bytes, except for those in use.
    pub cache_bytes: u64,
    /// Maximum number of concurrent installations. Four times as many may wait.
    pub concurrent: usize,
}

impl PackageOptions {
    /// Default options for a cache in this folder.
    #[must_use]
    pub fn new(sandbox: Sandbox, folder: PathBuf) -> Self {
        Self {
            sandbox,
            folder,
            python: "python3".into(),
            uv: Some("uv".into()),
            env: Vec::new(),
            hosts: Vec::new(),
            build_from_source: false,
            timeout: Duration::from_secs(300),
            max_bytes: 1 << 30,
            cache_bytes: 5 << 30,
            concurrent: 2,
        }
    }
}

/// Returns the default folder: in the user's cache folder (XDG Base Directory Specification), or in that of the
/// service. Root uses the system's cache folder, because other users, such as those of sandboxes, cannot enter root's
/// home.
#[must_use]
pub fn default_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_user = || match rustix::process::geteuid().is_root() {
        true => Some(PathBuf::from("/var/cache/toolyard")),
        false => Some(variable("HOME")?.join(".cache/toolyard")),
    };
    let folder = variable("CACHE_DIRECTORY")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("toolyard")))
        .or_else(of_user);
    folder.unwrap_or_else(|| std::env::temp_dir().join("toolyard-cache")).join("packages")
}

/// Format of cached folders. It is part of the digest, so that folders of other formats are not used.
const CACHE_FORMAT: &[u8] = b"3";

/// Result of an installation.
type EnvironmentResult = Result<Arc<PackageEnvironment>, PackageError>;

/// Installs and caches packages. Clones share their state; dropping the last one stops running installations.
#[derive(Clone)]
pub struct PackageInstaller {
    shared: Arc<PackageInstallerState>,
}

struct PackageInstallerState {
    context: Arc<InstallContext>,
    tasks: Mutex<JoinSet<()>>,
}

/// State that installations share.
struct InstallContext {
    options: PackageOptions,
    cache: EnvironmentCache,
    permits: Semaphore,
    /// Running installations by digest: requests for the same packages share one.
    building: Mutex<HashMap<String, watch::Receiver<Option<EnvironmentResult>>>>,
    pip: OnceCell<PythonWithPip>,
}

impl PackageInstaller {
    /// Opens a cache in a folder, which is created on first use. In a Tokio runtime, a task removes unfinished folders
    /// of dead gateways.
    #[must_use]
    pub fn new(options: PackageOptions) -> Self {
        let cache = EnvironmentCache::new(options.folder.clone());
        let permits = Semaphore::new(options.concurrent.clamp(1, 64));
        let mut tasks = JoinSet::new();
        if let Ok(runtime) = Handle::try_current() {
            let cache = cache.clone();
            tasks.spawn_on(async move { cache.sweep().await }, &runtime);
        }
        let context =
            InstallContext { cache, permits, building: Mutex::default(), pip: OnceCell::new(), options };
        Self {
            shared: Arc::new(PackageInstallerState { context: Arc::new(context), tasks: Mutex::new(tasks) }),
        }
    }

    /// Returns the packages of a list in the format of `requirements.txt`. They are kept while the result is in use.
    /// Dropping the future does not stop the installation.
    ///
    /// # Errors
    /// If the list is invalid or cannot be installed.
    pub async fn environment(&self, list: &str) -> EnvironmentResult {
        let requirements = RequirementList::parse(list)?;
        let digest = self.shared.context.digest(&requirements).await?;
        if let Some(cached) = self.shared.context.cache.find(&digest).await {
            return Ok(cached);
        }
        let mut built = self.join_or_start(digest, requirements)?;
        match built.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(built)) => built.clone(),
            _ => Err(PackageError::Interrupted),
        }
    }

    /// Joins the running installation with this digest, or starts one.
    fn join_or_start(
        &self,
        digest: String,
        requirements: RequirementList,
    ) -> Result<watch::Receiver<Option<EnvironmentResult>>, PackageError> {
        let mut building = self.shared.context.building();
        if let Some(built) = building.get(&digest) {
            return Ok(built.clone());
        }
        if building.len() >= self.shared.context.options.concurrent.saturating_mul(5) {
            return Err(PackageError::Busy);
        }
        let (sender, built) = watch::channel(None);
        building.insert(digest.clone(), built.clone());
        drop(building);
        let context = self.shared.context.clone();
        let mut tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let running = RunningInstall { context: context.clone(), digest };
            sender.send_replace(Some(context.build(&running.digest, &requirements).await));
        });
        Ok(built)
    }
}

/// Registration of a running installation. Dropping it removes the registration.
struct RunningInstall {
    context: Arc<InstallContext>,
    digest: String,
}

impl Drop for RunningInstall {
    fn drop(&mut self) {
        self.context.building().remove(&self.digest);
    }
}

impl InstallContext {
    fn building(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Option<EnvironmentResult>>>> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the digest of a list for this interpreter and installer.
    async fn digest(&self, requirements: &RequirementList) -> Result<String, PackageError> {
        let mode: &[u8] = if self.options.build_from_source { b"from source" } else { b"wheels" };
        let pip = self.pip().await?;
        let (installer, python) = (pip.installer.name().as_bytes(), pip.version.as_bytes());
        Ok(cache::digest([CACHE_FORMAT, installer, mode, python, requirements.text().as_bytes()]))
    }

    async fn pip(&self) -> Result<&PythonWithPip, PackageError> {
        self.pip.get_or_try_init(|| PythonWithPip::find(&self.options)).await
    }

    async fn build(&self, digest: &str, requirements: &RequirementList) -> EnvironmentResult {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        // Another gateway may have finished it meanwhile.
        if let Some(cached) = self.cache.find(digest).await {
            return Ok(cached);
        }
        self.cache.make_room(self.options.cache_bytes).await;
        let draft = self.cache.draft(digest, requirements.text()).await?;
        let draft = match requirements.is_empty() {
            true => draft,
            false => {
                installer::install(&self.options, &self.pip().await?.installer, requirements, draft).await?
            }
        };
        draft.finish(&self.cache, digest).await
    }
}
