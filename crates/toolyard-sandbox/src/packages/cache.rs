//! The folders of the cache.
//!
//! `DIGEST/packages` has the installed packages, and users in any process hold a shared lock on `DIGEST/lock`. An
//! unlocked folder may be removed: it is renamed first, so that no process finds a part of it. An installation writes
//! to a folder of another name, which is renamed to `DIGEST` at the end.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use toolyard_core::random::hex;

use super::PackageError;

const PACKAGES: &str = "packages";
const LOCK: &str = "lock";
/// Name of the lock file before it is locked, so that the [`LOCK`] of a new folder is never unlocked.
const NEW_LOCK: &str = "lock.new";
/// Prefix of the folders of incomplete installations and removals.
const UNFINISHED: &str = "unfinished-";

/// Minimum age of an unfinished folder without a lock file before it is removed.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// File with the installed list.
const REQUIREMENTS_FILE: &str = "requirements.txt";

/// Installed packages. They are not removed while this value exists.
#[derive(Debug)]
pub struct PackageEnvironment {
    path: PathBuf,
    /// Shared lock, released on drop.
    _lock: File,
}

impl PackageEnvironment {
    /// Folder for the module search path of Python.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug, Clone)]
pub(super) struct EnvironmentCache {
    folder: PathBuf,
}

/// A folder of a running installation. It is removed unless the installation is finished.
#[derive(Debug)]
pub(super) struct EnvironmentDraft {
    folder: Option<PathBuf>,
    lock: Option<File>,
    packages: PathBuf,
}

pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

impl EnvironmentCache {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Opens the environment with this digest.
    pub(super) async fn find(&self, digest: &str) -> Option<Arc<PackageEnvironment>> {
        let folder = self.folder.join(digest);
        spawn_blocking(move || open(&folder).ok().flatten()).await.ok().flatten().map(Arc::new)
    }

    /// Creates a folder for an installation.
    pub(super) async fn draft(&self, digest: &str, list: &str) -> Result<EnvironmentDraft, PackageError> {
        let (folder, digest, list) = (self.folder.clone(), digest.to_owned(), list.to_owned());
        run_blocking(move || EnvironmentDraft::new(&folder, &digest, &list)).await
    }

    /// Removes unfinished folders of dead gateways.
    pub(super) async fn sweep(&self) {
        let folder = self.folder.clone();
        let removed = run_blocking(move || match folder.try_exists()? {
            true => sweep(&folder),
            false => Ok(0),
        });
        match removed.await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed unfinished installations of packages"),
            Err(error) => tracing::warn!(%error, "cannot scan the package cache"),
        }
    }

    /// Removes the least recently used environments and unfinished folders until the rest has at most `max_bytes`.
    /// Environments in use are not removed.
    pub(super) async fn make_room(&self, max_bytes: u64) {
        let folder = self.folder.clone();
        let removed = run_blocking(move || match folder.try_exists()? {
            true => make_room(&folder, max_bytes),
            false => Ok(0),
        });
        match removed.await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed the least recently used packages"),
            Err(error) => tracing::warn!(%error, "cannot scan the package cache"),
        }
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PackageError> {
    let done = spawn_blocking(work).await.unwrap_or_else(|_| Err(io::Error::other("the task broke")));
    done.map_err(|error| PackageError::Cache(error.to_string()))
}

/// Opens and locks a finished environment. `None` if it does not exist or is being removed.
fn open(folder: &Path) -> io::Result<Option<PackageEnvironment>> {
    let path = folder.join(LOCK);
    let lock = match File::options().read(true).write(true).open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if lock.try_lock_shared().is_err() {
        return Ok(None);
    }
    // The folder may have been removed between the two calls.
    let is_same =
        fs::metadata(&path).is_ok_and(|found| lock.metadata().is_ok_and(|lock| lock.ino() == found.ino()));
    if !is_same {
        return Ok(None);
    }
    // The time of use matters only for the order of removal.
    let _unknown = lock.set_times(FileTimes::new().set_modified(SystemTime::now()));
    Ok(Some(PackageEnvironment { path: folder.join(PACKAGES), _lock: lock }))
}

impl EnvironmentDraft {
    fn new(cache: &Path, digest: &str, list: &str) -> io::Result<Self> {
        fs::create_dir_all(cache)?;
        // Python separates paths by colons, and processes in other folders need absolute paths.
        let cache = cache.canonicalize()?;
        let folder = (0_u64..)
            .map(|number| {
                cache.join(format!("{UNFINISHED}{}-{number}-{}", std::process::id(), &digest[..16]))
            })
            .find_map(|folder| match fs::create_dir(&folder) {
                Ok(()) => Some(Ok(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            })
            .unwrap_or_else(|| Err(io::Error::other("no free folder name")))?;
        let draft = Self { packages: folder.join(PACKAGES), lock: None, folder: Some(folder) };
        let folder = draft.path();
        fs::write(folder.join(REQUIREMENTS_FILE), list)?;
        fs::create_dir(folder.join(PACKAGES))?;
        let lock = File::create_new(folder.join(NEW_LOCK))?;
        lock.lock_shared()?;
        fs::rename(folder.join(NEW_LOCK), folder.join(LOCK))?;
        Ok(Self { lock: Some(lock), packages: draft.packages.clone(), folder: draft.into_folder() })
    }

    fn into_folder(mut self) -> Option<PathBuf> {
        self.folder.take()
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.packages)
    }

    /// Returns the folder to install to.
    pub(super) fn packages(&self) -> &Path {
        &self.packages
    }

    /// Renames the folder to its digest. If another process was faster, its environment is returned.
    pub(super) async fn finish(
        mut self,
        cache: &EnvironmentCache,
        digest: &str,
    ) -> Result<Arc<PackageEnvironment>, PackageError> {
        let final_folder = self.path().with_file_name(digest);
        let moved = run_blocking({
            let (from, to) = (self.path().to_owned(), final_folder.clone());
            move || fs::rename(from, to)
        });
        match (moved.await, self.lock.take()) {
            (Ok(()), Some(lock)) => {
                self.folder = None;
                Ok(Arc::new(PackageEnvironment { path: final_folder.join(PACKAGES), _lock: lock }))
            }
            (Err(error), _) => cache.find(digest).await.ok_or(error),
            (Ok(()), None) => Err(PackageError::Cache("the lock file is missing".into())),
        }
    }
}

impl Drop for EnvironmentDraft {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            // A folder that cannot be removed now is removed later, because it is unlocked.
            let _later = fs::remove_dir_all(folder);
        }
    }
}

