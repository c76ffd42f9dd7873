//! Backups.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use toolyard_core::store::{StoreError, StoreErrorKind};

use super::{errors, file, migration};
use crate::BackupError;

/// Copies a store to a file that must not exist. A copy that fails leaves no file behind.
pub(super) fn back_up(from: &Path, to: &Path) -> Result<u64, BackupError> {
    let source = file::open_reader(from).map_err(|error| file::database_error(from, error))?;
    migration::version(&source).map_err(|error| error.into_open_error(&from.display()))?;
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // The final name appears only once the copy is complete.
    let path = partial_path(to);
    let partial = PartialFile::create(path.clone()).map_err(|source| BackupError::Write { path, source })?;
    Connection::open(&partial.0)
        .map_err(|error| BackupError::Write { path: to.to_owned(), source: io::Error::other(error) })
        .and_then(|mut target| {
            copy_pages(&source, &mut target)
                .map_err(|source| BackupError::Copy { path: to.to_owned(), source })
        })?;
    partial.finish(to).map_err(|source| BackupError::Write { path: to.to_owned(), source })
}

/// Copies all pages in one step. A step reads a snapshot; with several, a write by another connection would restart the
/// copy.
fn copy_pages(source: &Connection, target: &mut Connection) -> Result<(), StoreError> {
    let progress =
        Backup::new(source, target).and_then(|backup| backup.step(-1)).map_err(errors::store_error)?;
    match progress {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::new(StoreErrorKind::Unavailable, "another process has locked the file")),
    }
}

/// The temporary file of the copy, removed on drop unless it was renamed.
struct PartialFile(PathBuf);

fn partial_path(to: &Path) -> PathBuf {
    let mut name = OsString::from(to);
    name.push(".partial");
    name.into()
}

impl PartialFile {
    /// Creates the file. An existing one may belong to another backup that is still running.
    fn create(path: PathBuf) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self(path))
    }

    fn finish(self, to: &Path) -> io::Result<u64> {
        File::open(&self.0)?.sync_all()?;
        fs::rename(&self.0, to)?;
        Ok(fs::metadata(to)?.len())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Fails if the file was renamed.
        let _gone = fs::remove_file(&self.0);
    }
}
