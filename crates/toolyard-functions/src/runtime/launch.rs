//! How the process of a worker is started: in a cell, which has neither the network nor any file of the gateway's.

use std::path::PathBuf;
use std::sync::Arc;

use toolyard_process::Pipes;
use toolyard_sandbox::{Cell, CellProgram, Confined, Mount, Sandbox, SandboxError};

use super::guest;
use crate::code::{Code, Language};
use crate::run::RunError;

/// What a worker for Python runs.
const PYTHON_WORKER: &str = include_str!("python_worker.py");

/// What a function has of the processors at most, as on the platform: two of them.
const CPU_MILLIS: u32 = 2000;

/// Room for its files and for those that it writes, in bytes.
const DISK_BYTES: u64 = 64 << 20;

/// What authors of functions in Python are told that may not have a network.
const NO_NETWORK: &str = "its `network: true` would give Python the whole network of this machine, with all that \
    trusts its loopback, such as a gateway without keys: where authors may have that, the gateway's manifest says \
    `functions: {hostNetwork: true}`";

/// Starts the processes of workers.
#[derive(Clone)]
pub(super) struct Launcher {
    pub(super) sandbox: Sandbox,
    pub(super) python: PathBuf,
    pub(super) host_network: bool,
}

impl Launcher {
    /// Refuses what is not to be started on this machine.
    pub(super) fn check(&self, code: &Code) -> Result<(), RunError> {
        if has_network(code) && !self.host_network {
            return Err(RunError::NotLoaded { message: NO_NETWORK.to_owned() });
        }
        Ok(())
    }

    /// Dropping what is started kills it.
    pub(super) async fn launch(&self, code: &Code) -> Result<(Confined, Pipes), SandboxError> {
        let name: Arc<str> = format!("function {}", code.key).into();
        self.sandbox.start(&name, &cell(code), &self.program(code.language)).await
    }

    fn program(&self, language: Language) -> CellProgram {
        match language {
            Language::Python => CellProgram::Exec {
                command: self.python.clone(),
                args: ["-I", "-S", "-c", PYTHON_WORKER].map(str::to_owned).to_vec(),
            },
            Language::JavaScript | Language::Lua => CellProgram::Inner {
                name: guest::NAME.to_owned(),
                args: vec![language.extension().to_owned()],
            },
        }
    }
}

/// Whether its process reaches the network. The others have `fetch`, which the host does for them.
fn has_network(code: &Code) -> bool {
    code.network && code.language == Language::Python
}

/// The environment of a function is not that of its process, which others of the machine may be able to read: the worker
/// is told of it.
fn cell(code: &Code) -> Cell {
    let is_python = code.language == Language::Python;
    Cell {
        network: has_network(code),
        memory_bytes: code.limits.memory_bytes,
        cpu_millis: CPU_MILLIS,
        processes: if is_python { 64 } else { 4 },
        disk_bytes: DISK_BYTES,
        readable: code.packages.iter().map(Mount::same).collect(),
        ..Cell::default()
    }
}
