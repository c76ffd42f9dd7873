//! A program below a supervisor: the side of the one who started both.
//!
//! The two speak over a socket, which is the supervisor's standard input. The supervisor gets the program's ends
//! of the pipes over it, and says in lines what becomes of the program. That it is closed means: end it.

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

use crate::child::{Child, Group, Hold, State};
use crate::processes::Started;
use crate::supervisor::REQUEST;
use crate::{Pipes, Program, command, tree};

/// What the supervisor says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The program runs, with this process id.
    Started(Pid),
    /// It cannot be started: the system's error number.
    Failed(i32),
    /// It has ended: the status as the system has it.
    Ended(i32),
}

impl Report {
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

pub(crate) async fn start(supervisor: &Path, program: &Program) -> io::Result<Started> {
    if std::env::args_os().nth(1).is_some_and(|first| first == REQUEST) {
        // It would start itself again and again.
        return Err(io::Error::other(
            "this program was to be a supervisor: supervise_if_asked was not called",
        ));
    }
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = command(supervisor.as_os_str(), program);
    command.arg0("toolyard").arg(REQUEST);
    command.arg(program.memory_bytes.unwrap_or_default().to_string());
    command.arg(&program.command).args(&program.args);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = command.spawn()?;
    // With it our copy of the supervisor's end.
    drop(command);

    let (stdin, ours_in) = io::pipe()?;
    let (ours_out, stdout) = io::pipe()?;
    let (ours_err, stderr) = io::pipe()?;
    let (channel, theirs) = program.channel.then(UnixStream::pair).transpose()?.unzip();
    let mut files = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    files.extend(theirs.as_ref().map(UnixStream::as_fd));
    send(&ours, &files)?;
    drop((stdin, stdout, stderr, theirs));
    let pipes = Pipes {
        stdin: ChildStdin::from_std(OwnedFd::from(ours_in).into())?,
        stdout: ChildStdout::from_std(OwnedFd::from(ours_out).into())?,
        stderr: ChildStderr::from_std(OwnedFd::from(ours_err).into())?,
        channel: channel.map(nonblocking).transpose()?,
    };

    let (reports, control) = nonblocking(ours)?.into_split();
    let mut reports = BufReader::new(reports).lines();
    let first = reports.next_line().await?;
    let pid = match first.as_deref().and_then(Report::parse) {
        Some(Report::Started(pid)) => pid,
        Some(Report::Failed(errno)) => return Err(io::Error::from_raw_os_error(errno)),
        Some(Report::Ended(_)) | None => return Err(io::Error::other("its supervisor has failed")),
    };
    let above = supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (state, state_now) = watch::channel(State::Running);
    let watcher = watch_over(reports, supervisor, pid, state);
    let child = Child::new(Hold::Supervisor { control }, state_now, watcher);
    Ok(Started { child, pipes, pid, supervisor: above })
}

fn nonblocking(socket: UnixStream) -> io::Result<tokio::net::UnixStream> {
    socket.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(socket)
}

/// Passes these on. One byte goes with them: there is no message of none.
fn send(control: &UnixStream, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The task that follows a program to its end, and the supervisor to its own.
async fn watch_over(
    mut reports: Lines<BufReader<OwnedReadHalf>>,
    mut supervisor: tokio::process::Child,
    pid: Pid,
    state: watch::Sender<State>,
) {
    let mut status = None;
    while let Ok(Some(line)) = reports.next_line().await {
        if let Some(Report::Ended(raw)) = Report::parse(&line) {
            let ended = ExitStatus::from_raw(raw);
            status = Some(ended);
            state.send_replace(State::Ended(ended));
        }
    }
    if status.is_none() {
        // It was killed before its time. What has not left the program's group can still be ended.
        drop(Group(pid));
    }
    let _unknown = supervisor.wait().await;
    state.send_replace(State::Gone(status));
}
