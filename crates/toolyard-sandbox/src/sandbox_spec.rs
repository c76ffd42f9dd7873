//! Limits and access of a sandboxed program.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;

/// Behaviour if the machine lacks isolation layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationRequirement {
    /// Nothing is started.
    #[default]
    Required,
    /// Programs run with the available layers; missing ones are reported. Isolation of memory and files is still
    /// required. Without cgroups a watchdog checks the memory and the number of processes of each process tree, and the
    /// share of processors is not limited.
    BestEffort,
    /// No isolation: the program is trusted and can do what the gateway can. Limits apply to each process, and the
    /// program ends with the gateway.
    None,
}

/// Limits and access of a program and its descendants.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    /// True if the program has the machine's network, including services on its loopback interface.
    pub network: bool,
    /// True if the sandbox has its own loopback interface, which connects only its own processes.
    pub loopback: bool,
    /// Maximum memory of all processes together, in bytes, including files in the program's folder.
    pub memory_bytes: u64,
    /// Thousandths of a processor for all processes together: 500 is half a processor.
    pub cpu_millis: u32,
    /// Maximum number of processes and threads.
    pub processes: u32,
    /// Maximum number of open files per process.
    pub files: u32,
    /// Size of `/tmp`, which is also the home folder, in bytes.
    pub disk_bytes: u64,
    /// True if the program reserves far more addresses than it uses, as browsers do: then its address space is not limited.
    /// If no cgroup limits memory, only the watchdog does.
    pub reserves_addresses: bool,
    /// Readable paths in addition to the system's programs and libraries. Without namespaces the program sees the host
    /// paths, so `inside` should equal `host`.
    pub readable: Vec<ReadOnlyMount>,
    /// Environment variables in addition to `HOME`, `LANG`, `PATH` and `TMPDIR`. Functions of our own binary do not
    /// receive them.
    pub env: Vec<(OsString, OsString)>,
}

/// A host folder or file that a sandbox can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnlyMount {
    /// Path on the host.
    pub host: PathBuf,
    /// Absolute path in the sandbox.
    pub inside: PathBuf,
}

/// Program to run in a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SandboxProgram {
    /// A program of the system or of the readable paths.
    Exec {
        /// Path, or a name in `/usr/local/bin`, `/usr/bin` and `/bin`.
        command: PathBuf,
        /// Arguments.
        args: Vec<String>,
    },
    /// A function of our own binary: one of the entries of [`enter_if_asked`](crate::enter_if_asked).
    Inner {
        /// Name of the entry.
        name: String,
        /// Arguments of the function.
        args: Vec<String>,
    },
}

impl Default for SandboxSpec {
    /// The limits of scripts: half a processor and 256 MiB.
    fn default() -> Self {
        Self {
            network: false,
            loopback: false,
            memory_bytes: 256 << 20,
            cpu_millis: 500,
            processes: 64,
            files: 256,
            disk_bytes: 64 << 20,
            reserves_addresses: false,
            readable: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl ReadOnlyMount {
    /// Returns a mount with the same path on the host and in the sandbox.
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let host = path.into();
        Self { inside: host.clone(), host }
    }
}

impl SandboxSpec {
    /// Checks that the limits suffice for a program and that the paths and variables are valid.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        let refuse = |what: String| Err(SandboxError::InvalidSpec(what));
        if self.memory_bytes < 4 << 20 {
            return refuse(format!("memory limit of {} bytes is below 4 MiB", self.memory_bytes));
        }
        if self.cpu_millis < 10 || self.processes == 0 || self.files < 8 || self.disk_bytes < 64 << 10 {
            return refuse(
                "limits below 10 thousandths of a processor, 1 process, 8 files or 64 KiB of disk".to_owned(),
            );
        }
        for ReadOnlyMount { inside, .. } in &self.readable {
            if !is_plain(inside) {
                return refuse(format!("{inside:?} is not an absolute path without `..`"));
            }
        }
        if let Some((name, _)) = self.env.iter().find(|(name, value)| !is_variable(name, value)) {
            return refuse(format!("invalid environment variable {name:?}"));
        }
        Ok(())
    }
}

fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::RootDir)
        && path != Path::new("/")
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn is_variable(name: &OsString, value: &OsString) -> bool {
    let name = name.as_encoded_bytes();
    let bad = |byte: &u8| matches!(byte, b'=' | 0);
    !name.is_empty() && !name.iter().any(bad) && !value.as_encoded_bytes().contains(&0)
}
