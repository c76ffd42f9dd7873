//! The folder in which steps read and write files. Symbolic links in it are refused, so that no path leaves it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use toolyard_core::random::{hex, random_bytes};

use crate::failure::StepFailure;
use crate::shared_path::SharedPath;

/// Mode of new files and folders, less that of the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o640);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o750);

/// Flags of every folder on the way to a file.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Maximum number of files and folders in the folder when a file is written.
const MAX_ENTRIES: usize = 10_000;

/// A folder for files of steps.
#[derive(Debug, Clone)]
pub struct SharedFolder {
    path: Arc<PathBuf>,
    /// Maximum size of all files when a file is written. Files that are written at the same time may exceed it.
    max_bytes: u64,
}

/// The reason why a file is not read or written. An agent reads the text, which names no folder of the machine.
#[derive(Debug, thiserror::Error)]
pub enum SharedFileError {
    /// A component of the path is a symbolic link, or not of the expected kind.
    #[error(
        "`{0}` leads through a symbolic link, or through something that is neither a folder nor a file: it is refused. Use \
         another path"
    )]
    NotPlain(SharedPath),
    /// The file does not exist.
    #[error("the shared folder has no file `{0}`")]
    Missing(SharedPath),
    /// The file is too large.
    #[error("the file `{path}` has more than {limit} bytes, the maximum of an input")]
    TooLarge {
        /// Path of the file.
        path: SharedPath,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The file is not a text.
    #[error("the file `{0}` is not a text in UTF-8")]
    NotText(SharedPath),
    /// The folder would become too large.
    #[error(
        "the file `{path}` does not fit into the shared folder, which may have {limit} bytes. Use a path of an older file, or ask \
         the operator of the gateway to delete files or to raise `builtins.wisps.sharedBytes`"
    )]
    Full {
        /// Path of the file.
        path: SharedPath,
        /// Maximum number of bytes of all files.
        limit: u64,
    },
    /// The folder has too many entries.
    #[error(
        "the file `{0}` is not written: the shared folder has {MAX_ENTRIES} files and folders, the maximum. Use a path of an \
         older file, or ask the operator of the gateway to delete some"
    )]
    TooManyEntries(SharedPath),
    /// The operating system refused.
    #[error("the file `{path}` cannot be used: {kind}")]
    System {
        /// Path of the file.
        path: SharedPath,
        /// Kind of the error.
        kind: io::ErrorKind,
    },
    /// The folder itself cannot be opened.
    #[error("the shared folder cannot be opened: {0}. Ask the operator of the gateway")]
    Folder(io::ErrorKind),
}

impl From<SharedFileError> for StepFailure {
    fn from(error: SharedFileError) -> Self {
        let message = error.to_string();
        match error {
            SharedFileError::NotPlain(_) => Self::structural(message),
            SharedFileError::System { .. } | SharedFileError::Folder(_) => Self::external(message),
            _ => Self::data(message),
        }
    }
}

impl SharedFolder {
    /// Returns the folder of a path, which must exist when files are used, with a maximum size of all its files.
    #[must_use]
    pub fn new(path: PathBuf, max_bytes: usize) -> Self {
        Self { path: Arc::new(path), max_bytes: max_bytes as u64 }
    }

    /// Replaces a file, so that no reader sees a part of it, and creates the folders of its path.
    ///
    /// # Errors
    /// If a component of the path is a symbolic link, the folder is full, or the file cannot be written.
    pub async fn write(&self, path: &SharedPath, text: &str) -> Result<(), SharedFileError> {
        let (folder, path, text) = (self.clone(), path.clone(), text.to_owned());
        blocking(move || folder.write_now(&path, &text)).await
    }

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// If a component of the path is a symbolic link, or the file cannot be read, is too large, or is not a text.
    pub async fn read(&self, path: &SharedPath, limit: usize) -> Result<String, SharedFileError> {
        let (folder, path) = (self.clone(), path.clone());
        blocking(move || folder.read_now(&path, limit)).await
    }

