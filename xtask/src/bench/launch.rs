//! Child processes that end with the bench, however it ends.
//!
//! A child is started through this binary, which asks the kernel for a signal at its parent's death and then becomes
//! the child's program. Where the bench ends by itself, dropping a [`Process`] ends it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde::Deserialize;

/// How long a process may take until it can be reached.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A running child.
pub(super) struct Process(Child);

impl Process {
    /// Starts a program. The thread that calls must live as long as the bench: the kernel watches threads.
    pub(super) fn launch(
        program: impl AsRef<OsStr>,
        arguments: &[&OsStr],
        stderr: Stdio,
    ) -> anyhow::Result<Process> {
        let own = std::env::current_exe()?;
        let mut launcher = command(own);
        launcher.args(["bench", "launch", "--"]).arg(&program).args(arguments);
        let child = launcher.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn();
        let child = child.with_context(|| format!("cannot start {}", program.as_ref().display()))?;
        Ok(Process(child))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The first `http://host:port` that the process prints. What it prints later is read and forgotten, so that the
    /// pipe never fills up.
    pub(super) fn printed_address(&mut self) -> anyhow::Result<std::net::SocketAddr> {
        let stdout = self.0.stdout.take().context("the output of a process is read once")?;
        let (found, address) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Nobody listens for a second one.
                    found.send(address).ok();
                }
            }
        });
        address.recv_timeout(PATIENCE).context("the process ended or did not print where it listens")
    }
}

impl Drop for Process {
    /// A signal that a program can act on comes first: nginx would leave its workers behind.
    fn drop(&mut self) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        pid.and_then(|pid| kill_process(pid, Signal::TERM).ok());
        let asked = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if asked.elapsed() > Duration::from_secs(3) {
                self.0.kill().ok();
                self.0.wait().ok();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Becomes another program, which is sent SIGTERM when the thread that started this process ends.
pub(super) fn become_program(line: &[OsString]) -> anyhow::Result<()> {
    let (program, arguments) = line.split_first().context("no program to become")?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let error = command(program).args(arguments).exec();
    bail!("cannot become {}: {error}", program.display())
}

/// Runs this command again from an optimised build of itself.
pub(super) fn rerun_optimised() -> anyhow::Result<()> {
    let own = cargo_build("xtask", "xtask")?;
    let error = command(own).args(std::env::args_os().skip(1)).exec();
    bail!("cannot run the optimised build: {error}")
}

/// Builds a binary of the workspace with optimisation, and gives the path that cargo says it has.
pub(super) fn cargo_build(package: &str, binary: &str) -> anyhow::Result<PathBuf> {
    let mut build = crate::process::cargo();
    build.args(["build", "--release", "--package", package, "--bin", binary]);
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = build.output().context("cannot run cargo")?;
    ensure!(built.status.success(), "cargo could not build {package}");
    let messages = built.stdout.split(|byte| *byte == b'\n');
    messages.rev().find_map(executable_in).with_context(|| format!("cargo named no executable of {package}"))
}

/// The one place where the bench makes a command.
#[expect(
    clippy::disallowed_methods,
    reason = "the bench manages foreign servers and cargo, none of which serves users"
)]
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

fn address_in(line: &str) -> Option<std::net::SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split(['/', ' ', '"']).next()?.parse().ok()
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
pub(super) fn end_of(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_a_line() {
        let expected = Some("127.0.0.1:4711".parse().unwrap());
        assert_eq!(address_in("http://127.0.0.1:4711/mcp"), expected);
        assert_eq!(address_in("serving on http://127.0.0.1:4711 now"), expected);
        assert_eq!(address_in("listening"), None);
    }
}
