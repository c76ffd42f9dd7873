//! A program below a supervisor: the side of the gateway.
//!
//! The gateway and the supervisor share a socket, which is the supervisor's standard input. It carries the program's
//! ends of the pipes to the supervisor, and reports about the program back, one per line. Closing it ends the program.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::OwnedReadHalf;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;

use crate::child::{ChildProcess, ChildState, ProcessGroup, TerminationHandle};
use crate::process_table::StartedProcess;
use crate::supervisor::SUPERVISE_ARGUMENT;
use crate::{ChildPipes, ProgramSpec, command, tree};

/// A report of the supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SupervisorReport {
    /// The program runs, with this process id.
    Started(Pid),
    /// The program cannot be started: the system's error number.
    Failed(i32),
    /// The program has exited: the raw wait status.
    Ended(i32),
}

impl SupervisorReport {
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {}\n", pid.as_raw_pid()),
            Self::Failed(errno) => format!("failed {errno}\n"),
            Self::Ended(status) => format!("ended {status}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ')?;
        match word {
            "started" => tree::pid(number).map(Self::Started),
            "failed" => number.parse().ok().map(Self::Failed),
            "ended" => number.parse().ok().map(Self::Ended),
            _ => None,
        }
    }
}

pub(crate) async fn start(supervisor: &Path, program: &ProgramSpec) -> io::Result<StartedProcess> {
    if std::env::args_os().nth(1).is_some_and(|first| first == SUPERVISE_ARGUMENT) {
        // Without this check it would start itself over and over.
        return Err(io::Error::other(
            "this process was started as a supervisor, but run_supervisor_if_requested was not called",
        ));
    }
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = command(supervisor.as_os_str(), program);
    command.arg0("toolyard").arg(SUPERVISE_ARGUMENT);
    command.arg(program.memory_bytes.unwrap_or_default().to_string());
    command.arg(&program.command).args(&program.args);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = command.spawn()?;
    // Also drops this process's copy of the supervisor's end of the socket.
    drop(command);

    let (stdin, ours_in) = io::pipe()?;
    let (ours_out, stdout) = io::pipe()?;
    let (ours_err, stderr) = io::pipe()?;
    let (channel, theirs) = program.channel.then(UnixStream::pair).transpose()?.unzip();
    let mut files = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    files.extend(theirs.as_ref().map(UnixStream::as_fd));
    send(&ours, &files)?;
    drop((stdin, stdout, stderr, theirs));
    let pipes = ChildPipes {
        stdin: ChildStdin::from_std(OwnedFd::from(ours_in).into())?,
        stdout: ChildStdout::from_std(OwnedFd::from(ours_out).into())?,
        stderr: ChildStderr::from_std(OwnedFd::from(ours_err).into())?,
        channel: channel.map(nonblocking).transpose()?,
    };

    let (reports, control) = nonblocking(ours)?.into_split();
    let mut reports = BufReader::new(reports).lines();
    let first = reports.next_line().await?;
    let pid = match first.as_deref().and_then(SupervisorReport::parse) {
        Some(SupervisorReport::Started(pid)) => pid,
        Some(SupervisorReport::Failed(errno)) => return Err(io::Error::from_raw_os_error(errno)),
        Some(SupervisorReport::Ended(_)) | None => return Err(io::Error::other("the supervisor has failed")),
    };
    let above = supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (state, state_now) = watch::channel(ChildState::Running);
    let watcher = watch_program(reports, supervisor, pid, state);
    let child = ChildProcess::new(TerminationHandle::Supervisor { control }, state_now, watcher);
    Ok(StartedProcess { child, pipes, pid, supervisor: above })
}

fn nonblocking(socket: UnixStream) -> io::Result<tokio::net::UnixStream> {
    socket.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(socket)
}

/// Sends file descriptors. A message needs at least one byte of data.
fn send(control: &UnixStream, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Follows a program until it has exited, and its supervisor until it has exited too.
async fn watch_program(
    mut reports: Lines<BufReader<OwnedReadHalf>>,
    mut supervisor: tokio::process::Child,
    pid: Pid,
    state: watch::Sender<ChildState>,
) {
    let mut status = None;
    while let Ok(Some(line)) = reports.next_line().await {
        if let Some(SupervisorReport::Ended(raw)) = SupervisorReport::parse(&line) {
            let ended = ExitStatus::from_raw(raw);
            status = Some(ended);
            state.send_replace(ChildState::Ended(ended));
        }
    }
    if status.is_none() {
        // The supervisor was killed early. The processes in the program's group can still be ended.
        drop(ProcessGroup(pid));
    }
    let _unknown = supervisor.wait().await;
    state.send_replace(ChildState::Gone(status));
}
