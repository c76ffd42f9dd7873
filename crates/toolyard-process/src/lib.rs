//! Child processes. No other crate starts any.
//!
//! A child gets pipes, a process group of its own, and an environment of its own: of the gateway's
//! environment, which holds other servers' secrets, it inherits only what a program needs to run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

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
}

/// Cannot start a program.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {command:?}")]
pub struct SpawnError {
    command: OsString,
    source: io::Error,
}

/// A running child. Dropping it kills its process group.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    group: Option<Pid>,
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
}

/// Starts a program.
///
/// # Errors
/// When the system cannot start it: not found, not executable, no such folder.
pub fn spawn(program: &Program) -> Result<(Child, Pipes), SpawnError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    let mut command = Command::new(&program.command);
    command.args(&program.args).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &program.work_dir {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let failed = |source| SpawnError { command: program.command.clone(), source };
    let mut inner = command.spawn().map_err(failed)?;
    let group = inner.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match (inner.stdin.take(), inner.stdout.take(), inner.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok((Child { inner, group }, Pipes { stdin, stdout, stderr }))
        }
        _ => Err(failed(io::Error::other("no pipes"))),
    }
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

impl Child {
    /// Waits until the child has ended.
    ///
    /// # Errors
    /// When the system cannot say.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait().await
    }

    /// Ends the child as MCP asks for (2026-07-28, basic/transports/stdio, shutdown). The caller has
    /// closed its standard input: it gets `grace` to leave, then SIGTERM and as long again, then SIGKILL.
    pub async fn end(mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _in_time = tokio::time::timeout(grace, self.wait()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group is gone when nobody is left in it, which is what a signal is sent for.
            let _gone = kill_process_group(group, signal);
        }
    }
}

/// Also where the leader has ended already: those whom it started are still in its group.
impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn shell(script: &str) -> Program {
        let env = vec![("GIVEN".into(), "given".into())];
        Program {
            command: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env,
            work_dir: Some("/".into()),
        }
    }

    #[tokio::test]
    async fn a_child_has_an_environment_of_its_own() {
        let (mut child, mut pipes) =
            spawn(&shell("echo $GIVEN $CARGO_MANIFEST_DIR $PWD; echo log >&2")).unwrap();
        let (mut out, mut log) = (String::new(), String::new());
        pipes.stdout.read_to_string(&mut out).await.unwrap();
        pipes.stderr.read_to_string(&mut log).await.unwrap();
        assert_eq!((&*out, &*log), ("given /\n", "log\n"));
        assert!(child.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn the_whole_group_ends_with_the_child() {
        let (child, mut pipes) = spawn(&shell("sleep 1000 & echo $!; wait")).unwrap();
        let mut line = [0; 16];
        let length = pipes.stdout.read(&mut line).await.unwrap();
        assert!(length > 1);
        drop(child);
        // The pipe is closed when its last writer is gone, the grandchild included.
        assert_eq!(pipes.stdout.read(&mut line).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_child_that_ignores_its_input_is_ended() {
        let (child, mut pipes) =
            spawn(&shell("trap '' TERM; echo ready; while :; do sleep 1000; done")).unwrap();
        pipes.stdout.read_exact(&mut [0; 6]).await.unwrap();
        drop(pipes.stdin);
        child.end(Duration::from_millis(50)).await;
        assert_eq!(pipes.stdout.read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_cannot_start_is_named() {
        let program = Program { command: "/no/such/program".into(), ..Program::default() };
        assert_eq!(spawn(&program).unwrap_err().to_string(), r#"cannot start "/no/such/program""#);
    }
}
