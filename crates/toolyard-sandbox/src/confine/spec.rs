//! What a helper is told to do.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{CellProgram, Mount};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) walls: Walls,
    /// The files of cgroups that who joins writes to.
    pub(crate) join: Vec<PathBuf>,
    pub(crate) network: bool,
    pub(crate) limits: Limits,
    pub(crate) mounts: Vec<Mount>,
    /// Its home, where it begins, and what it may write to.
    pub(crate) home: PathBuf,
    pub(crate) program: CellProgram,
    /// Its environment. In that of the helper it would say something to those who load and run the helper, such as
    /// `LD_PRELOAD`, outside of the walls.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// Which walls to put up. One that cannot be put up is a failure: what the machine has was found out before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Walls {
    /// Whether the program is another user than root.
    pub(crate) user: bool,
    pub(crate) namespaces: bool,
    pub(crate) landlock: bool,
    pub(crate) seccomp: bool,
}

/// Limits of each process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) data_bytes: u64,
    /// Address space, where no cgroup counts what processes share.
    pub(crate) address_bytes: Option<u64>,
    pub(crate) file_bytes: u64,
    pub(crate) files: u64,
    /// Processes of the user, where no cgroup counts them.
    pub(crate) processes: Option<u64>,
}
