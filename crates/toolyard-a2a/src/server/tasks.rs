//! The tasks of callers, and their runs. They are in memory, and end with the gateway.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use toolyard_agent::background_tasks::BackgroundTasks;
use toolyard_core::{Call, Caller, Client, ClientNotification, Gateway, Json, ToolError};
use toolyard_manifest::A2aSettings;

use super::list::{TaskPage, TaskQuery};
use super::push::{PushDelivery, PushSender};
use super::result;
use super::skill::SkillCall;
use crate::client::{AgentClient, random_id};
use crate::wire::message::Message;
use crate::wire::rpc::{RpcError, code};
use crate::wire::task::{Task, TaskState, TaskStatus};

/// The tasks of all callers. Clones share them.
#[derive(Clone)]
pub(super) struct ServedTasks(pub(super) Arc<TasksState>);

pub(super) struct TasksState {
    gateway: Arc<Gateway>,
    settings: Arc<A2aSettings>,
    /// Sends notifications, if clients may ask for them.
    pub(super) push: Option<Arc<PushSender>>,
    tasks: Mutex<HashMap<String, ServedTask>>,
    /// The calls of tasks and the deliveries of notifications.
    runs: BackgroundTasks,
}

pub(super) struct ServedTask {
    /// Key of the caller; `None` for all callers without one.
    pub(super) owner: Option<Arc<str>>,
    pub(super) task: watch::Sender<Task>,
    run: Option<AbortHandle>,
    /// The URLs that are notified, the oldest first.
    pub(super) push: Vec<PushDelivery>,
    /// Time of the end, once it is known.
    ended: Option<Instant>,
}

/// A task, whose changes can be waited for.
pub struct TaskClaim(pub(super) watch::Receiver<Task>);

impl TaskClaim {
    /// Returns the task as it is.
    #[must_use]
    pub fn now(&self) -> Task {
        self.0.borrow().clone()
    }

    /// Returns the task after its next change; `None` if there will be none.
    pub async fn changed(&mut self) -> Option<Task> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// Returns the task once it has ended.
    pub async fn at_rest(mut self) -> Task {
        let ended = self.0.wait_for(|task| task.status.state.is_at_rest()).await;
        ended.map(|task| task.clone()).unwrap_or_else(|_| self.now())
    }
}

impl ServedTasks {
    pub(super) fn new(gateway: Arc<Gateway>, settings: Arc<A2aSettings>, client: AgentClient) -> Self {
        let push = settings.push.clone().map(|settings| PushSender::new(client, settings));
        let (tasks, runs) = (Mutex::default(), BackgroundTasks::new());
        Self(Arc::new(TasksState { gateway, settings, push, tasks, runs }))
    }

    /// Starts the task of a message.
    ///
    /// # Errors
    /// If the caller has too many tasks.
    pub(super) fn start(
        &self,
        caller: &Caller,
        origin: Option<Arc<dyn Any + Send + Sync>>,
        call: SkillCall,
        message: Message,
    ) -> Result<TaskClaim, RpcError> {
        let new_id = || random_id().map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()));
        let id = new_id()?;
        let context_id = if message.context_id.is_empty() { new_id()? } else { message.context_id.clone() };
        let history = vec![Message { task_id: id.clone(), context_id: context_id.clone(), ..message }];
        let task = Task {
            id: id.clone(),
            context_id,
            status: status(TaskState::Submitted, None),
            history,
            ..Task::default()
        };
        let (sender, receiver) = watch::channel(task);
        let call = Call {
            caller: caller.clone(),
            origin,
            client: Arc::new(TaskClient(sender.clone())),
            ..Call::tool(call.tool, call.arguments)
        };
        let mut tasks = self.tasks();
        self.make_room(&mut tasks, caller.principal.as_ref())?;
        let run = run(self.0.gateway.clone(), call, sender.clone(), self.0.settings.artifact_bytes);
        let run = self.spawn(run)?;
        let owner = caller.principal.clone();
        tasks.insert(id, ServedTask { owner, task: sender, run: Some(run), push: Vec::new(), ended: None });
        Ok(TaskClaim(receiver))
    }

    /// Returns a task of a caller.
    ///
    /// # Errors
    /// If the caller has none with this id.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Result<TaskClaim, RpcError> {
        let mut tasks = self.tasks();
        self.forget(&mut tasks);
        let task = tasks.get(id).filter(|task| task.owner == caller.principal).ok_or_else(unknown)?;
        Ok(TaskClaim(task.task.subscribe()))
    }

    /// Returns a page of the tasks of a caller.
    pub(super) fn list(&self, caller: &Caller, query: &TaskQuery) -> TaskPage {
        // Artifacts are large: they are not copied while other callers wait for the lock.
        let own: HashMap<_, _> = {
            let mut tasks = self.tasks();
            self.forget(&mut tasks);
            let own = tasks.iter().filter(|(_, task)| task.owner == caller.principal);
            own.map(|(id, task)| (id.clone(), task.task.subscribe())).collect()
        };
        let positions = own.values().filter_map(|task| query.position(&task.borrow())).collect();
        let read = |id: &str| own.get(id).map(|task| query.shown(&task.borrow()));
        query.page(positions, read, self.0.settings.artifact_bytes)
    }

    /// Cancels a task of a caller, and returns it.
    ///
    /// # Errors
    /// If the caller has none with this id, or it has ended.
    pub(super) fn cancel(&self, caller: &Caller, id: &str) -> Result<Task, RpcError> {
        let mut tasks = self.tasks();
        let task = tasks.get_mut(id).filter(|task| task.owner == caller.principal).ok_or_else(unknown)?;
        if !end(&task.task, TaskState::Canceled, None) {
            return Err(RpcError::new(code::TASK_NOT_CANCELABLE, "the task has ended"));
        }
        if let Some(run) = task.run.take() {
            run.abort();
        }
        Ok(task.task.borrow().clone())
    }

    /// Ends the running tasks.
    pub(super) async fn stop(&self) {
        self.0.runs.stop().await;
        for task in self.tasks().values() {
            end(&task.task, TaskState::Failed, Some("The agent is stopping."));
        }
    }

    /// Starts work that ends with the tasks.
    ///
    /// # Errors
    /// If the agent stops.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<AbortHandle, RpcError> {
        let stopping = || RpcError::new(code::INTERNAL_ERROR, "the agent is stopping: send it again later");
        self.0.runs.spawn(work).ok_or_else(stopping)
    }

    /// Forgets tasks whose time is over.
    fn forget(&self, tasks: &mut HashMap<String, ServedTask>) {
        let now = Instant::now();
        for task in tasks.values_mut() {
            if task.ended.is_none() && task.task.borrow().status.state.is_final() {
                task.ended = Some(now);
            }
        }
        let ttl = self.0.settings.task_ttl;
        tasks.retain(|_, task| task.ended.is_none_or(|ended| now.duration_since(ended) < ttl));
    }

    /// Makes room for one more task of an owner: tasks that have ended go, those that ended first before others.
    fn make_room(
        &self,
        tasks: &mut HashMap<String, ServedTask>,
        owner: Option<&Arc<str>>,
    ) -> Result<(), RpcError> {
        self.forget(tasks);
        let settings = &self.0.settings;
        for (limit, of_owner) in [(settings.tasks_of_key(), true), (settings.tasks, false)] {
            let counts = |task: &ServedTask| !of_owner || task.owner.as_ref() == owner;
            while tasks.values().filter(|task| counts(task)).count() >= limit {
                let ended = tasks.iter().filter(|(_, task)| counts(task));
                let ended = ended.filter_map(|(id, task)| Some((task.ended?, id.clone())));
                let Some((_, id)) = ended.min() else {
                    let of = if of_owner { "this key has" } else { "this agent has" };
                    let reason =
                        format!("{of} {limit} running tasks, and may have no more: wait until one has ended");
                    return Err(RpcError::new(code::INTERNAL_ERROR, reason));
                };
                tasks.remove(&id);
            }
        }
        Ok(())
    }

    pub(super) fn tasks(&self) -> MutexGuard<'_, HashMap<String, ServedTask>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the call of a task.
