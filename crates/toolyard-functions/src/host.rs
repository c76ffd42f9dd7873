//! The functions of a gateway.
//!
//! - [`FunctionHost`]: interface for the gateway, the command line and the REST API;
//! - [`summary`]: representations of functions and versions in lists and in the API;
//! - `publishing`: drafts, tests, publication and deletion;
//! - `loading`: selection and loading of versions.

mod loading;
mod publishing;
pub mod summary;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::access::ScopePattern;
use toolyard_core::store::Store;
use toolyard_core::{ErrorCode, Json};
use toolyard_sandbox::packages::PackageInstaller;

use crate::calls::{self, CallLog, CallOutcome, CallRecorder, LogBounds, LogPage, LogQuery};
use crate::error::FunctionError;
use crate::function_index::FunctionIndex;
use crate::invoke::{self, InvocationResult, InvokeError};
use crate::loaded_version::LoadedVersion;
use crate::parts;
use crate::run::CodeRunner;
use crate::version::VersionSelector;
pub(crate) use loading::load_project;
pub use publishing::{DeletionTarget, PublicationResult};
pub use summary::{FunctionDetails, FunctionSummary, SourceFile, TestReport, VersionDetails, VersionSummary};

/// Options of a [`FunctionHost`].
#[derive(Clone)]
pub struct HostOptions {
    /// Installer of Python packages. Without it versions with packages cannot be loaded.
    pub packages: Option<PackageInstaller>,
    /// Variables for functions, which refer to them by `${NAME}`. Functions see no other variables of the host.
    pub host_variables: BTreeMap<String, LentVariable>,
    /// Interval of checks for changes by other gateways.
    pub poll_interval: Duration,
    /// Maximum size of the files of loaded versions, in bytes.
    pub loaded_bytes: u64,
    /// Maximum number of log entries that wait to be written.
    pub queued_entries: usize,
    /// Retention of log entries. `None`: unlimited.
    pub retention: Option<Duration>,
    /// Maximum size of the stored log, in bytes. The oldest entries are removed beyond it.
    pub log_bytes: u64,
}

/// A variable, and the functions that may use it.
#[derive(Clone)]
pub struct LentVariable {
    /// Value, which may be secret.
    pub value: String,
    /// Patterns of function ids.
    pub functions: Vec<ScopePattern>,
}

impl LentVariable {
    fn is_for(&self, id: &str) -> bool {
        self.functions.iter().any(|pattern| pattern.matches("", id))
    }
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            packages: None,
            host_variables: BTreeMap::new(),
            poll_interval: Duration::from_secs(1),
            loaded_bytes: 256 << 20,
            queued_entries: 10_000,
            retention: Some(Duration::from_secs(30 * 24 * 60 * 60)),
            log_bytes: 256 << 20,
        }
    }
}

/// Interval of sweeps for unused parts.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The functions of a store. Clones share their state; background tasks end with the last one.
#[derive(Clone)]
pub struct FunctionHost {
    shared: Arc<HostState>,
}

