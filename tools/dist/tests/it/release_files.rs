//! Files of a release, made by the tool.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Makes the files of these kinds in a new folder.
pub(crate) fn make(kinds: &str) -> TempDir {
    let out = TempDir::new().unwrap();
    make_in(out.path(), kinds);
    out
}

/// Makes the files of these kinds in a folder.
pub(crate) fn make_in(out: &Path, kinds: &str) {
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask-dist"));
    dist.arg("--binary").arg(gateway()).args(["--fast", "--only", kinds, "--out"]).arg(out);
    printed(&mut dist);
}

/// The gateway of the same build.
fn gateway() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask-dist")).with_file_name("toolyard");
    assert!(program.exists(), "build the gateway first: cargo build --package toolyard");
    program
}

/// Returns the file in a folder whose name ends like this.
pub(crate) fn file(folder: &TempDir, end: &str) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().ends_with(end);
    files.into_iter().find(named).unwrap_or_else(|| panic!("no file *{end}"))
}

/// Runs a program that has to succeed, and returns what it prints.
pub(crate) fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
