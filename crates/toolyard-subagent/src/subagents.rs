//! The subagents of a gateway: starts, follows, cancels and lists them.

mod questions;
mod running;
mod source;
pub(crate) mod task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use toolyard_agent::background_tasks::BackgroundTasks;
use toolyard_agent::memory::{FullKey, MemoryCaller, WorkingMemory};
use toolyard_core::random::{hex, random_bytes};
use toolyard_core::store::{KeyValueStore, StoreError};
use toolyard_core::{Call, NestedGateway};

use self::questions::TaskQuestions;
use self::running::RunningSubagent;
pub use self::source::ModelSource;
use self::source::SubagentModel;
use crate::error::SubagentError;
use crate::record::{SubagentOwner, SubagentRecord, SubagentState, SubagentStore, milliseconds};
use crate::run::RunLimits;
use crate::whiteboard::{WhiteboardLimits, Whiteboards};

/// Number of changes that a subscriber may miss before it has to read again.
const UPDATES: usize = 64;

/// Maximum characters of a description in the list.
const LISTED_CHARS: usize = 200;

/// Settings of subagents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentSettings {
    /// Maximum number of running subagents of one key, or of all callers without one.
    pub concurrent: usize,
    /// Maximum number of running subagents in this gateway.
    pub total_concurrent: usize,
    /// Time of a subagent whose caller does not choose one.
    pub timeout: Duration,
    /// Maximum time of a subagent.
    pub max_timeout: Duration,
    /// Maximum bytes of description and context together.
    pub task_bytes: usize,
    /// Maximum number of tools that a subagent sees; with more, it sees those that find others.
    pub listed_tools: usize,
    /// Limits of each subagent.
    pub run: RunLimits,
    /// Limits of whiteboards.
    pub boards: WhiteboardLimits,
}

/// The parts of a gateway that subagents use.
pub struct SubagentDeps {
    /// Store of the records.
    pub store: Arc<dyn KeyValueStore>,
    /// Calls for callers.
    pub nested: NestedGateway,
    /// Working memory for results.
    pub memory: Option<WorkingMemory>,
    /// The models.
    pub model: ModelSource,
    /// Own names of the tools of the gateway that subagents cannot reach.
    pub excluded: &'static [&'static str],
    /// Names of the tools that find and call others.
    pub finders: &'static [&'static str],
}

/// The subagents that run in a gateway, and their whiteboards. They go on when its settings change, each with the settings
/// that it began with, and end with the last clone.
#[derive(Clone)]
pub struct RunningSubagents {
    shared: Arc<RunningShared>,
    tasks: BackgroundTasks,
}

/// The parts of running subagents that their tasks hold.
struct RunningShared {
    running: Mutex<RunningTable>,
    updates: broadcast::Sender<SubagentUpdate>,
    boards: Whiteboards,
}

/// The subagents of a gateway with its current settings.
#[derive(Clone)]
pub struct Subagents {
    parts: Arc<SubagentParts>,
    tasks: BackgroundTasks,
}

/// The parts that running subagents share.
struct SubagentParts {
    deps: SubagentDeps,
    settings: SubagentSettings,
    store: SubagentStore,
    boards: Whiteboards,
    shared: Arc<RunningShared>,
}

type RunningTable = HashMap<(SubagentOwner, String), RunningEntry>;

/// A subagent that runs in this gateway.
#[derive(Debug, Default)]
struct RunningEntry {
    handle: Option<AbortHandle>,
    /// Requests for the model of the client, if they are the input of a task.
    questions: Option<Arc<TaskQuestions>>,
}

/// A change of a subagent.
#[derive(Debug, Clone)]
pub(crate) struct SubagentUpdate {
    pub(crate) owner: SubagentOwner,
    pub(crate) id: String,
}

/// A task for a subagent.
#[derive(Debug)]
pub(crate) struct NewSubagent {
    pub(crate) description: String,
    pub(crate) context: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

/// A subagent that was started.
#[derive(Debug)]
pub(crate) struct StartedSubagent {
    pub(crate) id: String,
    pub(crate) timeout: Duration,
    /// True if the result is saved in working memory.
    pub(crate) has_memory: bool,
}

/// The outcome of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancellation {
    /// It has ended.
    Done,
    /// Another gateway runs it, and ends it soon.
    Requested,
    /// There is none of this id that runs.
    NotRunning,
}

impl Default for RunningSubagents {
    fn default() -> Self {
        let (running, updates) = (Mutex::default(), broadcast::Sender::new(UPDATES));
        let shared = RunningShared { running, updates, boards: Whiteboards::default() };
        Self { shared: Arc::new(shared), tasks: BackgroundTasks::new() }
    }
}

impl RunningSubagents {
    /// Ends all: subagents are switched off.
    pub fn abort_all(&self) {
        self.tasks.abort_all();
    }
}

impl Subagents {
    /// Creates the subagents of a gateway, beside those that run.
    #[must_use]
    pub fn new(deps: SubagentDeps, settings: SubagentSettings, running: &RunningSubagents) -> Self {
        let store = SubagentStore::new(deps.store.clone());
        let RunningSubagents { shared, tasks } = running.clone();
        let boards = shared.boards.with_limits(settings.boards);
        let parts = SubagentParts { deps, settings, store, boards, shared };
        Self { parts: Arc::new(parts), tasks }
    }

    /// Returns the whiteboards.
    #[must_use]
    pub fn boards(&self) -> &Whiteboards {
        &self.parts.boards
    }

