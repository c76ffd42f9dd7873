//! The supervisor: a process of our own binary above one program. It does nothing but wait, and end all that is
//! below it.
//!
//! It is the reaper of all orphans below it (`PR_SET_CHILD_SUBREAPER`): whatever a descendant does, forks twice,
//! leaves its group, begins a session of its own, it stays below. The supervisor ends them all when its control
//! socket is closed, which happens also when the gateway is killed; when it is told to by a signal; and when the
//! program itself has ended. They are sent SIGTERM, have [`GRACE`] to leave, and are killed until none is left; they
//! are killed at once where the gateway says so.
//!
//! One thread, and the program reads and writes the gateway's own pipes: nothing passes through here. Signals are
//! what tokio is needed for, because to catch one without it takes unsafe code.

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

use crate::supervised::Report;
use crate::{CHANNEL, tree};

/// The first argument of a binary that is to be a supervisor. The second is the limit of memory in bytes, or 0;
/// the others are the program and its arguments. Environment and folder are the program's, too.
pub(crate) const REQUEST: &str = "supervise:";

/// What the process is called in lists that show no arguments. Whoever ends "toolyard" by name means the gateway,
/// which ends its servers itself and in order.
const NAME: &std::ffi::CStr = c"ty-supervisor";

/// How long those below may take to leave when they are told to.
const GRACE: Duration = Duration::from_secs(1);

/// How long the killed are waited for before others are looked for that came to be meanwhile.
const ROUND: Duration = Duration::from_millis(50);

pub(crate) fn run_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == REQUEST) {
        // Nobody reads what it would say about an error: the gateway sees that it is gone.
        std::process::exit(i32::from(run(args).is_err()));
    }
}

fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    // What a terminal sends to the gateway, such as an interrupt, is the gateway's to pass on.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_name(NAME)?;
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
        command.env(CHANNEL, channel.as_raw_fd().to_string());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise(command, control, channel))
}

/// Limits are inherited, and we live well within any that lets a program start.
fn limit_memory(bytes: u64) -> io::Result<()> {
    let maximum = getrlimit(Resource::Data).maximum;
    if bytes == 0 || maximum.is_some_and(|maximum| maximum <= bytes) {
        return Ok(());
    }
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?)
}

/// The program's ends of its pipes, and of its channel where it has one.
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
            return (&control).write_all(Report::Failed(errno).line().as_bytes());
        }
    };
    // With them our copies of the program's ends.
    drop((command, channel));
    let mut tree = Tree { program, control, deaths, runs: true };
    tree.report(&Report::Started(program));
    tokio::select! {
        () = tree.program_ended() => {}
        // It is closed, or broken; or a byte says that nobody is to be asked to leave.
        said = gateway.read_u8() => if said.is_ok() {
            tree.kill().await;
        },
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
    tree.end().await;
    Ok(())
}

/// All that is below us.
struct Tree {
    program: Pid,
    control: UnixStream,
    deaths: unix::Signal,
    /// Whether the program itself runs.
    runs: bool,
}

impl Tree {
    fn report(&self, report: &Report) {
        // Nobody hears it when the gateway is gone. Else there is room: these lines are short and few.
        let _unheard = (&self.control).write_all(report.line().as_bytes());
    }

    async fn program_ended(&mut self) {
        while self.reap() && self.runs {
            self.deaths.recv().await;
        }
    }

    /// Takes note of all that have ended; says whether anybody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.runs = false;
                    self.report(&Report::Ended(status.as_raw()));
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
            let _round = timeout(ROUND, self.deaths.recv()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let below = tree::descendants(getpid());
        if below.is_empty() {
            let _gone = kill_process_group(self.program, signal);
        }
        for process in below {
            // It may have ended this very moment.
            let _gone = kill_process(process, signal);
        }
    }
}
