//! Python scripts on this machine, each in a new sandbox: [`LocalRunner`].
//!
//! - `interpreter`: location of Python in sandboxes;
//! - `bootstrap.py`: start-up code of the interpreter; `payload`: its input;
//! - `execution`: execution of one script;
//! - `output`: limits of the collected output;
//! - `errors`: errors for callers.

mod errors;
mod execution;
mod interpreter;
mod output;
mod payload;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_core::{ErrorCode, ToolError};

use crate::packages::{PackageEnvironment, PackageInstaller};
use crate::{ReadOnlyMount, Sandbox, SandboxProgram, SandboxSpec};

pub(crate) use interpreter::PythonInterpreter;
use payload::ScriptPayload;

pub use interpreter::interpreter;

/// Start-up code of the interpreter.
const BOOTSTRAP: &str = include_str!("script/bootstrap.py");

/// Options of a [`LocalRunner`].
#[derive(Clone, Debug)]
pub struct LocalRunnerOptions {
    /// Python interpreter, by path or by a name that sandboxes find (see [`interpreter`]). Packages must be for the
    /// same.
    pub python: PathBuf,
    /// True if scripts have the machine's network, including services on its loopback interface.
    pub network: bool,
    /// Maximum memory of a script and its descendants, in bytes.
    pub memory_bytes: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// Maximum number of processes and threads.
    pub processes: u32,
    /// Maximum number of bytes in files.
    pub disk_bytes: u64,
    /// Maximum size of standard output, and of standard error, in bytes.
    pub output_bytes: usize,
    /// Maximum number of concurrent scripts, including those that wait for packages. More are refused.
    pub concurrent: usize,
    /// Time limit for the installation of packages. The installation continues after it.
    pub packages_time: Duration,
}

impl Default for LocalRunnerOptions {
    fn default() -> Self {
        Self {
            python: "python3".into(),
            network: false,
            memory_bytes: 256 << 20,
            cpu_millis: 500,
            processes: 64,
            disk_bytes: 64 << 20,
            output_bytes: 1 << 20,
            concurrent: 8,
            packages_time: Duration::from_secs(300),
        }
    }
}

/// Runs scripts on this machine in sandboxes.
pub struct LocalRunner {
    sandbox: Sandbox,
    packages: Option<PackageInstaller>,
    options: LocalRunnerOptions,
    interpreter: PythonInterpreter,
    permits: Semaphore,
    /// Name in the list of processes.
    name: Arc<str>,
}

impl LocalRunner {
    /// Creates a runner. Without `packages` scripts have only the standard library.
    #[must_use]
    pub fn new(sandbox: Sandbox, packages: Option<PackageInstaller>, options: LocalRunnerOptions) -> Self {
        let permits = Semaphore::new(options.concurrent.min(Semaphore::MAX_PERMITS));
        let interpreter = PythonInterpreter::find(&options.python);
        Self { sandbox, packages, interpreter, permits, name: "script".into(), options }
    }

    async fn run(&self, script: PythonScript) -> Result<ScriptOutcome, ToolError> {
        let _permit =
            self.permits.try_acquire().map_err(|_| errors::too_many_scripts(self.options.concurrent))?;
        payload::check(&script, self.options.memory_bytes)?;
        // Checked first, so that a script that cannot run does not wait for packages.
        self.sandbox.ready().await.map_err(errors::sandbox_error)?;
        let packages = self.packages(&script.packages).await?;
        let packages = packages.as_ref().map(|environment| environment.path());
        let payload = ScriptPayload {
            source: &script.source,
            input: script.input.as_deref().unwrap_or_default(),
            packages,
            memory_bytes: self.options.memory_bytes,
            disk_bytes: self.options.disk_bytes,
        };
        let began = Instant::now();
        let (spec, program) = (self.sandbox_spec(packages), self.program());
        let started = self.sandbox.start(&self.name, &spec, &program).await;
        let (process, pipes) = started.map_err(errors::sandbox_error)?;
        let limits = execution::ScriptLimits {
            deadline: began + script.timeout,
            output_bytes: self.options.output_bytes,
            memory_bytes: self.options.memory_bytes,
            processes: self.options.processes,
        };
        let output = execution::run_to_end(&process, pipes, &payload.bytes(), &limits).await?;
        Ok(ScriptOutcome {
            output: output.output,
            stderr: output.stderr,
            exit_code: output.exit_code,
            elapsed: began.elapsed(),
        })
    }

    /// Installs the packages of a script. They are kept while the result is in use.
    async fn packages(&self, requirements: &[String]) -> Result<Option<Arc<PackageEnvironment>>, ToolError> {
        let list = requirements.join("\n");
        if list.trim().is_empty() {
            return Ok(None);
        }
        let Some(packages) = &self.packages else {
            let why = "No packages are installed for scripts here: use the standard library alone";
            return Err(ToolError::new(ErrorCode::InvalidArguments, why));
        };
        let limit = self.options.packages_time;
        let result = timeout(limit, packages.environment(&list)).await;
        let result = result.map_err(|_| errors::packages_timed_out(limit))?;
        result.map(Some).map_err(|error| errors::package_error(&error))
    }

    fn sandbox_spec(&self, packages: Option<&Path>) -> SandboxSpec {
        let folders = [self.interpreter.folder.as_deref(), packages];
        SandboxSpec {
            network: self.options.network,
            memory_bytes: self.options.memory_bytes,
            cpu_millis: self.options.cpu_millis,
            processes: self.options.processes,
            disk_bytes: self.options.disk_bytes,
            readable: folders.into_iter().flatten().map(ReadOnlyMount::same).collect(),
            ..SandboxSpec::default()
        }
    }

    /// Returns the command of the interpreter: without the variables and packages of the machine, and with unbuffered
    /// output, so that the output of a killed script is complete.
    fn program(&self) -> SandboxProgram {
        let args = ["-I", "-S", "-u", "-X", "utf8", "-c", BOOTSTRAP];
        SandboxProgram::Exec {
            command: self.interpreter.command.clone(),
            args: args.map(str::to_owned).to_vec(),
        }
    }
}

impl ScriptExecutor for LocalRunner {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        self.run(script).boxed()
    }
}
