//! Child processes. No other crate starts processes.
//!
//! A child gets pipes, its own process group, and its own environment: from the gateway's environment, which contains
//! secrets of other servers, it inherits only the variables that a program needs to run.
//!
//! A program may start other processes, and some of those leave their group and session. To end all of them with the
//! gateway, however it ends, each program runs below a supervisor: a process of the gateway's own binary that adopts
//! all orphaned descendants.
//!
//! - [`ProcessTable`]: starts programs, limits their number, and lists the running ones;
//! - [`ChildProcess`]: a program and all its descendants;
//! - [`run_supervisor_if_requested`]: turns the binary into a supervisor when it is started as one.
//!
//! The modules `supervised` and `unsupervised` are the two ways to start a program, and `tree` finds the descendants of
//! a process.

#[cfg(not(unix))]
compile_error!(
    "Toolyard does not support Windows: programs are ended by process groups and signals. Run it in WSL 2. See \
     docs/install.md"
);

mod child;
mod foreground;
mod process_table;
#[cfg(target_os = "linux")]
mod supervised;
#[cfg(target_os = "linux")]
mod supervisor;
mod tree;
mod unsupervised;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub use child::{ChildProcess, ExitHandle};
pub use foreground::{capture, run_in_foreground};
pub use process_table::{ProcessInfo, ProcessSpawner, ProcessTable};

/// The variables that a child inherits from the gateway: those of the official MCP SDKs, and those for language, time
/// zone and temporary folder.
const INHERITED_VARIABLES: [&str; 12] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];

/// The variable with the file descriptor of a program's [channel](ProgramSpec::channel).
pub const CHANNEL_VARIABLE: &str = "TOOLYARD_CHANNEL";

/// A program to start.
#[derive(Clone, Default)]
pub struct ProgramSpec {
    /// The name or path of the executable.
    pub command: OsString,
    /// The arguments.
    pub args: Vec<OsString>,
    /// The working directory; by default that of the gateway.
    pub work_dir: Option<PathBuf>,
    /// Names of further environment variables that are inherited, besides those that every program needs.
    pub inherited: Vec<OsString>,
    /// Environment variables in addition to the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Maximum private memory of the program and of each of its descendants, in bytes: allocated memory, not shared or
    /// reserved memory (`RLIMIT_DATA`). Further allocations fail. Not enforced without a supervisor.
    pub memory_bytes: Option<u64>,
    /// Adds a socket to the gateway besides the pipes, with its file descriptor in the variable [`CHANNEL_VARIABLE`].
    /// For programs of the gateway itself. Requires a supervisor.
    pub channel: bool,
}

/// Error of starting a program.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The working directory is not a folder.
    #[error("cannot enter the working directory {0:?}: there is no such folder")]
    WorkDir(PathBuf),
    /// The system cannot start the program: not found, not executable.
    #[error("cannot start {command:?}")]
    Start {
        /// The program.
        command: OsString,
        /// The error of the system.
        source: io::Error,
    },
    /// The limit of running programs is reached.
    #[error("too many running programs (at most {0})")]
    Full(usize),
}

/// The parent's ends of a child's pipes.
#[derive(Debug)]
pub struct ChildPipes {
    /// Standard input.
    pub stdin: ChildStdin,
    /// Standard output.
    pub stdout: ChildStdout,
    /// Standard error.
    pub stderr: ChildStderr,
    /// The gateway's end of the channel, if there is one.
    pub channel: Option<UnixStream>,
}

/// Raises the limit of open files of this process to the maximum that the system allows: a thousand callers with an
/// upstream connection each exceed the default of most shells.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}

/// The limit of open files of this process; `None` if unlimited.
#[must_use]
pub fn file_limit() -> Option<usize> {
    getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok())
}

/// Turns this process into a supervisor if it was started as one, and does not return then. A binary that names itself
/// in [`ProcessSpawner::supervised_by`] must call it first in `main`, before it starts any thread.
pub fn run_supervisor_if_requested() {
    #[cfg(target_os = "linux")]
    supervisor::run_if_requested();
}

/// Returns a command with the environment and folder of a program.
fn command(executable: &OsStr, program: &ProgramSpec) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    let mut command = Command::new(executable);
    command.env_clear();
    command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(program.inherited.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &program.work_dir {
        command.current_dir(folder);
    }
    command
}
