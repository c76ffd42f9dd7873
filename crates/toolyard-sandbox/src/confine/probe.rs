//! Probe of the isolation layers of this machine: tests each in a process of its own and prints one line for each.

use std::io::Write;
use std::path::PathBuf;

use rustix::process::{WaitOptions, waitpid};
use rustix::thread::set_no_new_privs;
use serde::{Deserialize, Serialize};

use super::raw::{ForkSide, fork};
use super::{
    EnabledLayers, HelperRequest, ResourceLimits, SETUP_FAILED, SetupError, init, landlock, namespaces, root,
    seccomp,
};
use crate::SandboxProgram;
use crate::users::SandboxUser;

/// Sets up one layer, or returns why it is missing.
type LayerProbe = fn(SandboxUser) -> Result<(), String>;

/// The probed layers, by the names that the lines start with.
const LAYER_PROBES: [(&str, LayerProbe); 4] =
    [("namespaces", namespaces), ("landlock", |_| landlock::probe()), ("seccomp", seccomp), ("uids", user)];

/// Users to test: the one that sandboxes share, and one that a single sandbox has.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UserCandidates {
    pub(crate) shared: SandboxUser,
    pub(crate) own: Option<SandboxUser>,
}

pub(super) fn run(candidates: Option<&str>) -> i32 {
    let candidates = candidates.and_then(|text| serde_json::from_str(text).ok());
    let Some(UserCandidates { shared, own }) = candidates else { return SETUP_FAILED };
    for (name, probe) in LAYER_PROBES {
        let user = if name == "uids" { own } else { Some(shared) };
        let Some(user) = user else { continue };
        let Ok(ForkSide::Parent(child)) = fork() else {
            // In the child, or after a failed fork.
            let why = probe(user).err().unwrap_or_default().replace('\n', " ");
            let mut out = std::io::stdout();
            return i32::from(writeln!(out, "{name}\t{why}").and_then(|()| out.flush()).is_err());
        };
        let _status = waitpid(Some(child), WaitOptions::empty());
    }
    0
}

/// Tests a separate user: root needs no namespaces for it, other users do.
fn user(user: SandboxUser) -> Result<(), String> {
    match user {
        SandboxUser::Mapped { .. } => namespaces(user),
        SandboxUser::Become(_) | SandboxUser::Unchanged => {
            namespaces::drop_root(user).map_err(|SetupError(why)| why)
        }
    }
}

/// Returns a minimal request.
fn spec(layers: EnabledLayers, user: SandboxUser) -> HelperRequest {
    HelperRequest {
        layers,
        is_memory_counted: true,
        user,
        cgroup_procs: Vec::new(),
        network: false,
        loopback: false,
        limits: ResourceLimits {
            data_bytes: u64::MAX,
            address_bytes: None,
            file_bytes: 1 << 20,
            files: 64,
            processes: None,
        },
        mounts: Vec::new(),
        home: PathBuf::from("/tmp"),
        program: SandboxProgram::Inner { name: String::new(), args: Vec::new() },
        env: Vec::new(),
    }
}

fn namespaces(user: SandboxUser) -> Result<(), String> {
    let spec = spec(EnabledLayers { namespaces: true, ..EnabledLayers::default() }, user);
    let result = namespaces::drop_root(user)
        .and_then(|()| namespaces::unshare_all(spec.network, user))
        .and_then(|()| init::fork_init(&spec))
        .and_then(|()| root::hide_mounts())
        .and_then(|()| namespaces::become_mapped_user(user));
    result.map_err(|SetupError(why)| why)
}

fn seccomp(user: SandboxUser) -> Result<(), String> {
    set_no_new_privs(true).map_err(|error| error.to_string())?;
    seccomp::probe(&spec(EnabledLayers::default(), user))
}
