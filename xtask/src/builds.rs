//! Programs of this workspace, built now or before.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Runs this command again from an optimised build of itself.
pub(crate) fn rerun_optimised() -> anyhow::Result<()> {
    let error = Command::new(optimised()?).args(std::env::args_os().skip(1)).exec();
    bail!("cannot run the optimised build: {error}")
}

/// An optimised build of this program.
pub(crate) fn optimised() -> anyhow::Result<PathBuf> {
    cargo_build(&["--package", "xtask", "--bin", "xtask"])
}

/// The program that was named, or else the one that cargo builds of `target`.
pub(crate) fn named_or_built(named: Option<&Path>, target: &[&str]) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => path.canonicalize().with_context(|| format!("no program at {}", path.display())),
        None => cargo_build(target),
    }
}

/// A program of this workspace that was built with this one: it stands beside it. So does this one itself, which may
/// have been built anew since it was started; the file that runs is gone then.
pub(crate) fn built(program: &str) -> anyhow::Result<PathBuf> {
    let xtask = std::env::current_exe().context("find the build folder")?;
    Ok(xtask.with_file_name(program))
}

/// Builds a program with optimisation, and gives the path that cargo says it has. `target` is what cargo is told of it.
fn cargo_build(target: &[&str]) -> anyhow::Result<PathBuf> {
    let mut build = crate::process::cargo();
    build.args(["build", "--release"]).args(target);
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = build.output().context("cannot run cargo")?;
    let shown = target.join(" ");
    ensure!(built.status.success(), "cargo could not build {shown}");
    let messages = built.stdout.split(|byte| *byte == b'\n');
    messages.rev().find_map(executable_in).with_context(|| format!("cargo named no executable of {shown}"))
}

/// One of the messages that cargo prints, a line each.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

fn executable_in(message: &[u8]) -> Option<PathBuf> {
    serde_json::from_slice::<Artifact>(message).ok()?.executable
}

/// The end of a log, for an error about the process that wrote it.
pub(crate) fn end_of(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
