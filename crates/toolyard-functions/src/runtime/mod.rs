//! Has code answer events, in worker processes that can be killed.
//!
//! A worker has the code of one version and takes one call at a time. What runs in it can block in a way that no
//! engine stops (`'a'.repeat(200000).indexOf(…)`, `string.find`), and can need more memory than there is; so the
//! guarantee of each limit is that the process is killed. JavaScript and Lua run in processes of our own binary, with
//! a fresh state for each call; Python in an interpreter of the machine, which stays warm.
//!
//! - [`Runtimes`]: what callers have;
//! - `pool`: who waits for a worker, and which are kept;
//! - `worker`: one of them, as the host sees it;
//! - `launch`: how its process is started;
//! - `wire`: what the two say to each other;
//! - `guest`: a worker in our own binary; `python_worker.py`: one in Python;
//! - [`Fetch`]: how handlers reach the network.

mod fetch;
mod guest;
mod launch;
mod pool;
mod wire;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use toolyard_core::Json;
use toolyard_sandbox::{Entry, Sandbox};

pub use self::fetch::{Fetch, FetchRequest, FetchResponse};
use self::launch::Launcher;
use self::pool::Pools;
use self::worker::CallError;
use crate::code::{Code, Context};
use crate::run::{Ran, Run, RunError};

/// What a binary has among its entries (see [`toolyard_sandbox::enter_if_asked`]) that is the sandbox's: a worker for
/// JavaScript or Lua.
pub const ENTRY: (&str, Entry) = (guest::NAME, guest::work);

/// How much later than a handler is told to stop its process is killed: a limit that the engine itself keeps gives the
/// better message.
const GRACE: Duration = Duration::from_millis(100);

/// How functions are run.
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Where workers run. Its binary knows [`ENTRY`].
    pub sandbox: Sandbox,
    /// The interpreter of Python 3.
    pub python: PathBuf,
    /// What handlers fetch by, where their version may.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Whether handlers in Python whose version may reach the network have this machine's, what listens on its loopback
    /// included. Without it such versions are not loaded; `fetch` is another thing.
    pub host_network: bool,
    /// How many workers there are at most, of all functions together. The calls of one version run in half of them at
    /// most.
    pub workers: usize,
    /// How many calls may wait for a worker of one version, beside those that run.
    pub waiting: usize,
    /// How long a worker is kept without a call.
    pub idle_time: Duration,
    /// After how many calls a worker is replaced by another one.
    pub calls_per_worker: u64,
}

impl RuntimeOptions {
    /// Bounds for a machine of a usual size.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            python: "python3".into(),
            fetch: None,
            host_network: false,
            workers: 64,
            waiting: 256,
            idle_time: Duration::from_secs(300),
            calls_per_worker: 1000,
        }
    }

    fn launcher(&self) -> Launcher {
        Launcher {
            sandbox: self.sandbox.clone(),
            python: self.python.clone(),
            host_network: self.host_network,
        }
    }
}

/// Has code answer events. Clones are one and the same; when the last one is dropped all workers end.
#[derive(Clone)]
pub struct Runtimes {
    pools: Arc<Pools>,
}

/// The workers of one code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// The key of the code.
    pub code: Arc<str>,
    /// How many calls run.
    pub running: usize,
    /// How many calls wait for their turn.
    pub waiting: usize,
    /// How many workers wait for a call.
    pub idle: usize,
}

impl Runtimes {
    /// No worker is started before there is a call.
    #[must_use]
    pub fn new(options: RuntimeOptions) -> Self {
        Self { pools: Arc::new(Pools::new(options)) }
    }

    /// Has the handler of `code` answer one event. Dropping the future kills the worker that has the call.
    ///
    /// # Errors
    /// When there is no answer; see [`RunError`].
    pub async fn run(&self, code: &Arc<Code>, event: &Json, context: &Context) -> Result<Ran, RunError> {
        let left = context.deadline.duration_since(SystemTime::now()).unwrap_or_default();
        let deadline = Instant::now() + left.min(code.limits.wall);
        let visit = self.pools.enter(code, deadline).await?;
        let call = async {
            let mut placed = visit.worker(deadline).await?;
            let left = || deadline.saturating_duration_since(Instant::now());
            let mut result = placed.worker.call(event, context, left()).await;
            if matches!(result, Err(CallError::Untouched)) {
                drop(placed);
                placed = visit.fresh(deadline).await?;
                result = placed.worker.call(event, context, left()).await;
            }
            visit.give_back(placed);
            result.map_err(|error| match error {
                CallError::Untouched => {
                    RunError::Unavailable("its worker ends before it is called".to_owned())
                }
                CallError::Failed(error) => error,
            })
        };
        timeout_at(deadline + GRACE, call).await.unwrap_or(Err(RunError::TimedOut))
    }

    /// Starts a worker for the code, where none is warm, and keeps it: so it is known whether the code can be loaded.
    ///
    /// # Errors
    /// When there is no worker that has loaded the code.
    pub async fn load(&self, code: &Arc<Code>) -> Result<(), RunError> {
        let deadline = Instant::now() + code.limits.wall;
        let visit = self.pools.enter(code, deadline).await?;
        let placed = timeout_at(deadline, visit.worker(deadline)).await.unwrap_or(Err(RunError::TimedOut))?;
        visit.give_back(placed);
        Ok(())
    }

    /// The workers, by the code that they have.
    #[must_use]
    pub fn info(&self) -> Vec<WorkerInfo> {
        self.pools.info()
    }
}

impl Run for Runtimes {
    fn run<'a>(
        &'a self,
        code: &'a Arc<Code>,
        event: &'a Json,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Ran, RunError>> {
        Box::pin(Self::run(self, code, event, context))
    }

    fn load<'a>(&'a self, code: &'a Arc<Code>) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(Self::load(self, code))
    }
}
