//! The common parts of all files of a release.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use xtask_support::process;

use crate::binary::{BinaryNeeds, GlibcVersion};
use crate::file_tree::Compression;
use crate::target::DistTarget;

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Address of the sources.
pub(crate) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The licence as an SPDX expression.
pub(crate) const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// One sentence for the lists of packages.
pub(crate) const SUMMARY: &str = "MCP gateway for every tool an agent uses";

/// The binary, and the folder for the files that contain it.
pub(crate) struct Release {
    pub target: DistTarget,
    pub needs: BinaryNeeds,
    /// Time of all files in archives, in seconds since 1970.
    pub epoch: u64,
    pub out: PathBuf,
    pub compression: Compression,
    /// Holds the stripped binary.
    folder: TempDir,
}

impl Release {
    /// Strips a copy of a binary and reads what it needs.
    pub(crate) fn of_binary(
        target: DistTarget,
        binary: &Path,
        out: PathBuf,
        compression: Compression,
    ) -> anyhow::Result<Self> {
        if !target.is_tried() {
            println!("{} is untried: it was built by no test", target.triple());
        }
        std::fs::create_dir_all(&out).with_context(|| format!("create {}", out.display()))?;
        let folder = TempDir::new().context("create a folder for the binary")?;
        let stripped = folder.path().join("toolyard");
        if target.is_native() {
            process::run(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
        } else {
            // GNU strip reads one architecture only. The linker strips what is built here.
            std::fs::copy(binary, &stripped).with_context(|| format!("copy {}", binary.display()))?;
        }
        let needs = BinaryNeeds::of(&stripped)?;
        Ok(Self { target, needs, epoch: epoch()?, out, compression, folder })
    }

    /// Returns an error if the binary needs a newer glibc than this.
    pub(crate) fn runs_on_glibc(self, oldest: GlibcVersion) -> anyhow::Result<Self> {
        let needed = self.needs.glibc;
        ensure!(needed <= oldest, "the binary needs glibc {needed}, which is newer than {oldest}");
        Ok(self)
    }

    /// The stripped binary.
    pub(crate) fn binary(&self) -> PathBuf {
        self.folder.path().join("toolyard")
    }

    /// Returns the path of a file of this release.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    /// Returns a line for each file, with its size.
    pub(crate) fn summary(&self, files: &[PathBuf]) -> anyhow::Result<String> {
        let mut lines = vec![format!("{}, glibc {} or newer", self.target.triple(), self.needs.glibc)];
        for file in files {
            let bytes = size(file)?;
            lines.push(format!("{:>9.1} MB  {}", bytes as f64 / 1e6, file.display()));
        }
        Ok(lines.join("\n"))
    }
}

/// Returns the length of a file in bytes.
pub(crate) fn size(file: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(file).with_context(|| format!("read {}", file.display()))?.len())
}

/// Runs a program and returns its standard output.
pub(crate) fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("start {program}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("output of {program}"))
}

/// Returns `SOURCE_DATE_EPOCH`, or else the time of the commit.
fn epoch() -> anyhow::Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            output_of(git.current_dir(xtask_support::root()).args(["log", "-1", "--format=%ct"]))?
        }
    };
    text.trim().parse().context("SOURCE_DATE_EPOCH is not a number of seconds")
}
