//! The machine's own uv: found on the search path and asked for its version, outside sandboxes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::pip;
use super::{PackageError, PackageOptions};

/// Returns the path of a configured program: a name is searched on this search path.
pub(super) fn find(program: &Path, search_path: Option<OsString>) -> Option<PathBuf> {
    if program.components().count() != 1 {
        return Some(program.to_owned());
    }
    let folders: Vec<_> = std::env::split_paths(&search_path?).collect();
    let programs =
        folders.into_iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(program));
    // A sandbox gets only the file itself, so links are resolved here.
    programs.filter_map(|program| program.canonicalize().ok()).find(|program| is_binary(program))
}

/// True if a file is the program itself. A wrapper script would not find the program in a sandbox.
fn is_binary(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = path.is_file().then(|| File::open(path)).and_then(Result::ok);
    read.is_some_and(|mut file| file.read_exact(&mut start).is_ok()) && start != *b"#!"
}

/// Returns the version that a program reports: `uv 0.9.0`.
pub(super) async fn version(options: &PackageOptions, program: &Path) -> Result<String, PackageError> {
    let output =
        pip::run_program(options, program.as_os_str(), &["--no-config", "--version"].map(OsStr::new)).await?;
    match output.trim() {
        version if version.starts_with("uv ") => Ok(version.chars().take(100).collect()),
        _ => Err(PackageError::NoInterpreter(format!("{} is not uv", program.display()))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn uv_is_the_first_binary_of_the_search_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["none", "script", "linked", "program"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("script/uv"), "#!/bin/sh\n").unwrap();
        std::fs::write(at("program/uv"), "\x7fELF").unwrap();
        symlink(at("program/uv"), at("linked/uv")).unwrap();
        let check = |names: &[&str], expected: Option<&str>| {
            let path = std::env::join_paths(names.iter().map(|name| at(name))).unwrap();
            assert_eq!(find(Path::new("uv"), Some(path)), expected.map(at), "{names:?}");
        };
        check(&["none", "script"], None);
        check(&["none", "script", "linked"], Some("program/uv"));
        check(&["program"], Some("program/uv"));
        assert_eq!(find(Path::new("uv"), None), None);
        assert_eq!(find(Path::new("uv"), Some("relative".into())), None);
        assert_eq!(find(Path::new("/opt/uv"), None), Some("/opt/uv".into()));
    }
}
