//! The agents as the tools, the searches and the refresher of cards share them.

mod announced;
mod dispatch;
mod push;
mod running;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::sync::{broadcast, watch};
use toolyard_agent::background_tasks::BackgroundTasks;
use toolyard_agent::memory::{MemoryCaller, WorkingMemory};
use toolyard_agent::search::{AgentIndex, KnownService, ServiceKind};
use toolyard_core::store::{KeyValueStore, StoreError};
use toolyard_core::{Caller, Registry};
use toolyard_manifest::{AgentCardSource, AgentSettings};

use self::dispatch::{DispatchedTask, TaskRun, TaskWay};
pub use self::push::PushError;
use self::push::PushReceivers;
use self::running::RunningTasks;
use crate::bus::AgentBus;
use crate::client::endpoint::{AgentEndpoint, source_id};
use crate::client::error::AgentError;
use crate::client::{AgentClient, random_id};
use crate::directory::{AgentClock, AgentDirectory, AgentSource, KnownAgent, folded, millis, refresh};
use crate::error::InvokeError;
use crate::tasks::{AgentTask, AgentTaskOwner, TaskStore};
use crate::tools;
use crate::wire::task::TaskState;

/// Number of changes that wait to be delivered to subscribers of resources.
const PENDING_UPDATES: usize = 256;

/// The gateway as an agent, which cannot invoke itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAgent {
    /// Name of the gateway as an agent.
    pub name: String,
    /// URL of its endpoint, if the manifest has one.
    pub url: Option<String>,
}

/// The agents of a gateway. Clones share them.
#[derive(Clone)]
pub struct Agents(Arc<AgentsState>);

struct AgentsState {
    own: OwnAgent,
    directory: AgentDirectory,
    tasks: TaskStore,
    client: AgentClient,
    bus: OnceLock<Arc<dyn AgentBus>>,
    settings: watch::Sender<Option<Arc<AgentSettings>>>,
    updates: broadcast::Sender<TaskUpdate>,
    running: Arc<RunningTasks>,
    push: Arc<PushReceivers>,
    /// The runs of tasks, which end with the gateway.
    runs: BackgroundTasks,
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskUpdate {
    pub(crate) owner: AgentTaskOwner,
    pub(crate) id: String,
}

/// A task for an agent.
#[derive(Debug, Clone)]
pub struct NewAgentTask {
    /// The agent.
    pub agent: KnownAgent,
    /// Id of a skill.
    pub skill: String,
    /// Message to the agent.
    pub message: String,
    /// Time limit.
    pub time: Duration,
}

/// The caller of a task, with its working memory.
#[derive(Clone)]
pub struct TaskCaller {
    /// The caller.
    pub caller: Caller,
    /// Working memory for the result, and the caller's identity there. `None`: the result is only in the resource.
    pub memory: Option<(WorkingMemory, MemoryCaller)>,
}

impl Agents {
    /// Returns the agents of a gateway, which are not used before [`Agents::enable`].
    #[must_use]
    pub fn new(own: OwnAgent, store: Arc<dyn KeyValueStore>, client: AgentClient) -> Self {
        Self::with_clock(own, store, client, Arc::new(SystemTime::now))
    }

    /// Returns the agents of a gateway, with another clock.
    #[must_use]
    pub fn with_clock(
        own: OwnAgent,
        store: Arc<dyn KeyValueStore>,
        client: AgentClient,
        clock: AgentClock,
    ) -> Self {
        Self(Arc::new(AgentsState {
            own,
            directory: AgentDirectory::new(store.clone(), clock),
            tasks: TaskStore::new(store),
            client,
            bus: OnceLock::new(),
            settings: watch::Sender::default(),
            updates: broadcast::Sender::new(PENDING_UPDATES),
            running: Arc::default(),
            push: Arc::default(),
            runs: BackgroundTasks::new(),
        }))
    }

