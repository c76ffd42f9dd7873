//! The two processes above a sandboxed program: the outer one exits as the program did, and process 1 of the sandbox
//! reaps. Neither keeps the program's pipes open.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait, waitpid,
};

use super::raw::{ForkSide, fork};
use super::{HelperRequest, SETUP_FAILED, SetupError, limits, root};

/// Forks process 1 of the sandbox and the process of the program. Only the latter returns.
pub(super) fn fork_init(spec: &HelperRequest) -> Result<(), SetupError> {
    let (told, tells) = io::pipe().map_err(SetupError::at("make a pipe"))?;
    let (told, tells) = (File::from(OwnedFd::from(told)), File::from(OwnedFd::from(tells)));
    match fork().map_err(SetupError::at("start process 1 of the sandbox"))? {
        ForkSide::Parent(init) => {
            drop(tells);
            exit_like_program(init, told)
        }
        ForkSide::Child => {
            drop(told);
            run_init(spec, tells)
        }
    }
}

/// Runs as process 1: builds the root and forks the process of the program, in which this returns.
fn run_init(spec: &HelperRequest, mut status_writer: File) -> Result<(), SetupError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(SetupError::at("set the parent-death signal"))?;
    if is_orphaned(&status_writer) {
        std::process::exit(SETUP_FAILED);
    }
    root::make(spec)?;
    match fork().map_err(SetupError::at("start the process of the program"))? {
        ForkSide::Child => {
            drop(status_writer);
            setsid().map(drop).map_err(SetupError::at("start a session"))
        }
        ForkSide::Parent(program) => {
            let status = reap_until_exit(program);
            // If the outer process has ended, the sandbox is ending, too.
            let _unheard = status_writer.write_all(&status.to_ne_bytes());
            std::process::exit(0)
        }
    }
}

/// True if the outer process ended before its death signal was set.
fn is_orphaned(status_writer: &File) -> bool {
    let mut reader = [PollFd::new(status_writer, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut reader, Some(&now)).is_ok() && reader[0].revents().contains(PollFlags::ERR)
}

/// Reaps processes until the program has ended, and returns its status.
fn reap_until_exit(program: Pid) -> i32 {
    // Protects this process's memory and privileges from the program.
    let _hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _powerless = limits::drop_privileges(true);
    let _let_go = release_pipes("/dev/null");
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => return status.as_raw(),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return SETUP_FAILED << 8,
        }
    }
}

/// Runs in the outer process: exits as the program did.
fn exit_like_program(init: Pid, mut status_reader: File) -> ! {
    let _let_go = release_pipes("/dev/null");
    let mut status = [0; 4];
    let is_received = status_reader.read_exact(&mut status).is_ok();
    let ended = waitpid(Some(init), WaitOptions::empty());
    let status = match ended {
        _ if is_received => i32::from_ne_bytes(status),
        Ok(Some((_, status))) => status.as_raw(),
        Ok(None) | Err(_) => SETUP_FAILED << 8,
    };
    let status = ExitStatus::from_raw(status);
    if let Some(signal) = status.signal() {
        // Twice, because Rust handles some signals once to report stack overflows. If the signal is ignored here, the
        // exit status reports it.
        for signal in Signal::from_named_raw(signal).into_iter().cycle().take(2) {
            let _ended = kill_process(getpid(), signal);
        }
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(SETUP_FAILED))
}

/// Closes the program's pipes, so that readers see their end when the program closes them.
fn release_pipes(null: &str) -> io::Result<()> {
    let null = File::options().read(true).write(true).open(null)?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    rustix::stdio::dup2_stdout(null.as_fd())?;
    rustix::stdio::dup2_stderr(null.as_fd())?;
    Ok(())
}
