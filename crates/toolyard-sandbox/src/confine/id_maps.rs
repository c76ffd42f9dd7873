//! Id maps of a user namespace, written by the system's `newuidmap` and `newgidmap`. These may map the uids and gids
//! that `/etc/subuid` and `/etc/subgid` grant to this user; the kernel itself permits that only to root.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::raw::{ForkSide, fork};
use super::{SEARCH_PATH, SETUP_FAILED, SetupError};

/// A number inside the namespace and the corresponding number outside.
type IdMapping = (u32, u32);

/// The two mapping programs, which wait until this process is in its new namespace.
pub(super) struct IdMappers(Vec<IdMapper>);

struct IdMapper {
    name: &'static str,
    pid: Pid,
    /// Pipe that starts the program.
    begin: File,
    /// Output of the program.
    errors: File,
}

impl IdMappers {
    /// Starts the programs in the current namespaces of the caller.
    pub(super) fn start(uids: &[IdMapping], gids: &[IdMapping]) -> Result<Self, SetupError> {
        let start =
            |name, lines| IdMapper::start(name, lines).map_err(SetupError::at("start an id mapping program"));
        Ok(Self(vec![start("newuidmap", uids)?, start("newgidmap", gids)?]))
    }

    /// Makes the programs write the maps of the caller's new namespace.
    pub(super) fn map(self) -> Result<(), SetupError> {
        self.0.into_iter().try_for_each(IdMapper::map)
    }
}

impl IdMapper {
    fn start(name: &'static str, lines: &[IdMapping]) -> io::Result<Self> {
        let target = getpid();
        let (start_signal, begin) = io::pipe()?;
        let (errors, error_writer) = io::pipe()?;
        match fork()? {
            ForkSide::Parent(pid) => Ok(Self {
                name,
                pid,
                begin: File::from(OwnedFd::from(begin)),
                errors: File::from(OwnedFd::from(errors)),
            }),
            ForkSide::Child => {
                drop((begin, errors));
                let Err(error) = become_mapper(name, target, lines, start_signal, &error_writer);
                let _unheard = (&error_writer).write_all(error.to_string().as_bytes());
                std::process::exit(SETUP_FAILED)
            }
        }
    }

    fn map(mut self) -> Result<(), SetupError> {
        let begin_result = self.begin.write_all(b"+");
        drop(self.begin);
        let mut error_text = String::new();
        let read_result = self.errors.read_to_string(&mut error_text);
        let status = waitpid(Some(self.pid), WaitOptions::empty());
        let has_mapped = matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0));
        if begin_result.is_err() || read_result.is_err() || !has_mapped {
            return Err(SetupError(format!("{}: {}", self.name, error_text.trim())));
        }
        Ok(())
    }
}

/// Waits for the namespace and becomes the mapping program. Ends if the process that creates the namespace ends.
fn become_mapper(
    name: &str,
    target: Pid,
    lines: &[IdMapping],
    mut start_signal: io::PipeReader,
    error_writer: &io::PipeWriter,
) -> io::Result<std::convert::Infallible> {
    start_signal.read_exact(&mut [0])?;
    rustix::stdio::dup2_stdout(error_writer.as_fd())?;
    rustix::stdio::dup2_stderr(error_writer.as_fd())?;
    #[expect(clippy::disallowed_methods, reason = "it replaces this process, and starts none")]
    let mut program = Command::new(name);
    program.env_clear().env("PATH", SEARCH_PATH).arg(target.as_raw_pid().to_string());
    for (inside, outside) in lines {
        program.args([inside.to_string(), outside.to_string(), "1".to_owned()]);
    }
    Err(program.exec())
}
