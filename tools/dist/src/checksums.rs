//! `SHA256SUMS`, which `sha256sum --check` reads.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::release::{Release, output_of};

/// Writes the checksums of files beside them.
pub(crate) fn write(release: &Release, files: &[PathBuf]) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for file in files {
        let name = file.file_name().context("a file without a name")?;
        lines.push(format!("{}  {}\n", sha256(file)?, name.to_string_lossy()));
    }
    lines.sort_by(|one, other| one[64..].cmp(&other[64..]));
    let path = release.file("SHA256SUMS");
    std::fs::write(&path, lines.concat()).with_context(|| format!("write {}", path.display()))
}

/// Returns the SHA-256 of a file in hexadecimal digits.
pub(crate) fn sha256(file: &Path) -> anyhow::Result<String> {
    let line = output_of(Command::new("sha256sum").arg("--binary").arg(file))?;
    // The line of a path with a backslash begins with one.
    let sum = line.trim_start_matches('\\').get(..64).context("sha256sum printed no checksum")?;
    Ok(sum.to_owned())
}
