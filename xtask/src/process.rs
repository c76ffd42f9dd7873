//! Other programs: run to their end, or kept as long as they are needed.
//!
//! A program that is kept ends with the xtask, however that ends. It is started through this binary, which asks the
//! kernel for a signal at its parent's death and then becomes the program.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use tempfile::TempDir;

/// How long a program may take until it can be reached: debug builds on a busy machine are slow.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// How long a program may take to end after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(3);

/// The cargo that runs this xtask, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::root());
    cargo
}

/// Runs a command to its end. It reads nothing; what it prints is seen.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("start {}", shown(command)))?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs a command to its end and says whether it ended well. What it prints is not seen.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A program that runs until this value is dropped.
pub(crate) struct Process {
    child: Child,
    /// What a gateway keeps goes when it does, and is not its user's.
    _state: TempDir,
}

impl Process {
    /// Starts a program. The thread that calls must live as long as the xtask: the kernel watches threads.
    pub(crate) fn launch(program: impl AsRef<OsStr>, args: &[&OsStr], stderr: Stdio) -> anyhow::Result<Self> {
        Self::start(program, args, Stdio::null(), stderr)
    }

    /// The same, with a program that is talked to on its standard input and output.
    pub(crate) fn converse(
        program: impl AsRef<OsStr>,
        args: &[&OsStr],
        stderr: Stdio,
    ) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        let mut process = Self::start(program, args, Stdio::piped(), stderr)?;
        let ends = process.child.stdin.take().zip(process.child.stdout.take());
        let (input, output) = ends.context("a program has an input and an output")?;
        Ok((process, input, output))
    }

    fn start(
        program: impl AsRef<OsStr>,
        args: &[&OsStr],
        stdin: Stdio,
        stderr: Stdio,
    ) -> anyhow::Result<Self> {
        // Not by its path: a build that runs meanwhile may have put another binary there.
        let mut launcher = Command::new("/proc/self/exe");
        launcher.args(["launch", "--"]).arg(&program).args(args);
        let state = TempDir::new().context("make a folder for its state")?;
        launcher.env("TOOLYARD_STATE_DIR", state.path());
        let child = launcher.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn();
        let child = child.with_context(|| format!("start {}", program.as_ref().display()))?;
        Ok(Self { child, _state: state })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and waits for the end that should come of it. A program that has ended is sent none.
    pub(crate) fn end_by(&mut self, signal: Signal, limit: Duration) -> Option<ExitStatus> {
        let asked = Instant::now();
        let mut signal = Some(signal);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if let Some(signal) = signal.take() {
                pid_of(self.pid()).and_then(|pid| kill_process(pid, signal).ok());
            }
            if asked.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The first `http://host:port` that the program prints. What it prints later is read and forgotten, so that it
    /// never blocks on a full pipe.
    pub(crate) fn printed_address(&mut self) -> anyhow::Result<SocketAddr> {
        let stdout = self.child.stdout.take().context("the output of a program is read once")?;
        let (found, address) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Nobody waits for a second one.
                    found.send(address).ok();
                }
            }
        });
        address.recv_timeout(START_LIMIT).context("it ended, or did not print where it listens")
    }
}

impl Drop for Process {
    /// A signal that a program can act on comes first: it may have children of its own, as nginx has.
    fn drop(&mut self) {
        if self.end_by(Signal::TERM, END_LIMIT).is_none() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// As the kernel wants it.
pub(crate) fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Becomes another program, which is sent SIGTERM when the thread that started this process ends.
pub(crate) fn become_program(line: &[OsString]) -> anyhow::Result<()> {
    let (program, args) = line.split_first().context("no program to become")?;
    set_parent_process_death_signal(Some(Signal::TERM)).context("ask for a signal")?;
    let error = Command::new(program).args(args).exec();
    bail!("become {}: {error}", program.display())
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split(['/', ' ', '"']).next()?.parse().ok()
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn a_program_that_fails_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh -c exit 3 ended with exit status: 3");
    }
}
