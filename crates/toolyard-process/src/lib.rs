//! Child processes. No other crate starts any.
//!
//! A child gets pipes, a process group of its own, and an environment of its own: of the gateway's
//! environment, which holds other servers' secrets, it inherits only what a program needs to run.
//!
//! A program may start others, which start others, and some of those leave their group and session. So that
//! none of them outlives the gateway, however that ends, each program has a supervisor above it: a process of
//! our own binary, to which all orphans below it come.
//!
//! - [`Processes`]: starts programs, bounds how many, and knows those that run;
//! - [`Child`]: one program and all that it started;
//! - [`supervise_if_asked`]: what the binary does when it is started as a supervisor.
//!
//! The rest is `supervised` and `direct`, the two ways to start a program, and `tree`, what the system knows of
//! processes below another.

mod child;
mod direct;
mod processes;
#[cfg(target_os = "linux")]
mod supervised;
#[cfg(target_os = "linux")]
mod supervisor;
mod tree;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub use child::{Child, Ending};
pub use processes::{ProcessInfo, Processes, Spawner};

/// What a child inherits from the gateway's environment, as the official MCP SDKs have it, and what
/// names its language, clock and temporary folder.
const INHERITED: [&str; 12] = [
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

/// The variable that tells a program the number of its [channel](Program::channel).
pub const CHANNEL: &str = "TOOLYARD_CHANNEL";

/// A program to start.
#[derive(Clone, Default)]
pub struct Program {
    /// Its name or path.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it starts; the gateway's own folder by default.
    pub work_dir: Option<PathBuf>,
    /// Its environment, beside what it inherits.
    pub env: Vec<(OsString, OsString)>,
    /// How much memory the program, and each process that it starts, may have to itself, in bytes: what it
    /// allocates, not what it shares or only reserves (`RLIMIT_DATA`). An allocation beyond that fails. Without a
    /// supervisor there is no such limit.
    pub memory_bytes: Option<u64>,
    /// Whether it has a socket to us beside its pipes, whose number is in its variable [`CHANNEL`]: for programs of
    /// our own. It needs a supervisor.
    pub channel: bool,
}

/// Cannot start a program.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The system cannot start it: not found, not executable, no such folder.
    #[error("cannot start {command:?}")]
    Start {
        /// The program.
        command: OsString,
        /// Why not.
        source: io::Error,
    },
    /// As many run as may run.
    #[error("as many programs run as may run: {0}")]
    Full(usize),
}

/// The ends of a child's pipes.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// Where it logs.
    pub stderr: ChildStderr,
    /// Our end of its channel, where it has one.
    pub channel: Option<UnixStream>,
}

/// Raises the number of files that this process may have open as far as the system lets it: a thousand
/// callers, with a connection behind each, are more than most shells allow by default.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// What a binary does first of all in its `main`, before any thread starts, if it names itself in
/// [`Spawner::supervised_by`]: where it was started as a supervisor it becomes one, and this does not return.
pub fn supervise_if_asked() {
    #[cfg(target_os = "linux")]
    supervisor::run_if_asked();
}

/// A command in the environment of a program.
fn command(what: &OsStr, program: &Program) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    let mut command = Command::new(what);
    command.env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &program.work_dir {
        command.current_dir(folder);
    }
    command
}
