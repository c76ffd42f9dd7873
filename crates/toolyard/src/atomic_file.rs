//! Atomic replacement and backups of files that other programs write as well.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolyard_manifest::refuse_named_pipe;
use toolyard_server::atomic_file::write;

/// Maximum number of backups beside a file.
const MAX_BACKUPS: u32 = 100;

/// Mode of a new file.
const NEW_FILE_MODE: u32 = 0o666;

/// Reads a file, or returns `None` if it does not exist.
///
/// # Errors
/// Fails if the file cannot be read, is a named pipe, or is not UTF-8.
pub(crate) fn read_optional(path: &Path) -> anyhow::Result<Option<String>> {
    match refuse_named_pipe(path).and_then(|()| fs::read_to_string(path)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Saves a backup of a text beside its file as `FILE.bak`, or `FILE.bak2` and so on, and returns the path. Existing
/// files are not replaced.
///
/// # Errors
/// Fails if the backup cannot be written or there are too many.
pub(crate) fn back_up(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    for number in 1..=MAX_BACKUPS {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") });
        let backup = PathBuf::from(name);
        // The backup may contain secrets: only its owner may read it.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&backup) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())
                    .with_context(|| format!("cannot write {}", backup.display()))?;
                return Ok(backup);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", backup.display())),
        }
    }
    bail!(
        "too many backups: {MAX_BACKUPS} files named like {}.bak already exist; remove some",
        path.display()
    )
}

/// Replaces the content of a file atomically if it is still `before`. The mode of the file and symbolic links to it are
/// preserved.
///
/// # Errors
/// Fails if the file has changed or cannot be written.
pub(crate) fn replace(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<()> {
    if read_optional(path)?.as_deref() != before {
        bail!("{} was changed by another program; nothing is written", path.display());
    }
    let written =
        path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| write(path, after, NEW_FILE_MODE));
    written.with_context(|| format!("cannot write {}", path.display()))
}
