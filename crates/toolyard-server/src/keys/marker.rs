//! The marker that the gateway of a configuration has had keys.
//!
//! It outlives the store. A gateway whose store is lost has no keys, and without the marker it would admit every
//! request from its machine.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Content of the marker file.
const MARKER_TEXT: &str = "The gateway of this configuration has had keys. It requires a key even if its store is lost.\n\
                           `toolyard key forget` removes this file.\n";

/// The marker file. It is written to the first writable path, and counts at every path.
#[derive(Debug, Clone)]
pub struct KeyMarker {
    paths: Arc<[PathBuf]>,
}

impl KeyMarker {
    /// Creates a marker with these possible paths, the best first.
    #[must_use]
    pub fn at(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect() }
    }

    /// Returns the existing marker file.
    #[must_use]
    pub fn existing(&self) -> Option<&Path> {
        // An unreadable folder has no file that this user has created.
        self.paths.iter().find(|path| path.symlink_metadata().is_ok()).map(PathBuf::as_path)
    }

    /// Records that there are keys. Returns the file if it is new.
    ///
    /// # Errors
    /// If no path is writable: the error of the last one.
    pub fn set(&self) -> io::Result<Option<&Path>> {
        if self.existing().is_some() {
            return Ok(None);
        }
        let mut result = Ok(None);
        for path in self.paths.iter() {
            match write(path) {
                Ok(()) => return Ok(Some(path)),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Deletes the marker. Returns the deleted files.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn clear(&self) -> io::Result<Vec<&Path>> {
        let mut removed = Vec::new();
        for path in self.paths.iter().filter(|path| path.symlink_metadata().is_ok()) {
            fs::remove_file(path)?;
            removed.push(path.as_path());
        }
        Ok(removed)
    }
}

fn write(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
        Ok(mut file) => file.write_all(MARKER_TEXT.as_bytes()),
        // Another gateway of this configuration has written it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_is_written_to_the_first_writable_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("a file");
        // Nothing can be created below a file, not even by root.
        let paths = [file.join("marker"), folder.path().join("state/marker"), folder.path().join("marker")];
        let marker = KeyMarker::at(paths.clone());
        assert_eq!(marker.existing(), None);
        assert_eq!(marker.set().expect("a marker"), Some(&*paths[1]));
        assert_eq!(marker.set().expect("a marker"), None, "it already exists");
        assert_eq!(marker.existing(), Some(&*paths[1]));
        fs::write(&paths[2], "").expect("another one");
        assert_eq!(marker.clear().expect("no marker"), [&paths[1], &paths[2]]);
        assert_eq!(marker.existing(), None);
        let nowhere = KeyMarker::at([paths[0].clone()]);
        nowhere.set().expect_err("no place");
        assert_eq!(KeyMarker::at([]).set().expect("nothing to do"), None);
    }
}
