//! Finds out which walls this machine has: tries each in a process of its own, and says one line of each.

use std::io::Write;
use std::path::PathBuf;

use rustix::process::{WaitOptions, waitpid};
use rustix::thread::set_no_new_privs;

use super::raw::{Side, fork};
use super::{Fault, Limits, Spec, Walls, init, landlock, namespaces, seccomp};
use crate::CellProgram;

/// Puts up one wall, or says why not.
type Try = fn() -> Result<(), String>;

/// The walls that are tried, by the names that the lines begin with.
const TRIES: [(&str, Try); 3] =
    [("namespaces", namespaces), ("landlock", landlock::probe), ("seccomp", seccomp)];

pub(super) fn run() -> i32 {
    for (name, wall) in TRIES {
        let Ok(Side::Parent(child)) = fork() else {
            // In the child, and where there is none.
            let why = wall().err().unwrap_or_default().replace('\n', " ");
            let mut out = std::io::stdout();
            return i32::from(writeln!(out, "{name}\t{why}").and_then(|()| out.flush()).is_err());
        };
        let _status = waitpid(Some(child), WaitOptions::empty());
    }
    0
}

fn namespaces() -> Result<(), String> {
    let spec = Spec {
        walls: Walls { user: true, namespaces: true, ..Walls::default() },
        join: Vec::new(),
        network: false,
        limits: Limits {
            data_bytes: u64::MAX,
            address_bytes: None,
            file_bytes: 1 << 20,
            files: 64,
            processes: None,
        },
        mounts: Vec::new(),
        home: PathBuf::from("/tmp"),
        program: CellProgram::Inner { name: String::new(), args: Vec::new() },
        env: Vec::new(),
    };
    let tried = namespaces::leave_root()
        .and_then(|()| namespaces::leave(spec.network))
        .and_then(|()| init::descend(&spec));
    tried.map_err(|Fault(why)| why)
}

fn seccomp() -> Result<(), String> {
    set_no_new_privs(true).map_err(|error| error.to_string())?;
    seccomp::probe()
}
