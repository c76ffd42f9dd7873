//! Where Python is.

use std::path::{Path, PathBuf};

/// Where cells look for programs.
const FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// What cells see anyway.
const SYSTEM: [&str; 2] = ["/usr", "/bin"];

/// An interpreter, as cells have it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub(super) command: PathBuf,
    /// The folder that it is installed in, where cells do not see that anyway.
    pub(super) folder: Option<PathBuf>,
}

/// The interpreter that programs in cells find under this name: a path stays as it is, and a bare name is looked for
/// in the folders of the system, which may be others than those in the gateway's own `PATH`. It is what packages for
/// scripts are installed by.
#[must_use]
pub fn interpreter(python: &Path) -> PathBuf {
    if python.components().count() != 1 {
        return python.to_owned();
    }
    let found = FOLDERS.iter().map(|folder| Path::new(folder).join(python)).find(|path| path.exists());
    found.unwrap_or_else(|| python.to_owned())
}

impl Interpreter {
    pub(super) fn find(python: &Path) -> Self {
        let command = interpreter(python);
        let is_seen = |path: &Path| SYSTEM.iter().any(|folder| path.starts_with(folder));
        // Links lead to where its library is.
        let Ok(real) = command.canonicalize() else { return Self { command, folder: None } };
        if is_seen(&command) && is_seen(&real) {
            return Self { command, folder: None };
        }
        let folder = real.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent);
        let folder = folder.or_else(|| real.parent()).filter(|folder| folder.parent().is_some());
        Self { folder: folder.filter(|_| !is_seen(&real)).map(Path::to_owned), command: real }
    }
}