async fn run(gateway: Arc<Gateway>, call: Call, task: watch::Sender<Task>, limit: usize) {
    // It may have been cancelled already.
    task.send_if_modified(|task| {
        let is_running = !task.status.state.is_final();
        if is_running {
            task.status = status(TaskState::Working, None);
        }
        is_running
    });
    match gateway.invoke_to_end(call).await {
        Ok(output) if output.body.to_json().as_bytes().len() > limit => {
            let reason = format!("The result is larger than {limit} bytes.");
            end(&task, TaskState::Failed, Some(&reason));
        }
        Ok(output) if output.is_error => {
            end(&task, TaskState::Failed, Some(&result::text(&output)));
        }
        Ok(output) => {
            let artifact = result::artifact(&output);
            task.send_if_modified(|task| {
                let is_running = !task.status.state.is_final();
                if is_running {
                    task.artifacts.push(artifact);
                    task.status = status(TaskState::Completed, None);
                }
                is_running
            });
        }
        Err(error) => {
            end(&task, state_of(&error), Some(&error.to_string()));
        }
    }
}

/// Returns the state of a task whose call the gateway did not run, or which has failed.
fn state_of(error: &ToolError) -> TaskState {
    use toolyard_core::ErrorCode;
    match error.code() {
        ErrorCode::ToolNotFound | ErrorCode::InvalidArguments | ErrorCode::Denied => TaskState::Rejected,
        _ => TaskState::Failed,
    }
}

/// Ends a task, unless it has ended. Returns `true` if it had not.
fn end(task: &watch::Sender<Task>, state: TaskState, text: Option<&str>) -> bool {
    task.send_if_modified(|task| {
        let is_running = !task.status.state.is_final();
        if is_running {
            task.status = status(state, text);
            name_message(task);
        }
        is_running
    })
}

/// Sets the ids of the message of a state.
fn name_message(task: &mut Task) {
    let Task { id, context_id, status, .. } = task;
    if let Some(message) = &mut status.message {
        message.task_id.clone_from(id);
        message.context_id.clone_from(context_id);
        message.message_id = format!("{id}-{}", status.state.word());
    }
}

fn status(state: TaskState, text: Option<&str>) -> TaskStatus {
    let message = text.map(|text| Message::of_agent(String::new(), text));
    TaskStatus { state, message, timestamp: Some(Timestamp::now().to_string()) }
}

pub(super) fn unknown() -> RpcError {
    RpcError::new(code::TASK_NOT_FOUND, "there is no such task")
}

/// The client of the call of a task: progress is the message of its state.
#[derive(Debug)]
struct TaskClient(watch::Sender<Task>);

impl Client for TaskClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        true
    }

    fn notify(&self, notice: ClientNotification) {
        let ClientNotification::Progress(body) = notice else { return };
        let Some(text) = body.params.get_str("message") else { return };
        self.0.send_if_modified(|task| {
            let is_working = task.status.state == TaskState::Working;
            if is_working {
                task.status = status(TaskState::Working, Some(&text));
                name_message(task);
            }
            is_working
        });
    }
}
