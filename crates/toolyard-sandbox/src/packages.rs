//! Packages for Python: built of a list, once, outside of the walls and with the network, and kept for those who ask again.
//!
//! `pip install --target` puts them into a folder of the cache, which code behind walls can read and nobody writes again.
//! Where packages come from is for pip's own configuration to say, not for a list: a line that names a place or an option
//! is refused. Only wheels are installed, unless [`PackageOptions::from_source`] is set, because building a package from
//! source runs its code here, where there are no walls.
//!
//! - [`requirements`]: what a list may say;
//! - `cache`: the folders, those that are in use and those that go;
//! - `pip`: one installation, within its bounds.

mod cache;
mod pip;
pub mod requirements;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore, watch};
use tokio::task::JoinSet;
use toolyard_process::Processes;

use crate::script::interpreter;
use cache::Cache;
pub use cache::Environment;
use requirements::Requirements;

/// How packages are built, and how much of them is kept.
#[derive(Clone)]
pub struct PackageOptions {
    /// What starts programs.
    pub processes: Processes,
    /// The folder of the cache. It may be shared by several gateways of one machine.
    pub folder: PathBuf,
    /// The interpreter that they are for, which has pip. By default the one that programs behind walls find.
    pub python: OsString,
    /// What pip is configured by, beside its files: `PIP_INDEX_URL`, `HTTPS_PROXY`.
    pub env: Vec<(OsString, OsString)>,
    /// Whether packages may be built from source, which runs their code without walls.
    pub from_source: bool,
    /// How long one installation may take.
    pub time: Duration,
    /// Bytes that one installation may take.
    pub most_bytes: u64,
    /// Bytes that all of them may take together, those in use apart.
    pub cache_bytes: u64,
    /// Installations at a time. Four times as many may wait.
    pub at_a_time: usize,
}

impl PackageOptions {
    /// The options of a cache in this folder, as they are by default.
    #[must_use]
    pub fn new(processes: Processes, folder: PathBuf) -> Self {
        Self {
            processes,
            folder,
            python: interpreter(Path::new("python3")).into(),
            env: Vec::new(),
            from_source: false,
            time: Duration::from_secs(300),
            most_bytes: 1 << 30,
            cache_bytes: 5 << 30,
            at_a_time: 2,
        }
    }
}

/// Where packages are kept where nobody says it: in the folder for caches of this user (XDG Base Directory Specification), or
/// of the service. Root's own home is for nobody else to enter, and programs behind walls are not root, so that of the
/// system takes its place.
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

/// Why packages cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// A line of the list says something that it may not.
    #[error(
        "line {number} of the packages, {line:?}, is not `name`, `name[extra]` or `name==1.2` with an optional marker: {why}"
    )]
    BadLine {
        /// Which line, from 1 on.
        number: usize,
        /// Its beginning.
        line: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The list is too long.
    #[error("a list of packages has at most {0} lines, and 64 KiB")]
    TooMany(usize),
    /// There is no such interpreter.
    #[error("packages need Python with pip: {0}")]
    NoPython(String),
    /// pip said no.
    #[error("pip cannot install the packages: {0}")]
    Failed(String),
    /// It took too long.
    #[error("the packages were not installed within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// They are too large.
    #[error("the packages take more than {0} bytes")]
    TooLarge(u64),
    /// So many wait already.
    #[error("too many lists of packages wait to be installed: try again later")]
    Busy,
    /// The cache cannot be read or written.
    #[error("the cache of packages cannot be used: {0}")]
    Cache(String),
}

/// What an installation came to.
type Built = Result<Arc<Environment>, PackageError>;

/// Builds packages, and keeps them. Clones are one and the same; with the last one, installations that run are ended.
#[derive(Clone)]
pub struct Packages {
    shared: Arc<Shared>,
}

struct Shared {
    work: Arc<Work>,
    tasks: Mutex<JoinSet<()>>,
}

/// What an installation needs.
struct Work {
    options: PackageOptions,
    cache: Cache,
    places: Semaphore,
    /// What is being built, by its digest: who asks for the same waits for the same.
    building: Mutex<HashMap<String, watch::Receiver<Option<Built>>>>,
    python: OnceCell<String>,
}

impl Packages {
    /// A cache in a folder, which is made when something is put there.
    #[must_use]
    pub fn new(options: PackageOptions) -> Self {
        let cache = Cache::new(options.folder.clone());
        let places = Semaphore::new(options.at_a_time.clamp(1, 64));
        let work = Work { cache, places, building: Mutex::default(), python: OnceCell::new(), options };
        Self { shared: Arc::new(Shared { work: Arc::new(work), tasks: Mutex::default() }) }
    }

    /// The packages of a list, in the form of a `requirements.txt`. They stay for as long as what is given is kept. An
    /// installation goes on when this is dropped, for those who ask for it next.
    ///
    /// # Errors
    /// When the list says something that it may not, or cannot be installed.
    pub async fn environment(&self, list: &str) -> Built {
        let wanted = Requirements::parse(list)?;
        let digest = self.shared.work.digest(&wanted).await?;
        if let Some(found) = self.shared.work.cache.find(&digest).await {
            return Ok(found);
        }
        let mut built = self.join(digest, wanted)?;
        match built.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(built)) => built.clone(),
            _ => Err(PackageError::Failed("the installation was broken off".into())),
        }
    }

    /// The installation of this digest that runs, or a new one.
    fn join(
        &self,
        digest: String,
        wanted: Requirements,
    ) -> Result<watch::Receiver<Option<Built>>, PackageError> {
        let mut building = self.shared.work.building();
        if let Some(built) = building.get(&digest) {
            return Ok(built.clone());
        }
        if building.len() >= self.shared.work.options.at_a_time.saturating_mul(5) {
            return Err(PackageError::Busy);
        }
        let (sender, built) = watch::channel(None);
        building.insert(digest.clone(), built.clone());
        drop(building);
        let work = self.shared.work.clone();
        let mut tasks = self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let place = Place { work: work.clone(), digest };
            sender.send_replace(Some(work.build(&place.digest, &wanted).await));
        });
        Ok(built)
    }
}

/// The line of an installation in the list of those that run. It is crossed out however that ends.
struct Place {
    work: Arc<Work>,
    digest: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.work.building().remove(&self.digest);
    }
}

impl Work {
    fn building(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Option<Built>>>> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells this list, for this interpreter, from all others.
    async fn digest(&self, wanted: &Requirements) -> Result<String, PackageError> {
        let python = self.python.get_or_try_init(|| pip::python(&self.options)).await?;
        Ok(cache::digest([python.as_bytes(), wanted.text().as_bytes()]))
    }

    async fn build(&self, digest: &str, wanted: &Requirements) -> Built {
        // It is never closed.
        let _turn = self.places.acquire().await;
        // It may have been done by another gateway, while this one waited.
        if let Some(found) = self.cache.find(digest).await {
            return Ok(found);
        }
        self.cache.make_room(self.options.cache_bytes).await;
        let draft = self.cache.draft(digest, wanted.text()).await?;
        pip::install(&self.options, draft.path()).await?;
        draft.finish(&self.cache, digest).await
    }
}

#[cfg(test)]
mod tests;