struct HostState {
    index: Arc<FunctionIndex>,
    runner: Arc<dyn CodeRunner>,
    options: HostOptions,
    call_log: Arc<CallLog>,
    /// Counter of uses of versions.
    uses: AtomicU64,
    /// Random prefix of the request ids of this process, and their counter.
    node: String,
    requests: AtomicU64,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl FunctionHost {
    /// Starts a host, which follows its store. Until the first read, each call reads the store.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, run: Arc<dyn CodeRunner>, options: HostOptions) -> Self {
        let index = Arc::new(FunctionIndex::new(store.clone()));
        let call_log = CallLog::new(options.queued_entries);
        let log_bounds = LogBounds { retention: options.retention, bytes: options.log_bytes };
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(call_log.clone().write(store.clone(), log_bounds, stopped));
        tasks.spawn(sweep(store));
        let (following, every) = (index.clone(), options.poll_interval);
        tasks.spawn(async move { following.follow(every).await });
        let mut node = [0; 4];
        // Without random bytes from the system, request ids of two processes may be equal.
        let _zeroes = getrandom::fill(&mut node);
        let (uses, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let node = format!("{:08x}", u32::from_be_bytes(node));
        let (stop, tasks) = (Mutex::new(Some(stop)), Mutex::new(tasks));
        Self {
            shared: Arc::new(HostState {
                index,
                runner: run,
                options,
                call_log,
                uses,
                node,
                requests,
                stop,
                tasks,
            }),
        }
    }

    /// Writes the remaining log entries within this time and stops the background tasks.
    pub async fn stop(&self, time: Duration) {
        let stop = self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut tasks =
            std::mem::take(&mut *self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // The log writer ends first; the other tasks never end by themselves.
        if stop.is_some_and(|stop| stop.send(()).is_ok()) {
            let _late = timeout(time, tasks.join_next()).await;
        }
        tasks.shutdown().await;
    }

    /// Calls a version with an event and logs the call. `request_id` is the caller's own, if any.
    ///
    /// # Errors
    /// If there is no reply.
    pub async fn invoke(
        &self,
        loaded: &LoadedVersion,
        event: &Json,
        request_id: Option<Arc<str>>,
        deadline: Option<Instant>,
    ) -> Result<InvocationResult, InvokeError> {
        let request_id = request_id.unwrap_or_else(|| self.request_id());
        let recorder = CallRecorder::begin(&self.shared.call_log, loaded, &request_id);
        let ended = invoke::invoke(&*self.shared.runner, loaded, event, &request_id, deadline).await;
        recorder.end(&ended, loaded.price);
        ended
    }

    /// Logs a call that started at `begun` and did not reach its function, such as a call that exceeds a quota. Does
    /// nothing if there is no such version.
    pub fn log_refusal(
        &self,
        id: &str,
        wanted: VersionSelector,
        begun: Instant,
        code: ErrorCode,
        error: &str,
    ) {
        let snapshot = self.shared.index.snapshot();
        if let Some((version, _)) = snapshot.get(id).and_then(|function| function.select(wanted)) {
            let of = (id, &*loading::version_name(version), &*self.request_id());
            self.shared.call_log.record_refusal(of, begun, CallOutcome::of_error_code(code), error);
        }
    }

    /// Reads a page of the log of a function, including deleted functions.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn logs(&self, id: &str, query: LogQuery) -> Result<LogPage, FunctionError> {
        Ok(calls::read(&**self.shared.index.store(), id, query).await?)
    }

    /// Number of log entries lost since the start because the queue was full.
    #[must_use]
    pub fn lost_entries(&self) -> u64 {
        self.shared.call_log.lost_entries()
    }

    /// Returns the runner of the code.
    #[must_use]
    pub fn runner(&self) -> &Arc<dyn CodeRunner> {
        &self.shared.runner
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &HostOptions {
        &self.shared.options
    }

    /// Notifies about changes of any function.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<crate::function_index::IndexSnapshot>> {
        self.shared.index.watch()
    }

    /// Returns a text that identifies the version that a selector selects now; `None` if there is none.
    #[must_use]
    pub fn version_key(&self, id: &str, wanted: VersionSelector) -> Option<Arc<str>> {
        self.shared.index.snapshot().version_key(id, wanted).map(Into::into)
    }

    fn request_id(&self) -> Arc<str> {
        let number = self.shared.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.shared.node).into()
    }
}

/// Removes unused parts periodically. Only one of several gateways does so.
async fn sweep(store: Arc<dyn Store>) {
    let holder = format!("{}-{:?}", std::process::id(), Arc::as_ptr(&store).cast::<()>());
    loop {
        // Delayed, because the start of a gateway is busy.
        sleep(SWEEP_INTERVAL / 10).await;
        let swept = async {
            match store.acquire("function-parts", &holder, SWEEP_INTERVAL).await? {
                Some(_) => parts::sweep(&*store).await,
                None => Ok(0),
            }
        };
        match swept.await {
            Ok(0) => {}
            Ok(parts) => tracing::info!(parts, "removed unused parts of functions"),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot remove unused parts of functions");
            }
        }
    }
}
