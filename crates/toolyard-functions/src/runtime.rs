//! Execution of functions in worker processes that can be killed.
//!
//! A worker has the code of one version and handles one call at a time. Code can block in ways that no engine can
//! interrupt (`'a'.repeat(200000).indexOf(…)`, `string.find`), and can exceed the available memory, so limits are
//! enforced by killing the process. JavaScript and Lua run in processes of our own binary, with a new state for each
//! call; Python runs in an interpreter of the machine, which is reused.
//!
//! - [`FunctionRuntime`]: interface for callers;
//! - `pool`: queues of calls, and idle workers;
//! - `worker`: host side of one worker;
//! - `raw_output`: output of a worker process outside the protocol;
//! - `launch`: start of worker processes;
//! - `wire`: messages between host and worker;
//! - `guest`: workers in our own binary; `python_worker.py`: workers in Python;
//! - `python_reset.py`: removal of traces of previous calls in Python workers;
//! - `python_attributes.py`: attributes of the process and of Python that are restored after a call;
//! - [`HttpFetcher`]: network access of handlers;
//! - [`ToolHost`]: tools that handlers call.

mod fetch;
mod guest;
mod launch;
mod pool;
mod raw_output;
mod tools;
mod wire;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use toolyard_core::Json;
use toolyard_sandbox::{EntryFunction, Sandbox};

pub use self::fetch::{FetchRequest, FetchResponse, HttpFetcher};
use self::launch::WorkerLauncher;
use self::pool::WorkerPools;
pub use self::tools::{ProgressReport, ToolHost};
use self::worker::CallError;
use crate::code::{CallContext, FunctionCode};
use crate::run::{CodeRunner, RunError, RunOutput};

/// Entry of the sandbox (see [`toolyard_sandbox::enter_if_asked`]): a worker for JavaScript or Lua. The binary must
/// register it.
pub const ENTRY: (&str, EntryFunction) = (guest::ENTRY_NAME, guest::run_worker);

/// Time between the handler's deadline and the kill of its process: limits enforced by the engine give better messages.
const KILL_DELAY: Duration = Duration::from_millis(100);

/// Options of a [`FunctionRuntime`].
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Sandbox of the workers. Its binary registers [`ENTRY`].
    pub sandbox: Sandbox,
    /// Python 3 interpreter.
    pub python: PathBuf,
    /// HTTP client of handlers whose version may access the network.
    pub fetch: Option<Arc<dyn HttpFetcher>>,
    /// True if Python handlers whose version may access the network get the network of this machine, including services
    /// on its loopback interface. Otherwise such versions are not loaded. Does not affect `fetch`.
    pub host_network: bool,
    /// Maximum number of workers of all functions. The calls of one version use at most half of them.
    pub workers: usize,
    /// Maximum number of waiting calls per version, in addition to the running ones.
    pub max_waiting: usize,
    /// Time without calls after which a worker is stopped.
    pub idle_time: Duration,
    /// Number of calls after which a worker is replaced.
    pub calls_per_worker: u64,
}

impl RuntimeOptions {
    /// Default limits, for a machine of usual size.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            python: "python3".into(),
            fetch: None,
            host_network: false,
            workers: 64,
            max_waiting: 256,
            idle_time: Duration::from_secs(300),
            calls_per_worker: 1000,
        }
    }

    fn launcher(&self) -> WorkerLauncher {
        WorkerLauncher {
            sandbox: self.sandbox.clone(),
            python: self.python.clone(),
            host_network: self.host_network,
        }
    }
}

/// Runs functions. Clones share their workers, which end when the last clone is dropped.
#[derive(Clone)]
pub struct FunctionRuntime {
    workers: Arc<WorkerPools>,
}

/// Workers of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Key of the code.
    pub code: Arc<str>,
    /// Number of running calls.
    pub running: usize,
    /// Number of waiting calls.
    pub waiting: usize,
    /// Number of idle workers.
    pub idle: usize,
}

impl FunctionRuntime {
    /// Creates a runtime. Workers start on demand.
    #[must_use]
    pub fn new(options: RuntimeOptions) -> Self {
        Self { workers: Arc::new(WorkerPools::new(options)) }
    }

    /// Calls the handler of `code` with one event. Dropping the future kills the worker of the call.
    ///
    /// # Errors
    /// If there is no answer; see [`RunError`].
    pub async fn run(
        &self,
        code: &Arc<FunctionCode>,
        event: &Json,
        context: &CallContext,
    ) -> Result<RunOutput, RunError> {
        self.run_with(code, event, context, None).await
    }

    /// Calls the handler of code that may call tools. Its worker is used once.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_with_tools(
        &self,
        code: &Arc<FunctionCode>,
        event: &Json,
        context: &CallContext,
        tools: &dyn ToolHost,
    ) -> Result<RunOutput, RunError> {
        self.run_with(code, event, context, Some(tools)).await
    }

    async fn run_with(
        &self,
        code: &Arc<FunctionCode>,
        event: &Json,
        context: &CallContext,
        tools: Option<&dyn ToolHost>,
    ) -> Result<RunOutput, RunError> {
        let left = context.deadline.duration_since(SystemTime::now()).unwrap_or_default();
        let deadline = Instant::now() + left.min(code.limits.time_limit);
        let visit = self.workers.acquire_call(code, deadline).await?;
        let call = async {
            let mut placed = visit.worker(deadline).await?;
            let left = || deadline.saturating_duration_since(Instant::now());
            let mut result = placed.worker.call(event, context, tools, left()).await;
            if matches!(result, Err(CallError::NotStarted)) {
                drop(placed);
                placed = visit.new_worker(deadline).await?;
                result = placed.worker.call(event, context, tools, left()).await;
            }
            visit.release(placed);
            result.map_err(|error| match error {
                CallError::NotStarted => RunError::Unavailable("its worker ends before the call".to_owned()),
                CallError::Failed(error) => error,
            })
        };
        timeout_at(deadline + KILL_DELAY, call).await.unwrap_or(Err(RunError::TimedOut))
    }

    /// Starts a worker for the code, unless one is idle, and keeps it. This checks whether the code can be loaded.
    ///
    /// # Errors
    /// If no worker has loaded the code.
    pub async fn load(&self, code: &Arc<FunctionCode>) -> Result<(), RunError> {
        let deadline = Instant::now() + code.limits.time_limit;
        let visit = self.workers.acquire_call(code, deadline).await?;
        let placed = visit.worker(deadline).await?;
        visit.release(placed);
        Ok(())
    }

    /// Returns the workers of each version.
    #[must_use]
    pub fn info(&self) -> Vec<WorkerInfo> {
        self.workers.info()
    }
}

impl CodeRunner for FunctionRuntime {
    fn run<'a>(
        &'a self,
        code: &'a Arc<FunctionCode>,
        event: &'a Json,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<RunOutput, RunError>> {
        Box::pin(Self::run(self, code, event, context))
    }

    fn load<'a>(&'a self, code: &'a Arc<FunctionCode>) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(Self::load(self, code))
    }
}
