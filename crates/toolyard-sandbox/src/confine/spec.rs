//! Request to a helper.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::users::SandboxUser;
use crate::{ReadOnlyMount, SandboxProgram};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HelperRequest {
    pub(crate) layers: EnabledLayers,
    /// True if a cgroup counts memory that no process owns, such as that of sockets.
    pub(crate) is_memory_counted: bool,
    /// User of the program.
    pub(crate) user: SandboxUser,
    /// Cgroup files that a process writes to in order to join.
    pub(crate) cgroup_procs: Vec<PathBuf>,
    pub(crate) network: bool,
    /// True if the sandbox has its own loopback interface.
    pub(crate) loopback: bool,
    pub(crate) limits: ResourceLimits,
    pub(crate) mounts: Vec<ReadOnlyMount>,
    /// Home and working folder, which is writable.
    pub(crate) home: PathBuf,
    pub(crate) program: SandboxProgram,
    /// Environment of the program. The helper must not have these variables, because some, such as `LD_PRELOAD`, would
    /// affect it outside the isolation.
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl HelperRequest {
    /// Devices of the program.
    pub(crate) fn devices(&self) -> &'static [&'static str] {
        // Mappings of /dev/zero occupy memory even when no process maps them any more.
        const DEVICES: [&str; 4] = ["/dev/null", "/dev/urandom", "/dev/random", "/dev/zero"];
        if self.is_memory_counted { &DEVICES } else { &DEVICES[..3] }
    }
}

/// Layers to set up. Each is available according to the probe, so a failure is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EnabledLayers {
    pub(crate) namespaces: bool,
    pub(crate) landlock: bool,
    pub(crate) seccomp: bool,
}

/// Limits of each process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub(crate) data_bytes: u64,
    /// Maximum address space, if no cgroup counts shared memory and the program does not reserve more.
    pub(crate) address_bytes: Option<u64>,
    pub(crate) file_bytes: u64,
    pub(crate) files: u64,
    /// Maximum number of processes of the user, if no cgroup counts them.
    pub(crate) processes: Option<u64>,
}
