//! Backups.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use toolyard_core::store::{StoreError, Trouble};

use super::{file, migration, trouble};
use crate::BackupError;

/// Copies a store to a file that is not there yet. A copy that fails leaves nothing behind.
pub(super) fn copy(from: &Path, to: &Path) -> Result<u64, BackupError> {
    let source = file::reading(from).map_err(|error| file::refused(from, error))?;
    migration::version(&source).map_err(|unfit| unfit.at(&from.display()))?;
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // What bears the name is whole.
    let path = partial(to);
    let partial = Partial::make(path.clone()).map_err(|source| BackupError::Write { path, source })?;
    Connection::open(&partial.0)
        .map_err(|error| BackupError::Write { path: to.to_owned(), source: io::Error::other(error) })
        .and_then(|mut target| {
            pages(&source, &mut target).map_err(|source| BackupError::Copy { path: to.to_owned(), source })
        })?;
    partial.finish(to).map_err(|source| BackupError::Write { path: to.to_owned(), source })
}

/// All pages in one step: a step reads them as they are at one moment, and what others write meanwhile would make a copy
/// in several begin again.
fn pages(source: &Connection, target: &mut Connection) -> Result<(), StoreError> {
    let copied = Backup::new(source, target).and_then(|backup| backup.step(-1)).map_err(trouble::error)?;
    match copied {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::new(Trouble::Unavailable, "somebody else has it locked")),
    }
}

/// The file that is being written, which is removed unless it is finished.
struct Partial(PathBuf);

fn partial(to: &Path) -> PathBuf {
    let mut name = OsString::from(to);
    name.push(".partial");
    name.into()
}

impl Partial {
    /// Makes it. One that is there already may be somebody else's, who is at it.
    fn make(path: PathBuf) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self(path))
    }

    fn finish(self, to: &Path) -> io::Result<u64> {
        File::open(&self.0)?.sync_all()?;
        fs::rename(&self.0, to)?;
        Ok(fs::metadata(to)?.len())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Not there any more where it has its name.
        let _gone = fs::remove_file(&self.0);
    }
}
