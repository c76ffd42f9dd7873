//! Other programs: run to their end, or in the background.
//!
//! A background program ends with the program that launched it, even if that crashes: it is started through a copy of
//! that program, which asks the kernel for a signal at the death of its parent and then executes the other
//! ([`exec_if_launcher`]).

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use tempfile::TempDir;

/// Maximum time until a program is reachable: debug builds on a busy machine are slow.
pub const START_LIMIT: Duration = Duration::from_secs(30);

/// Maximum time until a program has ended after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(3);

/// The first argument of a copy that executes another program.
const LAUNCH: &str = "launch";

/// Executes the program that a [`LaunchedProcess`] names. Returns if this process is not the copy that it starts.
///
/// This is the first statement in `main` of each program that launches others.
pub fn exec_if_launcher() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|first| first != LAUNCH) {
        return Ok(());
    }
    let program = args.next().context("no program to execute")?;
    // SIGTERM when the thread that started this process ends.
    set_parent_process_death_signal(Some(Signal::TERM)).context("set the death signal")?;
    let error = Command::new(&program).args(args).exec();
    bail!("execute {}: {error}", program.display())
}

/// Returns a command of the cargo that runs this program, in the repository's root.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::root());
    // `cargo run` sets these for this program. Build scripts that read them would run again, such as that of `ring`, and
    // all crates above it would be built anew.
    for (name, _) in std::env::vars_os() {
        let is_of_package = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_of_package {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a command to its end, without input and with its output shown.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("start {}", command_line(command)))?;
    ensure!(status.success(), "{} ended with {status}", command_line(command));
    Ok(())
}

/// Runs a command to its end with its output hidden; `true` if it succeeded.
pub fn is_successful(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A program that runs until this value is dropped.
pub struct LaunchedProcess {
    child: Child,
    /// State folder of a gateway, separate from the user's and removed with the process.
    _state: TempDir,
}

impl LaunchedProcess {
    /// Starts a program. The calling thread has to live as long as the program: the kernel watches threads.
    pub fn launch(program: impl AsRef<OsStr>, args: &[&OsStr], stderr: Stdio) -> anyhow::Result<Self> {
        Self::start(program, args, Stdio::null(), stderr)
    }

    /// As [`LaunchedProcess::launch`], with pipes to its standard input and output.
    pub fn launch_with_pipes(
        program: impl AsRef<OsStr>,
        args: &[&OsStr],
        stderr: Stdio,
    ) -> anyhow::Result<(Self, ChildStdin, ChildStdout)> {
        let mut process = Self::start(program, args, Stdio::piped(), stderr)?;
        let ends = process.child.stdin.take().zip(process.child.stdout.take());
        let (input, output) = ends.context("no pipes to the program")?;
        Ok((process, input, output))
    }

    fn start(
        program: impl AsRef<OsStr>,
        args: &[&OsStr],
        stdin: Stdio,
        stderr: Stdio,
    ) -> anyhow::Result<Self> {
        // Not by its path: a concurrent build may have replaced the file.
        let mut launcher = Command::new("/proc/self/exe");
        launcher.arg(LAUNCH).arg(&program).args(args);
        let state = TempDir::new().context("create a folder for its state")?;
        launcher.env("TOOLYARD_STATE_DIR", state.path());
        let child = launcher.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn();
        let child = child.with_context(|| format!("start {}", program.as_ref().display()))?;
        Ok(Self { child, _state: state })
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and waits for the end; `None` after the limit. A program that has ended gets no signal.
    pub fn terminate_with(&mut self, signal: Signal, limit: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        let mut signal = Some(signal);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if let Some(signal) = signal.take() {
                pid_of(self.pid()).and_then(|pid| kill_process(pid, signal).ok());
            }
            if started.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The first `http://host:port` that the program prints. Later output is read and dropped, so that the program
    /// never blocks on a full pipe.
    pub fn printed_address(&mut self) -> anyhow::Result<SocketAddr> {
        self.printed_address_within(START_LIMIT)
    }

    /// As [`LaunchedProcess::printed_address`], with another limit.
    pub fn printed_address_within(&mut self, limit: Duration) -> anyhow::Result<SocketAddr> {
        let stdout = self.child.stdout.take().context("the output of the program is already being read")?;
        let (sender, address) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Fails after the first address: the receiver is gone.
                    sender.send(address).ok();
                }
            }
        });
        address.recv_timeout(limit).context("the program ended, or did not print its address")
    }
}

impl Drop for LaunchedProcess {
    /// Sends SIGTERM first, so that a program can end its own children, as nginx does.
    fn drop(&mut self) {
        if self.terminate_with(Signal::TERM, END_LIMIT).is_none() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Converts a process ID for the kernel.
pub fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split(['/', ' ', '"']).next()?.parse().ok()
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_from_a_line() {
        let expected = Some("127.0.0.1:4711".parse().unwrap());
        assert_eq!(address_in("http://127.0.0.1:4711/mcp"), expected);
        assert_eq!(address_in("serving on http://127.0.0.1:4711 now"), expected);
        assert_eq!(address_in("listening"), None);
    }

    #[test]
    fn error_names_the_failed_program() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh -c exit 3 ended with exit status: 3");
    }
}
