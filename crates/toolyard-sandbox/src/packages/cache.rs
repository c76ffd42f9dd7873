//! The folders of the cache.
//!
//! `DIGEST/packages` is what was installed, and `DIGEST/lock` is locked, for sharing, by those who use it, in whichever
//! process. What nobody has locked may go: it is renamed first, so that nobody finds half of it. What is being installed
//! is in a folder of another name, and becomes `DIGEST` when it is whole.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::PackageError;

const PACKAGES: &str = "packages";
const LOCK: &str = "lock";
/// What folders are called that are not whole: not yet, or not any more.
const UNFINISHED: &str = "unfinished-";

/// What is in the file that pip reads.
pub(super) const LIST: &str = "requirements.txt";

/// Installed packages. They stay for as long as this does.
#[derive(Debug)]
pub struct Environment {
    path: PathBuf,
    /// Locked for sharing; unlocked when this is dropped.
    _lock: File,
}

impl Environment {
    /// The folder that Python finds them in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// A folder that something is being installed to. It is removed unless it was finished.
#[derive(Debug)]
pub(super) struct Draft {
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
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Cache {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What is there of this digest.
    pub(super) async fn find(&self, digest: &str) -> Option<Arc<Environment>> {
        let folder = self.folder.join(digest);
        spawn_blocking(move || open(&folder).ok().flatten()).await.ok().flatten().map(Arc::new)
    }

    /// A folder for what is to be installed.
    pub(super) async fn draft(&self, digest: &str, list: &str) -> Result<Draft, PackageError> {
        let (folder, digest, list) = (self.folder.clone(), digest.to_owned(), list.to_owned());
        blocking(move || Draft::new(&folder, &digest, &list)).await
    }

    /// Removes what was used longest ago, and whatever others have left behind, until the rest takes no more than so many
    /// bytes. What is in use stays.
    pub(super) async fn make_room(&self, most: u64) {
        let folder = self.folder.clone();
        let removed = blocking(move || match folder.try_exists()? {
            true => make_room(&folder, most),
            false => Ok(0),
        });
        match removed.await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "packages that nobody has used for long are removed"),
            Err(error) => tracing::warn!(%error, "the cache of packages cannot be looked through"),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PackageError> {
    let done = spawn_blocking(work).await.unwrap_or_else(|_| Err(io::Error::other("the task broke")));
    done.map_err(|error| PackageError::Cache(error.to_string()))
}

/// Opens what is whole, and locks it. `None`: it is not there, or just goes.
fn open(folder: &Path) -> io::Result<Option<Environment>> {
    let path = folder.join(LOCK);
    let lock = match File::options().read(true).write(true).open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if lock.try_lock_shared().is_err() {
        return Ok(None);
    }
    // It may have gone between the two, with its lock.
    let is_same =
        fs::metadata(&path).is_ok_and(|found| lock.metadata().is_ok_and(|lock| lock.ino() == found.ino()));
    if !is_same {
        return Ok(None);
    }
    // That it was used is for whoever makes room, and no matter otherwise.
    let _unknown = lock.set_times(FileTimes::new().set_modified(SystemTime::now()));
    Ok(Some(Environment { path: folder.join(PACKAGES), _lock: lock }))
}

impl Draft {
    fn new(cache: &Path, digest: &str, list: &str) -> io::Result<Self> {
        fs::create_dir_all(cache)?;
        // Paths of Python are separated by colons, and those of processes that work elsewhere are absolute.
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
            .unwrap_or_else(|| Err(io::Error::other("no name is left")))?;
        let draft = Self { packages: folder.join(PACKAGES), lock: None, folder: Some(folder) };
        let folder = draft.path();
        fs::write(folder.join(LIST), list)?;
        fs::create_dir(folder.join(PACKAGES))?;
        let lock = File::create_new(folder.join(LOCK))?;
        lock.lock_shared()?;
        Ok(Self { lock: Some(lock), packages: draft.packages.clone(), folder: draft.take() })
    }

    fn take(mut self) -> Option<PathBuf> {
        self.folder.take()
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.as_deref().unwrap_or(&self.packages)
    }

    /// Makes it what is found under its digest. Who was faster wins, and both have the same.
    pub(super) async fn finish(
        mut self,
        cache: &Cache,
        digest: &str,
    ) -> Result<Arc<Environment>, PackageError> {
        let final_folder = self.path().with_file_name(digest);
        let moved = blocking({
            let (from, to) = (self.path().to_owned(), final_folder.clone());
            move || fs::rename(from, to)
        });
        match (moved.await, self.lock.take()) {
            (Ok(()), Some(lock)) => {
                self.folder = None;
                Ok(Arc::new(Environment { path: final_folder.join(PACKAGES), _lock: lock }))
            }
            (Err(error), _) => cache.find(digest).await.ok_or(error),
            (Ok(()), None) => Err(PackageError::Cache("its lock is gone".into())),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            // What cannot be removed now is found unlocked later.
            let _later = fs::remove_dir_all(folder);
        }
    }
}

/// A folder that may go.
struct Unused {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

fn make_room(cache: &Path, most: u64) -> io::Result<usize> {
    let mut unused = Vec::new();
    let mut removed = 0;
    for entry in fs::read_dir(cache)?.flatten() {
        let folder = entry.path();
        if !is_unused(&folder) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            removed += usize::from(fs::remove_dir_all(&folder).is_ok());
            continue;
        }
        let used = fs::metadata(folder.join(LOCK)).and_then(|lock| lock.modified())?;
        unused.push(Unused { bytes: size(&folder), used, folder });
    }
    unused.sort_by_key(|unused| std::cmp::Reverse(unused.used));
    let mut sum = 0_u64;
    for Unused { folder, bytes, .. } in unused {
        sum = sum.saturating_add(bytes);
        if sum > most {
            removed += usize::from(remove(&folder)?);
        }
    }
    Ok(removed)
}

/// Whether nobody has it locked. What has no lock yet was begun a moment ago.
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

/// Bytes that a folder takes. Links are not followed; what cannot be read takes none.
pub(super) fn size(folder: &Path) -> u64 {
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
