//! The two processes above a program in its cell: the one outside, which says how the program ended, and process 1
//! of the cell, which reaps. Neither keeps the program's pipes open.

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

use super::raw::{Side, fork};
use super::{Fault, REFUSED, Spec, limits, root};

/// Goes below process 1 of the cell. Only the process that becomes the program returns.
pub(super) fn descend(spec: &Spec) -> Result<(), Fault> {
    let (told, tells) = io::pipe().map_err(Fault::at("make a pipe"))?;
    let (told, tells) = (File::from(OwnedFd::from(told)), File::from(OwnedFd::from(tells)));
    match fork().map_err(Fault::at("start process 1 of the cell"))? {
        Side::Parent(init) => {
            drop(tells);
            end_like(init, told)
        }
        Side::Child => {
            drop(told);
            begin(spec, tells)
        }
    }
}

/// Process 1: makes the root, and starts the process that this returns in.
fn begin(spec: &Spec, mut tells: File) -> Result<(), Fault> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(Fault::at("end with the process above"))?;
    if is_alone(&tells) {
        std::process::exit(REFUSED);
    }
    root::make(spec)?;
    match fork().map_err(Fault::at("start the process of the program"))? {
        Side::Child => {
            drop(tells);
            setsid().map(drop).map_err(Fault::at("begin a session"))
        }
        Side::Parent(program) => {
            let status = guard(program);
            // If nobody hears it, all of this is over anyway.
            let _unheard = tells.write_all(&status.to_ne_bytes());
            std::process::exit(0)
        }
    }
}

/// Whether the process above ended before the signal of its death was asked for.
fn is_alone(tells: &File) -> bool {
    let mut reader = [PollFd::new(tells, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut reader, Some(&now)).is_ok() && reader[0].revents().contains(PollFlags::ERR)
}

/// Reaps until the program has ended; says how it did.
fn guard(program: Pid) -> i32 {
    // What the program must not get at by way of this process: its memory, its rights.
    let _hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _powerless = limits::give_up_rights(true);
    let _let_go = let_go_of_pipes("/dev/null");
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => return status.as_raw(),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return REFUSED << 8,
        }
    }
}

/// Outside: ends as the program did.
fn end_like(init: Pid, mut told: File) -> ! {
    let _let_go = let_go_of_pipes("/dev/null");
    let mut status = [0; 4];
    let heard = told.read_exact(&mut status).is_ok();
    let ended = waitpid(Some(init), WaitOptions::empty());
    let status = match ended {
        _ if heard => i32::from_ne_bytes(status),
        Ok(Some((_, status))) => status.as_raw(),
        Ok(None) | Err(_) => REFUSED << 8,
    };
    let status = ExitStatus::from_raw(status);
    if let Some(signal) = status.signal() {
        // Twice, because Rust catches some the first time, to tell of a stack that overflowed. One that is ignored
        // here comes to nothing; then the status has to say it.
        for signal in Signal::from_named_raw(signal).into_iter().cycle().take(2) {
            let _ended = kill_process(getpid(), signal);
        }
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(REFUSED))
}

/// The pipes are the program's: who reads them sees their end when the program has let go of them.
fn let_go_of_pipes(null: &str) -> io::Result<()> {
    let null = File::options().read(true).write(true).open(null)?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    rustix::stdio::dup2_stdout(null.as_fd())?;
    rustix::stdio::dup2_stderr(null.as_fd())?;
    Ok(())
}