    /// Starts a subagent for the caller of a call.
    ///
    /// # Errors
    /// If the task is invalid, too many run already, or the store fails.
    pub(crate) async fn start(
        &self,
        call: &Call,
        new: NewSubagent,
    ) -> Result<StartedSubagent, SubagentError> {
        let (parts, owner) = (&self.parts, SubagentOwner::of(&call.caller));
        let timeout = parts.checked_timeout(&new)?;
        let SubagentModel { model, questions } = parts.deps.model.of(call)?;
        let id = hex(&random_bytes::<6>().map_err(|_| SubagentError::NoId)?);
        let place = RunningPlace::reserve(parts, &owner, &id, questions)?;
        let result_key = parts.result_key(call, &id).await;
        let now = milliseconds(SystemTime::now());
        let record = SubagentRecord {
            id: id.clone(),
            description: new.description.trim().chars().take(LISTED_CHARS).collect(),
            state: SubagentState::Running,
            started: now,
            changed: now,
            progress: None,
            is_cancelled: false,
            result: None,
        };
        parts.store.remove_oldest(&owner).await?;
        parts.store.add(&owner, &record).await?;
        let has_memory = result_key.is_some();
        let calls = parts.deps.nested.after(call, format!("subagent/{id}")).without(parts.deps.excluded);
        let calls = calls.read_by_model();
        let subagent = RunningSubagent { owner, id: id.clone(), calls, model, result_key, timeout };
        self.spawn(place, subagent, new);
        Ok(StartedSubagent { id, timeout, has_memory })
    }

    fn spawn(&self, place: RunningPlace, subagent: RunningSubagent, new: NewSubagent) {
        let key = (subagent.owner.clone(), subagent.id.clone());
        let parts = self.parts.clone();
        let run = async move {
            subagent.run(&place.parts, new).await;
            drop(place);
        };
        let handle = self.tasks.spawn(run);
        if let Some(entry) = parts.running().get_mut(&key) {
            entry.handle = handle;
        }
    }

    /// Cancels a running subagent.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn cancel(&self, owner: &SubagentOwner, id: &str) -> Result<Cancellation, StoreError> {
        let parts = &self.parts;
        let running = |entry: &RunningEntry| entry.handle.clone();
        let handle = parts.running().get(&(owner.clone(), id.to_owned())).map(running);
        let is_here = handle.is_some();
        if let Some(handle) = handle.flatten() {
            handle.abort();
        }
        let changed = parts.store.change_running(owner, id, |record| match is_here {
            true => running::end_as_cancelled(record),
            false => record.is_cancelled = true,
        });
        let Some(record) = changed.await? else { return Ok(Cancellation::NotRunning) };
        let is_alive = record.as_of(SystemTime::now()).state == SubagentState::Running;
        parts.changed(owner, id);
        Ok(match (is_here, is_alive) {
            (true, _) => Cancellation::Done,
            (false, true) => Cancellation::Requested,
            (false, false) => Cancellation::NotRunning,
        })
    }

    /// Returns the subagents of an owner, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn list(&self, owner: &SubagentOwner) -> Result<Vec<SubagentRecord>, StoreError> {
        self.parts.store.list(owner).await
    }

    /// Returns one subagent of an owner.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn get(
        &self,
        owner: &SubagentOwner,
        id: &str,
    ) -> Result<Option<SubagentRecord>, StoreError> {
        self.parts.store.get(owner, id).await
    }

    pub(crate) fn updates(&self) -> broadcast::Receiver<SubagentUpdate> {
        self.parts.shared.updates.subscribe()
    }
}

impl SubagentParts {
    fn checked_timeout(&self, new: &NewSubagent) -> Result<Duration, SubagentError> {
        if new.description.trim().is_empty() {
            return Err(SubagentError::NoDescription);
        }
        let bytes = new.description.len() + new.context.as_ref().map_or(0, String::len);
        if bytes > self.settings.task_bytes {
            return Err(SubagentError::LongTask { bytes, limit: self.settings.task_bytes });
        }
        let timeout = new.timeout.unwrap_or(self.settings.timeout);
        let limit = self.settings.max_timeout;
        if timeout.is_zero() || timeout > limit {
            return Err(SubagentError::Timeout { limit });
        }
        Ok(timeout)
    }

    /// Returns the key of the result in the working memory of the caller, if it has one.
    async fn result_key(&self, call: &Call, id: &str) -> Option<FullKey> {
        let access = self.deps.memory.as_ref()?.access(MemoryCaller::of_call(call)).await.ok()?;
        access.place(&format!("subagent/{id}/result")).ok()
    }

    fn changed(&self, owner: &SubagentOwner, id: &str) {
        // Without subscribers there is no one to notify.
        let _sent = self.shared.updates.send(SubagentUpdate { owner: owner.clone(), id: id.to_owned() });
    }

    fn running(&self) -> MutexGuard<'_, RunningTable> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a running subagent, which is free again once this is dropped.
struct RunningPlace {
    parts: Arc<SubagentParts>,
    key: (SubagentOwner, String),
}

impl RunningPlace {
    fn reserve(
        parts: &Arc<SubagentParts>,
        owner: &SubagentOwner,
        id: &str,
        questions: Option<Arc<TaskQuestions>>,
    ) -> Result<Self, SubagentError> {
        let mut running = parts.running();
        let of_owner = running.keys().filter(|(other, _)| other == owner).count();
        if of_owner >= parts.settings.concurrent {
            return Err(SubagentError::TooMany(parts.settings.concurrent));
        }
        if running.len() >= parts.settings.total_concurrent {
            return Err(SubagentError::Busy);
        }
        let key = (owner.clone(), id.to_owned());
        running.insert(key.clone(), RunningEntry { handle: None, questions });
        Ok(Self { parts: parts.clone(), key })
    }
}

impl Drop for RunningPlace {
    fn drop(&mut self) {
        self.parts.running().remove(&self.key);
    }
}