/// An environment that may be removed.
struct UnusedEnvironment {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

/// Removes the unfinished folders that are not in use, and returns their number.
fn sweep(cache: &Path) -> io::Result<usize> {
    let folders = fs::read_dir(cache)?.flatten().filter(is_unfinished).map(|entry| entry.path());
    let leftovers = folders.filter(|folder| is_unused(folder) || is_leftover(folder));
    Ok(leftovers.filter(|folder| fs::remove_dir_all(folder).is_ok()).count())
}

fn is_unfinished(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with(UNFINISHED)
}

/// True if a folder has had no lock file for long: its gateway ended before it created the file, or while it removed
/// the folder.
fn is_leftover(folder: &Path) -> bool {
    let changed = fs::metadata(folder).and_then(|found| found.modified()).ok();
    let age = changed.and_then(|changed| changed.elapsed().ok());
    age.is_some_and(|age| age > LEFTOVER_AGE) && !folder.join(LOCK).exists()
}

fn make_room(cache: &Path, max_bytes: u64) -> io::Result<usize> {
    let mut unused = Vec::new();
    let mut removed = sweep(cache)?;
    for entry in fs::read_dir(cache)?.flatten().filter(|entry| !is_unfinished(entry)) {
        let folder = entry.path();
        if !is_unused(&folder) {
            continue;
        }
        let used = fs::metadata(folder.join(LOCK)).and_then(|lock| lock.modified())?;
        unused.push(UnusedEnvironment { bytes: size_on_disk(&folder), used, folder });
    }
    unused.sort_by_key(|unused| std::cmp::Reverse(unused.used));
    let mut sum = 0_u64;
    for UnusedEnvironment { folder, bytes, .. } in unused {
        sum = sum.saturating_add(bytes);
        if sum > max_bytes {
            removed += usize::from(remove(&folder)?);
        }
    }
    Ok(removed)
}

/// True if no process holds the lock. A folder without a lock file is new.
fn is_unused(folder: &Path) -> bool {
    File::options().write(true).open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

fn remove(folder: &Path) -> io::Result<bool> {
    let lock = File::options().write(true).open(folder.join(LOCK))?;
    if lock.try_lock().is_err() {
        return Ok(false);
    }
    let Some(name) = folder.file_name() else { return Ok(false) };
    let gone = folder.with_file_name(format!("{UNFINISHED}gone-{}", name.to_string_lossy()));
    fs::rename(folder, &gone)?;
    fs::remove_dir_all(gone)?;
    Ok(true)
}

/// Returns the disk usage of a folder in bytes. Links are not followed; unreadable entries count zero.
fn size_on_disk(folder: &Path) -> u64 {
    let mut sum = 0_u64;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => sum = sum.saturating_add(found.blocks().saturating_mul(512)),
                Err(_) => {}
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests;
