//! Start of worker processes in sandboxes without network and without files of the gateway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolyard_process::ChildPipes;
use toolyard_sandbox::{ReadOnlyMount, Sandbox, SandboxError, SandboxProgram, SandboxSpec, SandboxedProcess};

use super::guest;
use crate::code::{FunctionCode, SourceLanguage};
use crate::run::RunError;

/// Program of Python workers. It is sent on standard input, so that process lists do not show it.
const PYTHON_WORKER: &str = concat!(
    include_str!("python_attributes.py"),
    "\n\n",
    include_str!("python_reset.py"),
    "\n\n",
    include_str!("python_worker.py")
);

/// Reads the length and the program of a Python worker, and passes the rest of the pipe to it as `reads`.
const PYTHON_START: &str = "import fcntl,os;reads=os.fdopen(fcntl.fcntl(0,fcntl.F_DUPFD_CLOEXEC,64),'rb');\
    exec(compile(reads.read(int(reads.readline())),'worker.py','exec'))";

/// CPU limit of a function in thousandths of a processor, as on the platform.
const CPU_MILLIS: u32 = 2000;

/// Disk limit for the function's files and its output, in bytes.
const DISK_BYTES: u64 = 64 << 20;

/// Error of Python functions that request the network without permission.
const NO_NETWORK: &str = "its `network: true` would give Python the whole network of this machine, with all that \
    trusts its loopback, such as a gateway without keys: where authors may have that, the gateway's manifest says \
    `functions: {hostNetwork: true}`";

/// Starts the processes of workers.
#[derive(Clone)]
pub(super) struct WorkerLauncher {
    pub(super) sandbox: Sandbox,
    pub(super) python: PathBuf,
    pub(super) host_network: bool,
}

impl WorkerLauncher {
    /// Refuses code that may not run on this machine.
    pub(super) fn check(&self, code: &FunctionCode) -> Result<(), RunError> {
        if has_network(code) && !self.host_network {
            return Err(RunError::NotLoaded { message: NO_NETWORK.to_owned() });
        }
        Ok(())
    }

    /// Starts a worker process. Dropping it kills the process.
    pub(super) async fn launch(
        &self,
        code: &FunctionCode,
    ) -> Result<(SandboxedProcess, ChildPipes), SandboxError> {
        let name: Arc<str> = format!("function {}", code.key).into();
        self.sandbox.start(&name, &sandbox_spec(code), &self.program(code.language)).await
    }

    /// Returns why a worker has not read its program in time, and logs it: not every start has a caller.
    pub(super) fn slow_start(&self, code: &FunctionCode, elapsed: Duration) -> String {
        let millis = elapsed.as_millis();
        let why = match code.language {
            SourceLanguage::Python => format!(
                "{} has not started within {millis} ms: if it is a script that looks for an interpreter, set \
                 `sandbox.python` to the interpreter itself",
                self.python.display()
            ),
            SourceLanguage::JavaScript | SourceLanguage::Lua => {
                format!("the process has not started within {millis} ms")
            }
        };
        tracing::warn!(code = %code.key, "worker killed: {why}");
        why
    }

    /// Returns the bytes that a worker reads before the code.
    pub(super) fn preface(language: SourceLanguage) -> Vec<u8> {
        match language {
            SourceLanguage::Python => format!("{}\n{PYTHON_WORKER}", PYTHON_WORKER.len()).into_bytes(),
            SourceLanguage::JavaScript | SourceLanguage::Lua => Vec::new(),
        }
    }

    fn program(&self, language: SourceLanguage) -> SandboxProgram {
        match language {
            SourceLanguage::Python => SandboxProgram::Exec {
                command: self.python.clone(),
                // Unbuffered, so that no output of a call is written during the next one.
                args: ["-I", "-S", "-u", "-c", PYTHON_START].map(str::to_owned).to_vec(),
            },
            SourceLanguage::JavaScript | SourceLanguage::Lua => SandboxProgram::Inner {
                name: guest::ENTRY_NAME.to_owned(),
                args: vec![language.extension().to_owned()],
            },
        }
    }
}

/// True if the process has network access. Other languages use `fetch`, which the host executes.
fn has_network(code: &FunctionCode) -> bool {
    code.network && code.language == SourceLanguage::Python
}

/// Returns the sandbox of a worker. The function's environment is sent to the worker and not set for the process, because
/// other users may be able to read it.
fn sandbox_spec(code: &FunctionCode) -> SandboxSpec {
    let is_python = code.language == SourceLanguage::Python;
    SandboxSpec {
        network: has_network(code),
        memory_bytes: code.limits.memory_bytes,
        cpu_millis: CPU_MILLIS,
        processes: if is_python { 64 } else { 4 },
        disk_bytes: DISK_BYTES,
        readable: code.packages.iter().map(ReadOnlyMount::same).collect(),
        ..SandboxSpec::default()
    }
}
