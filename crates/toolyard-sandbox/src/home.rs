//! Writable folders of sandboxes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::process::geteuid;

use crate::users::SandboxUser;

/// Prefix of the folders in which a gateway keeps the folders of its sandboxes.
const PREFIX: &str = "toolyard-cells-";

/// Host folders of sandboxes that cannot mount their own. They are in one folder per gateway, which is locked while the
/// gateway runs: an unlocked folder belongs to a dead gateway.
#[derive(Debug, Default)]
pub(crate) struct HomeFolders {
    made: Mutex<Option<LockedFolder>>,
}

/// Locked parent folder of this gateway.
#[derive(Debug)]
struct LockedFolder {
    path: PathBuf,
    _lock: File,
    /// Number of the last created home folder.
    next: u64,
}

/// Writable folder of a sandbox.
#[derive(Debug)]
pub(crate) struct HomeFolder {
    path: PathBuf,
    /// True if the folder is on the host, and is removed on drop.
    is_on_host: bool,
}

impl HomeFolders {
    /// Removes the folders of dead gateways of this user. The folder of this gateway is created on first use.
    pub(crate) fn find() -> Self {
        sweep(&std::env::temp_dir());
        Self::default()
    }

    /// Creates a host folder that only the user of the program can enter.
    pub(crate) fn make(&self, user: SandboxUser) -> io::Result<HomeFolder> {
        let path = {
            let mut folder = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = match &mut *folder {
                Some(folder) => folder,
                None => folder.insert(LockedFolder::make(&std::env::temp_dir())?),
            };
            folder.next += 1;
            folder.path.join(format!("{}-{:016x}", folder.next, random_u64()?))
        };
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let home = HomeFolder { path, is_on_host: true };
        if let SandboxUser::Become(uid) = user {
            chown(&home.path, Some(uid), Some(uid))?;
        }
        Ok(home)
    }
}

impl LockedFolder {
    fn make(parent: &Path) -> io::Result<Self> {
        loop {
            let path = parent.join(format!("{PREFIX}{:016x}", random_u64()?));
            // Sandboxes can reach their own folder but cannot list the others.
            fs::DirBuilder::new().mode(0o711).create(&path)?;
            let lock = File::open(&path)?;
            // Another gateway may sweep the folder before it is locked.
            let is_ours = lock.try_lock().is_ok() && path.exists();
            if is_ours {
                return Ok(Self { path, _lock: lock, next: 0 });
            }
        }
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // Home folders that are still in use are removed later, at the latest by the next gateway.
        let _in_use = fs::remove_dir(&self.path);
    }
}

/// Removes the folders of gateways that have ended.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if !is_ours {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            remove(&entry.path());
        }
    }
}

/// Removes a folder, even if a program has removed the permissions of its subfolders.
fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_err() {
        open_up(folder);
        // The next gateway removes what remains.
        let _stays = fs::remove_dir_all(folder);
    }
}

fn open_up(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _not_ours = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

impl HomeFolder {
    /// Returns the folder that a sandbox with namespaces mounts itself.
    pub(crate) fn in_namespace() -> Self {
        Self { path: PathBuf::from("/tmp"), is_on_host: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HomeFolder {
    fn drop(&mut self) {
        if self.is_on_host {
            // All processes that could write here were killed before.
            remove(&self.path);
        }
    }
}

/// Returns a random number for names that other users cannot guess.
pub(crate) fn random_u64() -> io::Result<u64> {
    let mut random = [0_u8; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
    Ok(u64::from_ne_bytes(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlocked_folders_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let alive = LockedFolder::make(parent.path()).unwrap();
        let dead = parent.path().join(format!("{PREFIX}1"));
        let other = parent.path().join("other");
        fs::create_dir_all(dead.join("1-1/locked")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::set_permissions(dead.join("1-1/locked"), fs::Permissions::from_mode(0o000)).unwrap();
        sweep(parent.path());
        assert_eq!((alive.path.exists(), dead.exists(), other.exists()), (true, false, true));
    }
}