    /// Sets the message bus, once. Without it there are no agents on a bus.
    pub fn connect(&self, bus: Arc<dyn AgentBus>) {
        let _is_new = self.0.bus.set(bus).is_ok();
    }

    /// Sets the settings that apply from now on. `None`: there are no agents.
    pub fn enable(&self, settings: Option<Arc<AgentSettings>>) {
        self.0.settings.send_if_modified(|current| {
            let is_new = *current != settings;
            *current = settings;
            is_new
        });
    }

    /// Disables the agents, unless other settings than these have been set since.
    pub(crate) fn disable(&self, settings: &Arc<AgentSettings>) {
        self.0.settings.send_if_modified(|current| {
            let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, settings));
            if is_current {
                *current = None;
            }
            is_current
        });
    }

    /// Returns `true` if the gateway uses other agents.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.0.settings.borrow().is_some()
    }

    /// Returns the current settings.
    ///
    /// # Errors
    /// If there are none.
    pub(crate) fn settings(&self) -> Result<Arc<AgentSettings>, InvokeError> {
        self.0.settings.borrow().clone().ok_or(InvokeError::Disabled)
    }

    /// Returns the directory of agents.
    #[must_use]
    pub fn directory(&self) -> &AgentDirectory {
        &self.0.directory
    }

    pub(crate) fn updates(&self) -> &broadcast::Sender<TaskUpdate> {
        &self.0.updates
    }

    /// Reads the cards and the file of the current settings, and listens to announcements, until it is dropped.
    pub async fn follow(&self) {
        let mut settings = self.0.settings.subscribe();
        loop {
            let current = settings.borrow_and_update().clone();
            let work = async {
                if let Some(current) = current {
                    let read = refresh::follow(&self.0.directory, &self.0.client, &current);
                    tokio::join!(read, self.follow_bus(&current));
                }
                // New settings begin again.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                changed = settings.changed() => if changed.is_err() { return },
                () = work => {}
            }
        }
    }

    /// Ends the running tasks. They count as failed.
    pub async fn stop(&self) {
        let running = self.0.running.list();
        self.0.runs.stop().await;
        if !running.is_empty() {
            tracing::info!(tasks = running.len(), "the tasks of agents end with the gateway");
        }
        for (owner, task) in running {
            match self.tasks(&owner).await {
                // It may have ended meanwhile.
                Ok(stored) if stored.iter().all(|stored| stored.id != task.id || stored.ended.is_some()) => {}
                Ok(_) => self.record(&owner, &task.abandoned(millis(self.0.directory.now()))).await,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, id = task.id, "cannot store the end of the task of an agent");
                }
            }
        }
    }

    /// Returns the tasks of an owner, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tasks(&self, owner: &AgentTaskOwner) -> Result<Vec<AgentTask>, StoreError> {
        self.0.tasks.list(owner, self.0.directory.now()).await
    }

    /// Cancels a task of an owner, at its agent, too. One that has ended stays as it is.
    pub(crate) fn cancel(&self, owner: &AgentTaskOwner, id: &str) {
        self.0.running.cancel(owner, id);
    }

    /// Starts a task, and returns it without waiting for the agent.
    ///
    /// # Errors
    /// If the task cannot start.
    pub(crate) async fn start(
        &self,
        caller: &TaskCaller,
        new: NewAgentTask,
    ) -> Result<AgentTask, InvokeError> {
        let settings = self.settings()?;
        let way = self.way(&new.agent, &settings)?;
        if new.message.len() > settings.message_bytes {
            return Err(InvokeError::LongMessage { bytes: new.message.len(), limit: settings.message_bytes });
        }
        let owner = AgentTaskOwner::of(&caller.caller);
        let id = random_id().map_err(|_| InvokeError::NoRandomness)?;
        let result_place = dispatch::result_place(caller, &new.agent.card.name, &id).await;
        let now = self.0.directory.now();
        let task = AgentTask {
            id,
            agent: new.agent.card.name.clone(),
            skill: new.skill.clone(),
            state: TaskState::Submitted,
            started: millis(now),
            ends_by: millis(now + new.time + dispatch::END_TIME),
            ended: None,
            text: String::new(),
            result_key: result_place.as_ref().map(|place| place.key.path.clone()),
        };
        let slot = self.0.running.start(&owner, &task, &settings)?;
        self.0.tasks.put(&owner, &task, settings.history).await?;
        let dispatched =
            DispatchedTask { owner: owner.clone(), task: task.clone(), way, result_place, settings, slot };
        let run = TaskRun { agents: self.clone(), dispatched, new };
        if self.0.runs.spawn(run.run_to_end()).is_none() {
            self.record(&owner, &task.abandoned(millis(self.0.directory.now()))).await;
            return Err(InvokeError::Stopping);
        }
        Ok(task)
    }

    /// Returns the way to an agent.
    fn way(&self, agent: &KnownAgent, settings: &AgentSettings) -> Result<TaskWay, InvokeError> {
        let own = || InvokeError::OwnAgent(agent.card.name.clone());
        if self.is_own(&agent.card.name) {
            return Err(own());
        }
        let endpoint = match &agent.source {
            AgentSource::Bus => {
                let bus = self.0.bus.get().filter(|_| settings.bus).ok_or(AgentError::NoInterface)?;
                return Ok(TaskWay::Bus(bus.clone()));
            }
            AgentSource::Card(id) => AgentEndpoint::of_card(&agent.card, source(settings, id))?,
            // The operator has written the file.
            AgentSource::File => AgentEndpoint::of_card(&agent.card, None)?.trusted(),
        };
        match self.0.own.url.as_deref() == Some(&*endpoint.url.to_string()) {
            true => Err(own()),
            false => Ok(TaskWay::Http(endpoint)),
        }
    }

    /// Returns true if the name is that of the gateway.
    #[must_use]
    pub fn is_own(&self, name: &str) -> bool {
        !self.0.own.name.is_empty() && folded(&self.0.own.name) == folded(name)
    }

    /// Stores a change of a task, and notifies the subscribers.
    async fn record(&self, owner: &AgentTaskOwner, task: &AgentTask) {
        let limit = self.settings().map_or(usize::MAX, |settings| settings.history);
        if let Err(error) = self.0.tasks.put(owner, task, limit).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                id = task.id,
                "cannot store the task of an agent"
            );
        }
        // There may be no subscriber.
        let _none = self.0.updates.send(TaskUpdate { owner: owner.clone(), id: task.id.clone() });
    }
}

/// The agents as services that a search finds.
impl AgentIndex for Agents {
    fn services(&self, view: &Registry) -> Vec<KnownService> {
        if self.settings().is_err() || view.tool(tools::DETAILS).is_err() && view.tool(tools::INVOKE).is_err()
        {
            return Vec::new();
        }
        let service = |agent: KnownAgent| {
            let card = agent.card;
            let texts = card.skills.iter().flat_map(|skill| {
                let labels = skill.tags.iter().chain(&skill.examples);
                [&skill.name, &skill.description].into_iter().chain(labels).cloned().collect::<Vec<_>>()
            });
            KnownService {
                kind: ServiceKind::A2a,
                name: card.name.as_str().into(),
                display_name: None,
                summary: card.description.clone(),
                abilities: card.skills.iter().map(|skill| skill.id.as_str().into()).collect(),
                texts: texts.collect(),
            }
        };
        let available = self.0.directory.all().into_iter().filter(|agent| agent.problem.is_none());
        available.map(service).collect()
    }
}

fn source<'a>(settings: &'a AgentSettings, id: &str) -> Option<&'a AgentCardSource> {
    settings.cards.iter().find(|source| source_id(source) == id)
}

impl From<AgentError> for InvokeError {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}
