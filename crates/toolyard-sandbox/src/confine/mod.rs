//! The helper: a process of our own binary that puts walls around one program. It has one thread, because of which
//! it may leave namespaces and fork. The order is what matters:
//!
//! 1. join the cgroups, as long as it may;
//! 2. become another user than root, *before* there is a user namespace: one that is mapped to root owns root's
//!    files, and the limit of processes does not hold for it;
//! 3. leave all namespaces; map one user and one group;
//! 4. fork: the child is process 1 of its namespace, and everything there ends with it (`init`);
//! 5. there, make a root of what the program may see, and make it read-only (`root`);
//! 6. fork again, because process 1 ignores signals and has to reap; the first stays outside of what follows;
//! 7. close all files, limit resources, give up all capabilities for ever (`limits`);
//! 8. Landlock, then seccomp, which forbids what the steps before need;
//! 9. say that it begins, and become the program.
//!
//! Each process is killed when the one above it ends. A step that fails ends all: nothing runs with a wall less
//! than was asked for.

mod channel;
mod init;
mod landlock;
mod limits;
mod namespaces;
mod probe;
mod raw;
mod root;
mod seccomp;
mod spec;

use std::fmt;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use channel::Channel;

pub(crate) use channel::why_refused;
pub(crate) use namespaces::NOBODY;
pub(crate) use spec::{Limits, Spec, Walls};

use crate::CellProgram;

/// The only argument of a binary that is to be a helper. Its [`Spec`] comes by its channel.
pub(crate) const REQUEST: &str = "confine:";

/// The only argument of one that is to find out which walls the machine has.
pub(crate) const PROBE: &str = "confine-probe:";

/// How a helper ends that could not put up the walls. A program may end like that, too: what counts is what the helper
/// has said by its channel.
const REFUSED: i32 = 125;

/// Where programs are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A function of our binary that runs in cells, with its arguments. What it returns is the status that its process
/// ends with.
pub type Entry = fn(&[String]) -> u8;

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Fault(String);

impl Fault {
    /// Makes one of an error at a step.
    fn at<E: fmt::Display>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{step}: {error}"))
    }
}

pub(crate) fn enter_if_asked(entries: &[(&str, Entry)]) {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    if first.as_ref().is_some_and(|first| first == PROBE) {
        std::process::exit(probe::run());
    }
    if first.is_some_and(|first| first == REQUEST) {
        let Err(Fault(why)) = help(entries);
        // Whoever cannot be told sees the status.
        let _unheard = writeln!(std::io::stderr(), "toolyard: cannot put up the walls of a cell: {why}");
        std::process::exit(REFUSED);
    }
}

enum Never {}

/// Each of the processes that this comes to be returns here with what it failed at.
fn help(entries: &[(&str, Entry)]) -> Result<Never, Fault> {
    let mut channel = Some(Channel::take()?);
    let done = run(&mut channel, entries);
    if let (Err(Fault(why)), Some(channel)) = (&done, &mut channel) {
        channel.refuse(why);
    }
    done
}

/// A function of our own binary gets no channel either: then there is none left.
fn run(channel: &mut Option<Channel>, entries: &[(&str, Entry)]) -> Result<Never, Fault> {
    let gateway = channel.as_mut().ok_or_else(|| Fault("there is no channel".to_owned()))?;
    let spec = gateway.spec()?;
    limits::no_core().map_err(Fault::at("forbid core dumps"))?;
    for procs in &spec.join {
        std::fs::write(procs, "0").map_err(Fault::at("join a cgroup"))?;
    }
    if spec.walls.user {
        namespaces::leave_root()?;
    }
    if spec.walls.namespaces {
        namespaces::leave(spec.network)?;
        init::descend(&spec)?;
    }
    confine(&spec, gateway)?;
    become_program(&spec, channel, entries)
}

/// All walls that are inside of the namespaces.
fn confine(spec: &Spec, channel: &Channel) -> Result<(), Fault> {
    std::env::set_current_dir(&spec.home).map_err(Fault::at("enter the home of the cell"))?;
    raw::close_inherited(channel.0.as_fd()).map_err(Fault::at("close inherited files"))?;
    limits::set(&spec.limits)?;
    if spec.walls == Walls::default() {
        return Ok(());
    }
    limits::prefer_to_be_killed();
    limits::give_up_rights(spec.walls.namespaces)?;
    if spec.walls.landlock {
        landlock::restrict(spec)?;
    }
    if spec.walls.seccomp {
        // Memory of files that have no name is in no process: only a cgroup counts it.
        seccomp::restrict(spec.network, spec.limits.address_bytes.is_none())?;
    }
    Ok(())
}

fn become_program(
    spec: &Spec,
    channel: &mut Option<Channel>,
    entries: &[(&str, Entry)],
) -> Result<Never, Fault> {
    let begins = |channel: &mut Option<Channel>| channel.as_mut().map_or(Ok(()), Channel::begins);
    match &spec.program {
        CellProgram::Inner { name, args } => {
            let entry = entries.iter().find(|(known, _)| known == name);
            let (_, entry) = entry.ok_or_else(|| Fault(format!("there is no {name:?} in this binary")))?;
            begins(channel)?;
            *channel = None;
            std::process::exit(i32::from(entry(args)))
        }
        CellProgram::Exec { command, args } => {
            #[expect(clippy::disallowed_methods, reason = "it replaces this process, and starts none")]
            let mut program = Command::new(command);
            program.args(args).env_clear().env("PATH", PATH).env("LANG", "C.UTF-8");
            program.env("HOME", &spec.home).env("TMPDIR", &spec.home);
            program.envs(spec.env.iter().map(|(name, value)| (name, value)));
            begins(channel)?;
            Err(Fault::at("start the program")(program.exec()))
        }
    }
}
