//! Atomic replacement of files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use toolyard_core::random::{hex, random_bytes};

/// Replaces the content of a file, so that no reader sees a part of it. The mode of the file and symbolic links to it are
/// preserved; a new file has the mode `new_mode`, less that of the process's mask.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, text: &str, new_mode: u32) -> io::Result<()> {
    let path = if path.exists() { path.canonicalize()? } else { path.to_owned() };
    let new = TemporaryFile::beside(&path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(new_mode).open(&new.0)?;
    if let Ok(old) = fs::metadata(&path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new.0, path)
}

/// A file that is removed on drop unless it was renamed.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Returns a new name, since a process that was killed may have left a file of another one.
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let id = random_bytes::<8>().map_err(io::Error::other)?;
        Ok(Self(path.with_file_name(format!(".{name}.{}", hex(&id)))))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn mode_and_links_are_preserved() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.json"), folder.path().join("link.json"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write(&path, "new", 0o600).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        write(&link, "changed", 0o600).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), mode(&path)), ("changed".to_owned(), 0o640));
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file remains");
        write(&folder.path().join("missing/a.json"), "", 0o600).unwrap_err();
    }
}
