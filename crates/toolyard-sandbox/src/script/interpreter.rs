//! Location of the Python interpreter.

use std::path::{Path, PathBuf};

/// Search path of sandboxes.
const SEARCH_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Paths that sandboxes see by default.
const VISIBLE_FOLDERS: [&str; 2] = ["/usr", "/bin"];

/// An interpreter as sandboxes see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PythonInterpreter {
    pub(crate) command: PathBuf,
    /// Installation folder, if sandboxes do not see it by default.
    pub(crate) folder: Option<PathBuf>,
}

/// Returns the interpreter that sandboxed programs find under this name: a path is unchanged, and a bare name is
/// searched in the folders of the system, which may differ from the gateway's own `PATH`. Packages for scripts are
/// installed with it.
#[must_use]
pub fn interpreter(python: &Path) -> PathBuf {
    if python.components().count() != 1 {
        return python.to_owned();
    }
    let program =
        SEARCH_FOLDERS.iter().map(|folder| Path::new(folder).join(python)).find(|path| path.exists());
    program.unwrap_or_else(|| python.to_owned())
}

impl PythonInterpreter {
    pub(crate) fn find(python: &Path) -> Self {
        let command = interpreter(python);
        let is_visible = |path: &Path| VISIBLE_FOLDERS.iter().any(|folder| path.starts_with(folder));
        // Links lead to the library folder.
        let Ok(real) = command.canonicalize() else { return Self { command, folder: None } };
        if is_visible(&command) && is_visible(&real) {
            return Self { command, folder: None };
        }
        let folder = real.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent);
        let folder = folder.or_else(|| real.parent()).filter(|folder| folder.parent().is_some());
        Self { folder: folder.filter(|_| !is_visible(&real)).map(Path::to_owned), command: real }
    }
}