    fn write_now(&self, path: &SharedPath, text: &str) -> Result<(), SharedFileError> {
        let fault = |errno| fault(path, errno);
        let (folders, name) = path.split();
        let mut folder = self.open()?;
        self.check_room(path, text.len() as u64)?;
        for component in folders {
            match mkdirat(&folder, component, FOLDER_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fault(errno)),
            }
            folder = openat(&folder, component, FOLDER, Mode::empty()).map_err(fault)?;
        }
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                return Err(SharedFileError::NotPlain(path.clone()));
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(fault(errno)),
        }
        let new = temporary_name().map_err(|error| system(path, &error))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&folder, &*new, flags, FILE_MODE).map_err(fault)?);
        let written = file.write_all(text.as_bytes()).map_err(|error| system(path, &error));
        let written = written.and_then(|()| renameat(&folder, &*new, &folder, name).map_err(fault));
        if written.is_err() {
            unlinkat(&folder, &*new, AtFlags::empty()).ok();
        }
        written
    }

    fn read_now(&self, path: &SharedPath, limit: usize) -> Result<String, SharedFileError> {
        let fault = |errno| fault(path, errno);
        let (folders, name) = path.split();
        let mut folder = self.open()?;
        for component in folders {
            folder = openat(&folder, component, FOLDER, Mode::empty()).map_err(fault)?;
        }
        // A pipe that nothing writes to would block without it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&folder, name, flags, Mode::empty()).map_err(fault)?);
        let metadata = file.metadata().map_err(|error| system(path, &error))?;
        if !metadata.is_file() {
            return Err(SharedFileError::NotPlain(path.clone()));
        }
        let (mut bytes, most) = (Vec::new(), u64::try_from(limit).unwrap_or(u64::MAX));
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| system(path, &error))?;
        if bytes.len() > limit {
            return Err(SharedFileError::TooLarge { path: path.clone(), limit });
        }
        String::from_utf8(bytes).map_err(|_| SharedFileError::NotText(path.clone()))
    }

    /// Checks that a file fits into the folder, in place of the one that it replaces.
    fn check_room(&self, path: &SharedPath, bytes: u64) -> Result<(), SharedFileError> {
        let replaced =
            fs::symlink_metadata(self.path.join(path.as_str())).ok().map(|metadata| metadata.len());
        let (mut total, mut entries) = (0_u64, 0_usize);
        let mut folders = vec![self.path.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let Ok(listed) = fs::read_dir(folder) else { continue };
            // Files that other steps remove meanwhile are not counted.
            for (entry, metadata) in
                listed.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
            {
                entries += 1;
                if metadata.is_dir() {
                    folders.push(entry);
                } else {
                    total = total.saturating_add(metadata.len());
                }
            }
            if entries >= MAX_ENTRIES + usize::from(replaced.is_some()) {
                return Err(SharedFileError::TooManyEntries(path.clone()));
            }
        }
        let others = total.saturating_sub(replaced.unwrap_or_default());
        if others.saturating_add(bytes) > self.max_bytes {
            return Err(SharedFileError::Full { path: path.clone(), limit: self.max_bytes });
        }
        Ok(())
    }

    /// Opens the folder itself, which the operator may have made a symbolic link.
    fn open(&self) -> Result<OwnedFd, SharedFileError> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(&**self.path, flags, Mode::empty())
            .map_err(|errno| SharedFileError::Folder(io::Error::from(errno).kind()))
    }
}

fn fault(path: &SharedPath, errno: Errno) -> SharedFileError {
    match errno {
        Errno::NOENT => SharedFileError::Missing(path.clone()),
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::ISDIR => SharedFileError::NotPlain(path.clone()),
        other => system(path, &other.into()),
    }
}

fn system(path: &SharedPath, error: &io::Error) -> SharedFileError {
    SharedFileError::System { path: path.clone(), kind: error.kind() }
}

/// Returns a name that no path of an agent has.
fn temporary_name() -> io::Result<String> {
    let id = random_bytes::<8>().map_err(io::Error::other)?;
    Ok(format!(".{}.new", hex(&id)))
}

/// Runs work on files beside the threads of connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SharedFileError> + Send + 'static,
) -> Result<T, SharedFileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or(Err(SharedFileError::Folder(io::ErrorKind::Interrupted)))
}

#[cfg(test)]
mod tests;
