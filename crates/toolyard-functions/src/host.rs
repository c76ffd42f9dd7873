//! The functions of a gateway: saved, tested, published, found, called.
//!
//! - [`Host`]: what a gateway, the command line and REST have of all this;
//! - [`summary`]: functions and versions, as people and programs are shown them;
//! - `publishing`: drafts, tests, versions, and their end;
//! - `loading`: which version is meant, and how it becomes ready to run.

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
use toolyard_core::Json;
use toolyard_core::store::Store;
use toolyard_sandbox::packages::Packages;

use crate::calls::{self, Journal, LogPage, LogQuery, Noted};
use crate::edition::Edition;
use crate::error::FunctionError;
use crate::invoke::{self, InvokeError, Invoked};
use crate::parts;
use crate::run::Run;
use crate::shelf::Shelf;
use crate::version::Wanted;
pub(crate) use loading::edition_of;
pub use publishing::{Deleted, Publication};
pub use summary::{FunctionDetails, FunctionSummary, TestReport, VersionDetails, VersionSummary};

/// How a host works.
#[derive(Clone)]
pub struct HostOptions {
    /// What Python's packages are built by. Without it a version that needs some cannot be loaded.
    pub packages: Option<Packages>,
    /// Variables that functions may have: `${NAME}` in their environment. Nothing else of the host reaches them.
    pub lent: BTreeMap<String, String>,
    /// How soon what another gateway has changed is known.
    pub look_every: Duration,
    /// Bytes of files of versions that are kept ready.
    pub loaded_bytes: u64,
    /// Entries of the log that may wait to be written.
    pub queued_entries: usize,
    /// How long calls stay in the log. `None`: for ever.
    pub retention: Option<Duration>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            packages: None,
            lent: BTreeMap::new(),
            look_every: Duration::from_secs(1),
            loaded_bytes: 256 << 20,
            queued_entries: 10_000,
            retention: Some(Duration::from_secs(30 * 24 * 60 * 60)),
        }
    }
}

/// How often it is looked for parts that nothing needs.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);

/// The functions of a store. Clones are one and the same; what it does in the background ends with the last one.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Arc<Shelf>,
    run: Arc<dyn Run>,
    options: HostOptions,
    journal: Arc<Journal>,
    /// Counts the uses of versions.
    uses: AtomicU64,
    /// What tells the requests of this process from those of another, and a count of them.
    node: String,
    requests: AtomicU64,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Host {
    /// A host that follows its store from now on. Until it has read it, each call asks the store first.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, run: Arc<dyn Run>, options: HostOptions) -> Self {
        let shelf = Arc::new(Shelf::new(store.clone()));
        let journal = Journal::new(options.queued_entries);
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(journal.clone().write(store.clone(), options.retention, stopped));
        tasks.spawn(sweep(store));
        let (following, every) = (shelf.clone(), options.look_every);
        tasks.spawn(async move { following.follow(every).await });
        let mut node = [0; 4];
        // Where the system gives no random bytes, requests of two processes may have the same id.
        let _zeroes = getrandom::fill(&mut node);
        let (uses, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let node = format!("{:08x}", u32::from_be_bytes(node));
        let (stop, tasks) = (Mutex::new(Some(stop)), Mutex::new(tasks));
        Self { shared: Arc::new(Shared { shelf, run, options, journal, uses, node, requests, stop, tasks }) }
    }

    /// Writes what is left of the log, within this time, and ends what goes on in the background.
    pub async fn stop(&self, time: Duration) {
        let stop = self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut tasks =
            std::mem::take(&mut *self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // Whoever writes ends first: the others would go on for ever.
        if stop.is_some_and(|stop| stop.send(()).is_ok()) {
            let _late = timeout(time, tasks.join_next()).await;
        }
        tasks.shutdown().await;
    }

    /// Has a version answer an event, and the call noted. `request_id` is the caller's own, if it has one.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn invoke(
        &self,
        edition: &Edition,
        event: &Json,
        request_id: Option<Arc<str>>,
        deadline: Option<Instant>,
    ) -> Result<Invoked, InvokeError> {
        let request_id = request_id.unwrap_or_else(|| self.request_id());
        let noted = Noted::begin(&self.shared.journal, edition, &request_id);
        let ended = invoke::invoke(&*self.shared.run, edition, event, &request_id, deadline).await;
        noted.end(&ended, edition.price);
        ended
    }

    /// Has a call noted that began then and did not come to its function, such as one that its caller cannot pay, if there is such
    /// a version. `outcome` says in a word why not, and `error` in more.
    pub fn note_refused(&self, id: &str, wanted: Wanted, begun: Instant, outcome: &str, error: &str) {
        let known = self.shared.shelf.known();
        if let Some((version, _)) = known.get(id).and_then(|function| function.pick(wanted)) {
            let of = (id, &*loading::word(version), &*self.request_id());
            self.shared.journal.refused(of, begun, outcome, error);
        }
    }

    /// A page of the log of a function, also of one that was deleted.
    ///
    /// # Errors
    /// When the store is in trouble.
    pub async fn logs(&self, id: &str, query: LogQuery) -> Result<LogPage, FunctionError> {
        Ok(calls::read(&**self.shared.shelf.store(), id, query).await?)
    }

    /// How many entries of the log were lost since the start: more was called than could be written.
    #[must_use]
    pub fn lost_entries(&self) -> u64 {
        self.shared.journal.lost()
    }

    /// What runs the functions.
    #[must_use]
    pub fn run(&self) -> &Arc<dyn Run> {
        &self.shared.run
    }

    /// How it works.
    #[must_use]
    pub fn options(&self) -> &HostOptions {
        &self.shared.options
    }

    /// Tells of every change of any function.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<crate::shelf::Snapshot>> {
        self.shared.shelf.watch()
    }

    fn request_id(&self) -> Arc<str> {
        let number = self.shared.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.shared.node).into()
    }
}

/// Removes what nothing needs, for as long as it is polled. Of several gateways one does.
async fn sweep(store: Arc<dyn Store>) {
    let holder = format!("{}-{:?}", std::process::id(), Arc::as_ptr(&store).cast::<()>());
    loop {
        // Not at once: a gateway that begins has other things to do.
        sleep(SWEEP_EVERY / 10).await;
        let swept = async {
            match store.acquire("function-parts", &holder, SWEEP_EVERY).await? {
                Some(_) => parts::sweep(&*store).await,
                None => Ok(0),
            }
        };
        match swept.await {
            Ok(0) => {}
            Ok(parts) => tracing::info!(parts, "parts of functions that nothing needs are removed"),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "parts of functions that nothing needs stay");
            }
        }
    }
}
