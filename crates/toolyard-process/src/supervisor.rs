//! The supervisor: a process of the gateway's own binary above one program. It only waits, and ends all its
//! descendants.
//!
//! It is the subreaper of its descendants (`PR_SET_CHILD_SUBREAPER`): even if they fork twice or leave their group or
//! session, they remain its descendants. The supervisor ends them all when its control socket is closed, which also
//! happens when the gateway is killed; when it receives a signal; and when the program itself has exited. It sends them
//! SIGTERM, waits for [`GRACE`], and kills them until none is left. If the gateway requests it, it kills them at once.
//!
//! It has one thread and forwards no data: the program uses the gateway's pipes directly. It uses tokio for signals
//! only, because catching them without it needs unsafe code.

use std::ffi::OsString;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process, kill_process_group,
    set_child_subreaper, setrlimit, setsid, wait,
};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

use crate::supervised::SupervisorReport;
use crate::{CHANNEL_VARIABLE, tree};

/// The first argument of a binary that is to be a supervisor. The second is the memory limit in bytes, or 0; the others
/// are the program and its arguments. The environment and folder are those of the program.
pub(crate) const SUPERVISE_ARGUMENT: &str = "supervise:";

/// The process name, as shown in lists without arguments. It differs from "toolyard", so that ending processes by that
/// name ends the gateway, which then ends its servers in order.
const PROCESS_NAME: &std::ffi::CStr = c"ty-supervisor";

/// Time that descendants get to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// Time to wait for killed processes before searching for new ones.
const KILL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run_if_requested() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == SUPERVISE_ARGUMENT) {
        // Nothing reads an error message here: the gateway notices that the supervisor is gone.
        std::process::exit(i32::from(run(args).is_err()));
    }
}

fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    // The gateway decides about signals of its terminal, such as an interrupt.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_name(PROCESS_NAME)?;
    let memory = args.next().and_then(|bytes| bytes.to_str()?.parse().ok());
    let (Some(memory), Some(program)) = (memory, args.next()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    limit_memory(memory)?;
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut files = receive(&control)?.into_iter();
    let (Some(stdin), Some(stdout), Some(stderr)) = (files.next(), files.next(), files.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let channel = files.next();
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    if let Some(channel) = &channel {
        rustix::io::fcntl_setfd(channel, rustix::io::FdFlags::empty())?;
        command.env(CHANNEL_VARIABLE, channel.as_raw_fd().to_string());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise(command, control, channel))
}

/// Sets the memory limit. It is inherited, and the supervisor needs less than any program.
fn limit_memory(bytes: u64) -> io::Result<()> {
    let maximum = getrlimit(Resource::Data).maximum;
    if bytes == 0 || maximum.is_some_and(|maximum| maximum <= bytes) {
        return Ok(());
    }
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?)
}

/// Receives the program's ends of its pipes, and of its channel if it has one.
fn receive(control: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(control, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let files = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.flatten().collect())
}

async fn supervise(mut command: Command, control: UnixStream, channel: Option<OwnedFd>) -> io::Result<()> {
    control.set_nonblocking(true)?;
    let mut gateway = tokio::net::UnixStream::from_std(control.try_clone()?)?;
    let mut terminate = unix::signal(SignalKind::terminate())?;
    let mut interrupt = unix::signal(SignalKind::interrupt())?;
    let mut hangup = unix::signal(SignalKind::hangup())?;
    let deaths = unix::signal(SignalKind::child())?;
    let program = match command.spawn() {
        Ok(program) => Pid::from_child(&program),
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or_default();
            return (&control).write_all(SupervisorReport::Failed(errno).line().as_bytes());
        }
    };
    // Also drops this process's copies of the program's ends.
    drop((command, channel));
    let mut tree = SupervisedTree { program, control, deaths, is_running: true };
    tree.report(&SupervisorReport::Started(program));
    tokio::select! {
        () = tree.program_ended() => {}
        // The socket is closed or broken, or a byte requests an immediate kill.
        request = gateway.read_u8() => if request.is_ok() {
            tree.kill().await;
        },
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
    tree.end().await;
    Ok(())
}

/// The supervised program and all its descendants.
struct SupervisedTree {
    program: Pid,
    control: UnixStream,
    deaths: unix::Signal,
    /// `true` while the program itself runs.
    is_running: bool,
}

impl SupervisedTree {
    fn report(&self, report: &SupervisorReport) {
        // Fails if the gateway is gone. Otherwise the socket has room: reports are short and few.
        let _gone = (&self.control).write_all(report.line().as_bytes());
    }

    async fn program_ended(&mut self) {
        while self.reap() && self.is_running {
            self.deaths.recv().await;
        }
    }

    /// Reaps all processes that have exited; returns `true` if any process is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.is_running = false;
                    self.report(&SupervisorReport::Ended(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    async fn end(&mut self) {
        self.signal(Signal::TERM);
        let left = async {
            while self.reap() {
                self.deaths.recv().await;
            }
        };
        if timeout(GRACE, left).await.is_err() {
            self.kill().await;
        }
    }

    async fn kill(&mut self) {
        while self.reap() {
            self.signal(Signal::KILL);
            let _round = timeout(KILL_INTERVAL, self.deaths.recv()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let below = tree::descendants(getpid());
        if below.is_empty() {
            let _gone = kill_process_group(self.program, signal);
        }
        for process in below {
            // The process may have exited just now.
            let _gone = kill_process(process, signal);
        }
    }
}
