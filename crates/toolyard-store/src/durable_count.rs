//! A count that survives the end of its process, however that ends.
//!
//! The count is a mapped file: a change costs no system call, and the kernel keeps it when the process is killed. It does
//! not survive the end of the machine.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

/// Maximum number of processes that share a path.
const MAX_PROCESSES: usize = 64;

/// Size of a count in its file, in bytes.
const COUNT_BYTES: u64 = 8;

/// A count of this process.
#[derive(Debug)]
pub struct DurableCount {
    path: PathBuf,
    map: MmapRaw,
    /// Locked until the process ends.
    _file: File,
}

impl DurableCount {
    /// Opens a count that no running process has, in the file `PATH-0`, or `PATH-1` and so on. It begins with the sum of
    /// those that ended processes have left, which are 0 from now on.
    ///
    /// # Errors
    /// If the folder cannot be written, or too many processes share the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut own = None::<Self>;
        for number in 0..MAX_PROCESSES {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("-{number}"));
            let path = Path::new(&name);
            if own.is_some() && !path.exists() {
                continue;
            }
            let Some(count) = Self::lock(path)? else { continue };
            match &own {
                None => own = Some(count),
                Some(own) => {
                    own.count().fetch_add(count.count().swap(0, Ordering::Relaxed), Ordering::Relaxed);
                }
            }
        }
        let shared =
            || io::Error::other(format!("more than {MAX_PROCESSES} processes use {}", path.display()));
        own.ok_or_else(shared)
    }

    /// Opens the count in a file; `None` if it is that of a running process.
    fn lock(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = loop {
            let file = options.open(path)?;
            match file.try_lock() {
                // Its process has removed it after it was opened here.
                Ok(()) if file.metadata()?.nlink() == 0 => {}
                Ok(()) => break file,
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        };
        file.set_len(COUNT_BYTES)?;
        let map = MmapRaw::map_raw(&file)?;
        Ok(Some(Self { path: path.to_owned(), map, _file: file }))
    }

    /// The count.
    #[must_use]
    #[expect(unsafe_code, reason = "the count is memory that the kernel shares with a file")]
    pub fn count(&self) -> &AtomicU64 {
        // SAFETY: the map is a whole page, so that it is aligned and long enough, and lives as long as `self`. The lock
        // excludes other processes, and this process reaches it by this function only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast()) }
    }
}

impl Drop for DurableCount {
    /// Leaves no file if there is nothing to report.
    fn drop(&mut self) {
        if self.count().load(Ordering::Relaxed) == 0 {
            // It would only be read in vain.
            let _removed = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(count: &DurableCount) -> u64 {
        count.count().load(Ordering::Relaxed)
    }

    #[test]
    fn count_is_that_of_ended_processes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/lost");
        let open = || DurableCount::open(&path).unwrap();
        let (first, second) = (open(), open());
        assert_eq!((value(&first), value(&second)), (0, 0));
        first.count().fetch_add(3, Ordering::Relaxed);
        second.count().fetch_add(4, Ordering::Relaxed);
        // That of a running process stays its own.
        drop(first);
        assert_eq!(value(&open()), 3);
        drop(second);
        let all = open();
        assert_eq!(value(&all), 7);
        assert_eq!(value(&open()), 0);
        all.count().store(0, Ordering::Relaxed);
        drop(all);
        assert_eq!(value(&open()), 0);
        assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 0);
    }

    #[test]
    fn folder_that_cannot_be_written_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(DurableCount::open(&file.path().join("lost")).is_err());
    }
}
