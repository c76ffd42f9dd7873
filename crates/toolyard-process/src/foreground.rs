//! Programs of the system that a command runs for its user, such as `systemctl`.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, ExitStatus, Output, Stdio};

/// Runs a program with the standard streams of this process, and waits for its end.
///
/// # Errors
/// If the program cannot be started; `NotFound` if there is none in `PATH`.
#[expect(clippy::disallowed_methods, reason = "this crate starts the processes of all others")]
pub fn run_in_foreground(program: &str, args: &[impl AsRef<OsStr>]) -> io::Result<ExitStatus> {
    Command::new(program).args(args).status()
}

/// Runs a program without input and returns its output.
///
/// # Errors
/// If the program cannot be started; `NotFound` if there is none in `PATH`.
#[expect(clippy::disallowed_methods, reason = "this crate starts the processes of all others")]
pub fn capture(program: &str, args: &[impl AsRef<OsStr>]) -> io::Result<Output> {
    Command::new(program).args(args).stdin(Stdio::null()).output()
}
