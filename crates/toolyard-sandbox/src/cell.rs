//! What a program may have.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;

/// What happens where the machine cannot put up all walls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing is started.
    #[default]
    Required,
    /// What can be put up is; what cannot is reported. The memory and the number of a tree's processes are looked
    /// at from outside then, and the share of processors is not limited.
    BestEffort,
    /// There are none: the program is the caller's own. It can do what the gateway can. Its limits are those of
    /// each process, and it ends with the gateway as every program does.
    None,
}

/// What a program may have, with all that it starts.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Whether it has the machine's network, which includes what listens on its loopback.
    pub network: bool,
    /// Memory of all its processes together, in bytes, what it writes to its folder included.
    pub memory_bytes: u64,
    /// Thousandths of a processor that all its processes have together: 500 is half of one.
    pub cpu_millis: u32,
    /// How many processes and threads there may be.
    pub processes: u32,
    /// How many files each process may have open.
    pub files: u32,
    /// Room in `/tmp`, which is also its home, in bytes.
    pub disk_bytes: u64,
    /// What it may read beside the system's programs and libraries. Where walls are missing it sees the machine's own
    /// paths, so that a path is best the same inside.
    pub readable: Vec<Mount>,
    /// Its environment, beside `HOME`, `LANG`, `PATH` and `TMPDIR`. It is for programs: a function of our own binary
    /// does not find it.
    pub env: Vec<(OsString, OsString)>,
}

/// A folder or a file of the machine that a cell has, read-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is.
    pub host: PathBuf,
    /// Where the program finds it: an absolute path.
    pub inside: PathBuf,
}

/// What runs in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CellProgram {
    /// A program of the system, or of what is readable.
    Exec {
        /// Its path, or a name in `/usr/local/bin`, `/usr/bin` and `/bin`.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A function of our own binary: one of those that [`enter_if_asked`](crate::enter_if_asked) was given.
    Inner {
        /// The name under which it was given.
        name: String,
        /// What it is called with.
        args: Vec<String>,
    },
}

impl Default for Cell {
    /// The limits of a script: half a processor and 256 MiB.
    fn default() -> Self {
        Self {
            network: false,
            memory_bytes: 256 << 20,
            cpu_millis: 500,
            processes: 64,
            files: 256,
            disk_bytes: 64 << 20,
            readable: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl Mount {
    /// At the same path inside as outside.
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let host = path.into();
        Self { inside: host.clone(), host }
    }
}

impl Cell {
    /// Limits below which nothing can run, and paths that lead elsewhere.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        let refuse = |what: String| Err(SandboxError::Cell(what));
        if self.memory_bytes < 4 << 20 {
            return refuse(format!("{} bytes of memory are less than 4 MiB", self.memory_bytes));
        }
        if self.cpu_millis < 10 || self.processes == 0 || self.files < 8 || self.disk_bytes < 64 << 10 {
            return refuse(
                "less than 10 thousandths of a processor, a process, 8 files or 64 KiB".to_owned(),
            );
        }
        for Mount { inside, .. } in &self.readable {
            if !is_plain(inside) {
                return refuse(format!("{inside:?} is not an absolute path without `..`"));
            }
        }
        if let Some((name, _)) = self.env.iter().find(|(name, value)| !is_variable(name, value)) {
            return refuse(format!("{name:?} cannot be set in an environment"));
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
