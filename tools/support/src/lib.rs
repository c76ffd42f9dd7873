//! Shared parts of `xtask` and the tools beside it: other programs, builds of the workspace, installed peers and
//! measurements of processes. Nothing here is asynchronous, so that `xtask` compiles in seconds.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a developer's tool: it starts other programs and prints"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;

pub mod builds;
pub mod measure;
pub mod peers;
pub mod process;
pub mod system;

/// Variable with the folder of documents and recordings that are not part of the repository.
pub const CORPORA_VARIABLE: &str = "TOOLYARD_CORPORA";

/// Returns the repository's root: two folders above this package's.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// Returns the folder of the corpora. `None` if the variable is not set; a folder without a `part` is an error.
pub fn corpora(part: &str) -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = std::env::var_os(CORPORA_VARIABLE).filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let part = Path::new(&folder).join(part);
    ensure!(part.is_dir(), "{CORPORA_VARIABLE}: no folder {}", part.display());
    Ok(Some(folder.into()))
}

/// Returns the exit code of a command; prints an error with its causes. A backtrace would hide them.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  caused by: {cause}");
    }
    ExitCode::FAILURE
}
