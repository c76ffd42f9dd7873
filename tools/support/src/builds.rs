//! Programs of this workspace, built now or earlier.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// A profile of cargo with optimisation, in the workspace and in the fixtures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CargoProfile {
    /// The profile of `cargo run --release`.
    Release,
    /// The profile of releases.
    Dist,
}

impl CargoProfile {
    /// The name of the profile.
    pub const fn name(self) -> &'static str {
        match self {
            CargoProfile::Release => "release",
            CargoProfile::Dist => "dist",
        }
    }
}

/// The given path, or else the program that cargo builds for `target`.
pub fn path_or_build(path: Option<&Path>, target: &[&str], profile: CargoProfile) -> anyhow::Result<PathBuf> {
    match path {
        Some(path) => path.canonicalize().with_context(|| format!("no program at {}", path.display())),
        None => cargo_build(target, profile),
    }
}

/// A program that was built together with this one, in the same folder. This program itself may have been built again
/// since it started; the running file is deleted then.
pub fn sibling_program(program: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("locate the build folder")?;
    Ok(own.with_file_name(program))
}

/// Builds a program with optimisation, and returns its path as reported by cargo. `target` has the arguments of cargo.
fn cargo_build(target: &[&str], profile: CargoProfile) -> anyhow::Result<PathBuf> {
    let mut build = crate::process::cargo();
    build.args(["build", "--profile", profile.name()]).args(target);
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = build.output().context("cannot run cargo")?;
    let target_name = target.join(" ");
    ensure!(output.status.success(), "cargo failed to build {target_name}");
    let messages = output.stdout.split(|byte| *byte == b'\n');
    messages
        .rev()
        .find_map(executable_in)
        .with_context(|| format!("cargo reported no executable of {target_name}"))
}

/// One of the messages of cargo, a line each.
#[derive(Deserialize)]
struct CargoArtifact {
    executable: Option<PathBuf>,
}

fn executable_in(message: &[u8]) -> Option<PathBuf> {
    serde_json::from_slice::<CargoArtifact>(message).ok()?.executable
}

/// The last lines of a log, for an error about the process that wrote it.
pub fn log_tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
