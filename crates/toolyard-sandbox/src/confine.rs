//! The helper: a process of our own binary that sets up the isolation of one program. It is single-threaded, so it may
//! enter namespaces and fork. The order of the steps matters:
//!
//! 1. join the cgroups, while this is still permitted;
//! 2. switch from root to another user *before* the user namespace exists: a namespace that is mapped to root owns
//!    root's files, and the process limit does not apply to it;
//! 3. enter new namespaces; map one user and one group. For the sandboxes of an ordinary user the system's `newuidmap`
//!    and `newgidmap` write the maps (`id_maps`), and only the process of the program switches to the mapped user;
//! 4. fork: the child is process 1 of its namespace, and all processes there end with it (`init`);
//! 5. as process 1, build a root file system from the visible paths and make it read-only (`root`);
//! 6. fork again, because process 1 ignores signals and has to reap; it stays outside the following steps. Enter a
//!    mount namespace without mounts and keep the root, so that `/proc` lists the mounts of the empty namespace;
//! 7. close all files, limit resources, drop all capabilities permanently (`limits`);
//! 8. apply Landlock, then seccomp, which forbids what the previous steps need;
//! 9. report the start and execute the program.
//!
//! Each process is killed when the one above it ends. If a step fails, the helper ends: no program runs with fewer
//! layers than requested.

mod channel;
mod id_maps;
mod init;
mod landlock;
mod limits;
mod namespaces;
mod probe;
mod raw;
mod root;
mod seccomp;
mod spec;

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use channel::HelperChannel;

pub(crate) use channel::refusal_reason;
pub(crate) use namespaces::SANDBOX_ID;
pub(crate) use probe::UserCandidates;
pub(crate) use spec::{EnabledLayers, HelperRequest, ResourceLimits};

use crate::SandboxProgram;
use crate::packages::INSTALLER;
use crate::users::SandboxUser;

/// Only argument of a helper. The [`HelperRequest`] arrives on its channel.
pub(crate) const HELPER_ARG: &str = "confine:";

/// First argument of a helper that probes the isolation layers. The users to test follow.
pub(crate) const PROBE_ARG: &str = "confine-probe:";

/// Exit status of a helper that could not set up a layer. A program may exit with it, too: only the helper's message on
/// the channel is decisive.
const SETUP_FAILED: i32 = 125;

/// Search path of programs.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A function of our binary that runs in sandboxes, with its arguments. It returns the exit status of its process.
pub type EntryFunction = fn(&[String]) -> u8;

/// Functions that every binary provides.
const BUILT_IN_ENTRIES: [(&str, EntryFunction); 1] = [(INSTALLER, crate::packages::install_in_cell)];

/// A failed step of the setup.
#[derive(Debug)]
pub(crate) struct SetupError(String);

impl SetupError {
    /// Returns a converter from an error of this step.
    fn at<E: fmt::Display>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{step}: {error}"))
    }
}

pub(crate) fn enter_if_asked(entries: &[(&str, EntryFunction)]) {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    if first.as_ref().is_some_and(|first| first == PROBE_ARG) {
        let candidates = args.next();
        std::process::exit(probe::run(candidates.as_deref().and_then(OsStr::to_str)));
    }
    if first.is_some_and(|first| first == HELPER_ARG) {
        let Err(SetupError(why)) = run_helper(entries);
        // If standard error is closed, the exit status still reports the failure.
        let _unheard = writeln!(std::io::stderr(), "toolyard: cannot set up the sandbox: {why}");
        std::process::exit(SETUP_FAILED);
    }
}

enum NoReturn {}

/// Runs a helper. Returns only with an error, in whichever of the forked processes the step failed.
fn run_helper(entries: &[(&str, EntryFunction)]) -> Result<NoReturn, SetupError> {
    let mut channel = Some(HelperChannel::open()?);
    let done = set_up(&mut channel, entries);
    if let (Err(SetupError(why)), Some(channel)) = (&done, &mut channel) {
        channel.report_failure(why);
    }
    done
}

/// Sets up the isolation and executes the program. Takes the channel away before a function of our own binary runs.
fn set_up(
    channel: &mut Option<HelperChannel>,
    entries: &[(&str, EntryFunction)],
) -> Result<NoReturn, SetupError> {
    let gateway = channel.as_mut().ok_or_else(|| SetupError("there is no channel".to_owned()))?;
    let spec = gateway.read_request()?;
    limits::disable_core_dumps().map_err(SetupError::at("disable core dumps"))?;
    for procs in &spec.cgroup_procs {
        std::fs::write(procs, "0").map_err(SetupError::at("join a cgroup"))?;
    }
    namespaces::drop_root(spec.user)?;
    if spec.layers.namespaces {
        namespaces::unshare_all(spec.network, spec.user)?;
        if spec.loopback && !spec.network {
            raw::raise_loopback().map_err(SetupError::at("bring up the loopback interface"))?;
        }
        init::fork_init(&spec)?;
        root::hide_mounts()?;
        namespaces::become_mapped_user(spec.user)?;
    }
    restrict(&spec, gateway)?;
    become_program(&spec, channel, entries)
}

/// Applies the layers inside the namespaces.
fn restrict(spec: &HelperRequest, channel: &HelperChannel) -> Result<(), SetupError> {
    std::env::set_current_dir(&spec.home).map_err(SetupError::at("enter the folder of the sandbox"))?;
    raw::close_inherited(channel.0.as_fd()).map_err(SetupError::at("close inherited files"))?;
    limits::set(&spec.limits)?;
    if spec.layers == EnabledLayers::default() && spec.user == SandboxUser::Unchanged {
        return Ok(());
    }
    limits::raise_oom_score();
    limits::drop_privileges(spec.layers.namespaces)?;
    if spec.layers.landlock {
        landlock::restrict(spec)?;
    }
    if spec.layers.seccomp {
        seccomp::restrict(spec)?;
    }
    Ok(())
}

fn become_program(
    spec: &HelperRequest,
    channel: &mut Option<HelperChannel>,
    entries: &[(&str, EntryFunction)],
) -> Result<NoReturn, SetupError> {
    let begins =
        |channel: &mut Option<HelperChannel>| channel.as_mut().map_or(Ok(()), HelperChannel::announce_start);
    match &spec.program {
        SandboxProgram::Inner { name, args } => {
            let entry = entries.iter().chain(&BUILT_IN_ENTRIES).find(|(known, _)| known == name);
            let (_, entry) = entry.ok_or_else(|| SetupError(format!("this binary has no entry {name:?}")))?;
            begins(channel)?;
            *channel = None;
            std::process::exit(i32::from(entry(args)))
        }
        SandboxProgram::Exec { command, args } => {
            #[expect(clippy::disallowed_methods, reason = "it replaces this process, and starts none")]
            let mut program = Command::new(command);
            program.args(args).env_clear().env("PATH", SEARCH_PATH).env("LANG", "C.UTF-8");
            program.env("HOME", &spec.home).env("TMPDIR", &spec.home);
            program.envs(spec.env.iter().map(|(name, value)| (name, value)));
            begins(channel)?;
            Err(SetupError::at("start the program")(program.exec()))
        }
    }
}
