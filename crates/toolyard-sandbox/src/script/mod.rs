//! Scripts in Python on this machine, each once in a cell of its own: [`LocalRunner`].
//!
//! - `interpreter`: where Python is, as cells see it;
//! - `bootstrap.py`: what it runs first; `payload`: what that is given;
//! - `conversation`: one script from its start to its end;
//! - `output`: as much of what it writes as is kept;
//! - `refusal`: why one was not run, as its caller reads it.

mod conversation;
mod interpreter;
mod output;
mod payload;
mod refusal;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use toolyard_core::script::{Runner, Script, ScriptOutcome};
use toolyard_core::{Code, ToolError};

use crate::packages::{Environment, Packages};
use crate::{Cell, CellProgram, Mount, Sandbox};

use interpreter::Interpreter;
use payload::Payload;

pub use interpreter::interpreter;

/// What the interpreter runs first.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// What scripts have.
#[derive(Clone, Debug)]
pub struct LocalRunnerOptions {
    /// The interpreter, by its path or a name that cells find (see [`interpreter`]). Packages are to be for the same.
    pub python: PathBuf,
    /// Whether they reach the machine's network, what listens on its loopback included.
    pub network: bool,
    /// Memory of a script with all that it starts, in bytes.
    pub memory_bytes: u64,
    /// Thousandths of a processor that it has.
    pub cpu_millis: u32,
    /// How many processes and threads it may be.
    pub processes: u32,
    /// Bytes that it may write to files.
    pub disk_bytes: u64,
    /// Bytes that are kept of what it prints, and as many of what it writes to standard error.
    pub output_bytes: usize,
    /// Scripts at a time, those that wait for packages included. More are refused.
    pub concurrent: usize,
    /// How long a script waits for its packages. An installation that takes longer goes on without it.
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

/// Runs scripts on this machine, in the cells of a sandbox.
pub struct LocalRunner {
    sandbox: Sandbox,
    packages: Option<Packages>,
    options: LocalRunnerOptions,
    interpreter: Interpreter,
    places: Semaphore,
    /// In the list of processes.
    name: Arc<str>,
}

impl LocalRunner {
    /// Without `packages` scripts have the standard library alone.
    #[must_use]
    pub fn new(sandbox: Sandbox, packages: Option<Packages>, options: LocalRunnerOptions) -> Self {
        let places = Semaphore::new(options.concurrent.min(Semaphore::MAX_PERMITS));
        let interpreter = Interpreter::find(&options.python);
        Self { sandbox, packages, interpreter, places, name: "script".into(), options }
    }

    async fn run(&self, script: Script) -> Result<ScriptOutcome, ToolError> {
        let _place = self.places.try_acquire().map_err(|_| refusal::full(self.options.concurrent))?;
        payload::check(&script, self.options.memory_bytes)?;
        // Who cannot run at all is not to wait for packages first.
        self.sandbox.ready().await.map_err(refusal::of_sandbox)?;
        let packages = self.packages(&script.packages).await?;
        let packages = packages.as_ref().map(|environment| environment.path());
        let payload = Payload {
            source: &script.source,
            input: script.input.as_deref().unwrap_or_default(),
            packages,
            memory_bytes: self.options.memory_bytes,
            disk_bytes: self.options.disk_bytes,
        };
        let began = Instant::now();
        let (cell, program) = (self.cell(packages), self.program());
        let started = self.sandbox.start(&self.name, &cell, &program).await;
        let (confined, pipes) = started.map_err(refusal::of_sandbox)?;
        let limits = conversation::Limits {
            deadline: began + script.timeout,
            output_bytes: self.options.output_bytes,
            memory_bytes: self.options.memory_bytes,
            processes: self.options.processes,
        };
        let ended = conversation::hold(&confined, pipes, &payload.bytes(), &limits).await?;
        Ok(ScriptOutcome {
            output: ended.output,
            stderr: ended.stderr,
            exit_code: ended.exit_code,
            elapsed: began.elapsed(),
        })
    }

    /// What a script asks for, installed. It stays for as long as what is given is kept.
    async fn packages(&self, wanted: &[String]) -> Result<Option<Arc<Environment>>, ToolError> {
        let list = wanted.join("\n");
        if list.trim().is_empty() {
            return Ok(None);
        }
        let Some(packages) = &self.packages else {
            let why = "No packages are installed for scripts here: use the standard library alone";
            return Err(ToolError::new(Code::InvalidArguments, why));
        };
        let patience = self.options.packages_time;
        let built = timeout(patience, packages.environment(&list)).await;
        let built = built.map_err(|_| refusal::slow_packages(patience))?;
        built.map(Some).map_err(|error| refusal::of_packages(&error))
    }

    fn cell(&self, packages: Option<&Path>) -> Cell {
        let folders = [self.interpreter.folder.as_deref(), packages];
        Cell {
            network: self.options.network,
            memory_bytes: self.options.memory_bytes,
            cpu_millis: self.options.cpu_millis,
            processes: self.options.processes,
            disk_bytes: self.options.disk_bytes,
            readable: folders.into_iter().flatten().map(Mount::same).collect(),
            ..Cell::default()
        }
    }

    /// Python without the variables and the packages of the machine, and without a buffer for what it prints: what is
    /// there is read also when it is killed.
    fn program(&self) -> CellProgram {
        let args = ["-I", "-S", "-u", "-X", "utf8", "-c", BOOTSTRAP];
        CellProgram::Exec {
            command: self.interpreter.command.clone(),
            args: args.map(str::to_owned).to_vec(),
        }
    }
}

impl Runner for LocalRunner {
    fn run(&self, script: Script) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        self.run(script).boxed()
    }
}
