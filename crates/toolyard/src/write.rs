//! A file that others write as well, read and replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// How many files as they were may lie beside one.
const MOST_KEPT: u32 = 100;

/// What is in a file; `None` where there is none.
///
/// # Errors
/// When it cannot be read, or is no text.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Keeps a text beside the file that it was read from, under a name that nothing has yet: `FILE.bak`, or with a number
/// behind. Gives that name.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn keep(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    for number in 1..=MOST_KEPT {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") });
        let kept = PathBuf::from(name);
        // It may hold secrets, and is for its user alone.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&kept) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())
                    .with_context(|| format!("cannot write {}", kept.display()))?;
                return Ok(kept);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", kept.display())),
        }
    }
    bail!("there are {MOST_KEPT} files like {}.bak already: remove some", path.display())
}

/// Puts a text in the place of another, which has to be there still. Whoever reads the file meanwhile sees the one or
/// the other. Its mode stays, and a link to it stays one.
///
/// # Errors
/// When the file has changed meanwhile, or cannot be written.
pub(crate) fn replace(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<()> {
    if read(path)?.as_deref() != before {
        bail!("{} has changed meanwhile, and stays as it is", path.display());
    }
    let path = match before {
        Some(_) => path.canonicalize()?,
        None => path.to_owned(),
    };
    put(&path, after).with_context(|| format!("cannot write {}", path.display()))
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = Temporary::beside(path)?;
    let mut file = new.create()?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new.0, path)
}

/// A file that is gone when this is dropped, unless it was renamed.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        Ok(Self(path.with_file_name(format!(".{name}.{}", std::process::id()))))
    }

    fn create(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(&self.0)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
