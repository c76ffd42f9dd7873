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
//! 9. become the program.
//!
//! Each process is killed when the one above it ends. A step that fails ends all: nothing runs with a wall less
//! than was asked for.

mod init;
mod landlock;
mod limits;
mod namespaces;
mod probe;
mod raw;
mod root;
mod seccomp;
mod spec;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) use namespaces::NOBODY;
pub(crate) use spec::{Limits, Spec, Walls};

use crate::CellProgram;

/// The first argument of a binary that is to be a helper; the second is the [`Spec`].
pub(crate) const REQUEST: &str = "confine:";

/// The only argument of one that is to find out which walls the machine has.
pub(crate) const PROBE: &str = "confine-probe:";

/// What the names of the program's variables begin with in the helper's environment.
pub(crate) const VARIABLE: &str = "TOOLYARD_CELL_";

/// How a helper ends that could not put up the walls; what it failed at is on standard error.
pub(crate) const REFUSED: i32 = 125;

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
        let Err(Fault(why)) = run(args.next(), entries);
        // Whoever cannot be told sees the status.
        let _unheard = writeln!(std::io::stderr(), "toolyard: cannot put up the walls of a cell: {why}");
        std::process::exit(REFUSED);
    }
}

enum Never {}

fn run(spec: Option<OsString>, entries: &[(&str, Entry)]) -> Result<Never, Fault> {
    let text = spec.as_ref().and_then(|spec| spec.to_str()).unwrap_or_default();
    let spec: Spec = serde_json::from_str(text).map_err(Fault::at("read what to do"))?;
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
    confine(&spec)?;
    become_program(&spec, entries)
}

/// All walls that are inside of the namespaces.
fn confine(spec: &Spec) -> Result<(), Fault> {
    std::env::set_current_dir(&spec.home).map_err(Fault::at("enter the home of the cell"))?;
    raw::close_inherited().map_err(Fault::at("close inherited files"))?;
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

fn become_program(spec: &Spec, entries: &[(&str, Entry)]) -> Result<Never, Fault> {
    match &spec.program {
        CellProgram::Inner { name, args } => {
            let entry = entries.iter().find(|(known, _)| known == name);
            let (_, entry) = entry.ok_or_else(|| Fault(format!("there is no {name:?} in this binary")))?;
            std::process::exit(i32::from(entry(args)))
        }
        CellProgram::Exec { command, args } => {
            #[expect(clippy::disallowed_methods, reason = "it replaces this process, and starts none")]
            let mut program = Command::new(command);
            program.args(args).env_clear().env("PATH", PATH).env("LANG", "C.UTF-8");
            program.env("HOME", &spec.home).env("TMPDIR", &spec.home);
            program.envs(std::env::vars_os().filter_map(|(name, value)| Some((unmarked(&name)?, value))));
            Err(Fault::at("start the program")(program.exec()))
        }
    }
}

/// The program's own name for a variable of the helper's.
fn unmarked(name: &OsStr) -> Option<OsString> {
    let name = name.as_bytes().strip_prefix(VARIABLE.as_bytes())?;
    Some(OsStr::from_bytes(name).to_owned())
}
