//! Tasks: calls that continue after their response (SEP-2663).
//!
//! A call continues as a task if it may (see [`TaskOffer`](super::TaskOffer)) and its client supports tasks. The
//! backend does not notice: the same call goes on, and its questions become part of the task. Tasks of upstream servers
//! are not kept here: their ids contain the server.

pub(super) mod gateway_relay;
pub(super) mod remote_tasks;
pub(super) mod upstream_task;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use toolyard_core::{
    Caller, Client, ErrorCode, Json, Object, Outcome, StartedTask, TaskDescription, TaskStatus, ToolError,
};

use super::interaction::multi_round_trip::{CallExecution, ExecutionStep, filter_requests};
use super::interaction::ticket::{TaskPlace, TicketIssuer, TicketLocation, task_binding};
use super::{FrontendLimits, McpAnswer, RequestContext, convert};
use crate::wire::{ProtocolEra, RpcError, error, meta};

/// The time at which a call continues as a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskHandover {
    /// Time after which it does.
    pub(super) after: Duration,
    /// True if it does before, once it asks for input.
    pub(super) when_asking: bool,
}

/// True if a client supports tasks.
pub(super) fn has_opted_in(capabilities: Option<&Json>) -> bool {
    // Those of most clients.
    let capabilities = capabilities.filter(|capabilities| capabilities.as_bytes() != b"{}");
    let capabilities = capabilities.and_then(|capabilities| capabilities.to_object().ok());
    let extensions = capabilities.and_then(|capabilities| capabilities.get("extensions")?.to_object().ok());
    extensions.is_some_and(|extensions| extensions.get(meta::TASKS).is_some())
}

/// Returns the capabilities of a client that supports tasks.
pub(super) fn required_capabilities() -> Object {
    let extension = Object::new().with(meta::TASKS, Object::new().to_json());
    Object::new().with("extensions", extension.to_json())
}

/// Returns the error for a client that does not support tasks.
pub(super) fn not_opted_in() -> RpcError {
    convert::missing_capability(&required_capabilities())
}

/// Returns the task id of a request.
///
/// # Errors
/// When the client does not support tasks, or the id is missing.
pub(super) fn task_id_param(params: &Object, sender: &RequestContext) -> Result<String, RpcError> {
    if !has_opted_in(sender.client.capabilities()) {
        return Err(not_opted_in());
    }
    let id = params.get_str("taskId").map(Cow::into_owned);
    id.ok_or_else(|| RpcError::invalid_params("`params.taskId` is not a string"))
}

/// Returns the error for an unknown task, or one of another caller.
pub(super) fn unknown_task() -> RpcError {
    RpcError::invalid_params("unknown `params.taskId`")
}

/// Lifetime of the ticket for an upstream task. The server decides how long the task itself exists.
const UPSTREAM_TASK_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// Replaces the id of an upstream task by a ticket, which is unique among all servers.
///
/// # Errors
/// When the server has not set an id.
pub(super) fn with_ticket(
    mut started: StartedTask,
    caller: &Caller,
    tickets: &TicketIssuer,
) -> Result<StartedTask, RpcError> {
    let no_id = || RpcError::from(&ToolError::new(ErrorCode::ExecutionFailed, "The server's task has no id"));
    let (Some(owner), Some(id)) = (&started.owner, started.body.get_str("taskId")) else {
        return Err(no_id());
    };
    let place = if started.is_here { TaskPlace::ThisGateway } else { TaskPlace::Server };
    let ticket = tickets.issue_upstream(
        &task_binding(caller),
        place,
        [&*owner.handler, &*owner.tool, &*id],
        UPSTREAM_TASK_TTL,
    )?;
    started.body.set("taskId", Json::string(&ticket));
    Ok(started)
}

/// The tasks of one frontend.
pub(super) struct TaskTable {
    table: Mutex<HashMap<Arc<str>, Arc<TaskEntry>>>,
    /// The running tasks. Dropping the set cancels them.
    running: Mutex<JoinSet<()>>,
    limits: FrontendLimits,
    tickets: Arc<TicketIssuer>,
}

/// One task.
struct TaskEntry {
    id: Arc<str>,
    caller: Caller,
    created: SystemTime,
    started: Instant,
    state: watch::Sender<TaskState>,
    responses: mpsc::Sender<Object>,
    work: Mutex<Option<AbortHandle>>,
}

/// The status of a task and the time of its last update.
#[derive(Debug, Clone)]
struct TaskState {
    updated_at: SystemTime,
    status: TaskStatus,
}

/// Maximum number of queued responses to one task.
const RESPONSE_CAPACITY: usize = 16;

impl TaskTable {
    pub(super) fn new(limits: FrontendLimits, tickets: Arc<TicketIssuer>) -> Self {
        Self { table: Mutex::default(), running: Mutex::default(), limits, tickets }
    }

    /// Cancels the running tasks.
    pub(super) async fn stop(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    /// Continues a call as a task and returns the result that names the task.
    pub(super) fn start(&self, execution: CallExecution, caller: Caller) -> McpAnswer {
        let full = || RpcError::from(&ToolError::new(ErrorCode::Overloaded, "Too many tasks are running"));
        // Tasks have neither progress nor log messages (SEP-2663, task status notifications).
        execution.client.detach();
        let (answers, responses) = mpsc::channel(RESPONSE_CAPACITY);
        let now = SystemTime::now();
        let task = Arc::new(TaskEntry {
            id: self.tickets.issue_local(&task_binding(&caller), self.limits.task_ttl)?,
            caller,
            created: now,
            started: Instant::now(),
            state: watch::Sender::new(TaskState { updated_at: now, status: TaskStatus::Working }),
            responses: answers,
            work: Mutex::default(),
        });
        if !self.insert(&task) {
            return Err(full());
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        let expired = task.started.checked_add(self.limits.task_ttl);
        let work = running.spawn(run_task(task.clone(), execution, responses, expired));
        *task.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        Ok(self
            .describe(&task, &TaskState { updated_at: now, status: TaskStatus::Working })
            .to_started()
            .to_pieces())
    }

    /// Removes expired tasks, and adds a task. If there are too many, the oldest finished one makes room.
    fn insert(&self, task: &Arc<TaskEntry>) -> bool {
        let mut table = self.table();
        table.retain(|_, task| task.started.elapsed() < self.limits.task_ttl || task.abort());
        if table.len() >= self.limits.tasks {
            let expired = table.values().filter(|task| task.state.borrow().status.is_final());
            let Some(oldest) = expired.min_by_key(|task| task.started).map(|task| task.id.clone()) else {
                return false;
            };
            table.remove(&oldest);
        }
        table.insert(task.id.clone(), task.clone());
        true
    }

    /// True if another call can continue as a task.
    pub(super) fn has_room(&self) -> bool {
        let table = self.table();
        let lasts = |task: &&Arc<TaskEntry>| {
            task.started.elapsed() < self.limits.task_ttl && !task.state.borrow().status.is_final()
        };
        table.len() < self.limits.tasks || table.values().filter(lasts).count() < self.limits.tasks
    }

    /// Returns the location of a task.
    ///
    /// # Errors
    /// When the id was not issued to this caller, or has expired.
    pub(super) fn locate(&self, id: &str, caller: &Caller) -> Result<TicketLocation, RpcError> {
        self.tickets.locate(&task_binding(caller), id).map_err(|_unsealed| unknown_task())
    }

    /// Returns the result of `tasks/get`.
    pub(super) fn get(&self, id: &str, sender: &RequestContext) -> McpAnswer {
        let task = self.find(id, &sender.caller).ok_or_else(unknown_task)?;
        let state = task.state.borrow().clone();
        let mut description = self.describe(&task, &state).to_object();
        filter_requests(&mut description, &sender.client);
        Ok(description.to_pieces())
    }

    /// Returns the result of `tasks/update`.
    pub(super) fn update(&self, id: &str, params: &Object, caller: &Caller) -> McpAnswer {
        let task = self.find(id, caller).ok_or_else(unknown_task)?;
        let responses = params.get("inputResponses").and_then(|responses| responses.to_object().ok());
        let responses =
            responses.ok_or_else(|| RpcError::invalid_params("`params.inputResponses` is not an object"))?;
        if let Err(mpsc::error::TrySendError::Full(_)) = task.responses.try_send(responses) {
            return Err(RpcError::from(&ToolError::new(ErrorCode::Overloaded, "Too many answers at once")));
        }
        Ok(acknowledgement())
    }

    /// Returns the result of `tasks/cancel`. Cancelling a finished task has no effect.
    pub(super) fn cancel(&self, id: &str, caller: &Caller) -> McpAnswer {
        self.find(id, caller).ok_or_else(unknown_task)?.abort();
        Ok(acknowledgement())
    }

    /// Returns the parameters of `notifications/tasks`: now, and at each change until the task is finished. `None` if
    /// the caller has no such task.
    pub(super) fn follow(self: &Arc<Self>, id: &str, caller: &Caller) -> Option<BoxStream<'static, Object>> {
        let task = self.find(id, caller)?;
        let mut state = task.state.subscribe();
        state.mark_changed();
        let next = async move |followed: Option<(watch::Receiver<TaskState>, Arc<TaskEntry>, Arc<Self>)>| {
            let (mut state, task, tasks) = followed?;
            state.changed().await.ok()?;
            let now = state.borrow_and_update().clone();
            let mut params = tasks.describe(&task, &now).to_object();
            params.remove("resultType");
            Some((params, (!now.status.is_final()).then_some((state, task, tasks))))
        };
        Some(unfold(Some((state, task, self.clone())), next).boxed())
    }

    /// Cancels the tasks of a caller.
    pub(super) fn forget_caller(&self, caller: &Caller) {
        self.table().retain(|_, task| task.caller != *caller || task.abort());
    }

    fn find(&self, id: &str, caller: &Caller) -> Option<Arc<TaskEntry>> {
        let table = self.table();
        let task = table.get(id).filter(|task| task.caller == *caller);
        task.filter(|task| task.started.elapsed() < self.limits.task_ttl).cloned()
    }

    fn describe<'a>(&self, task: &'a TaskEntry, state: &TaskState) -> TaskDescription<'a> {
        TaskDescription {
            id: &task.id,
            status: state.status.clone(),
            message: None,
            created: task.created,
            changed: state.updated_at,
            ttl: self.limits.task_ttl,
            poll_interval: self.limits.task_poll_interval,
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<TaskEntry>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskEntry {
    /// Sets the status, unless the task is finished.
    fn set(&self, status: TaskStatus) {
        self.state.send_if_modified(|state| {
            let is_open = !state.status.is_final();
            if is_open {
                *state = TaskState { updated_at: SystemTime::now(), status };
            }
            is_open
        });
    }

    /// Cancels the task. Returns `false`, for `retain`.
    fn abort(&self) -> bool {
        if let Some(work) = self.work.lock().unwrap_or_else(PoisonError::into_inner).take() {
            work.abort();
        }
        self.set(TaskStatus::Cancelled);
        false
    }
}

/// Runs a task until it is finished or expires.
async fn run_task(
    task: Arc<TaskEntry>,
    mut execution: CallExecution,
    mut answers: mpsc::Receiver<Object>,
    expired: Option<Instant>,
) {
    let mut expiry = pin!(async move {
        match expired {
            Some(expired) => sleep_until(expired).await,
            None => pending().await,
        }
    });
    loop {
        let status = match execution.open.is_empty() {
            true => TaskStatus::Working,
            false => TaskStatus::InputRequired(execution.open.requests()),
        };
        if !matches!((&task.state.borrow().status, &status), (TaskStatus::Working, TaskStatus::Working)) {
            task.set(status);
        }
        tokio::select! {
            step = execution.step() => match step {
                ExecutionStep::Finished(Ok(Outcome::NeedsInput(needed))) => execution.ask_and_retry(needed),
                ExecutionStep::Finished(Ok(Outcome::Task(upstream))) => execution.wait_for_task(upstream),
                ExecutionStep::Finished(result) => return task.set(final_status(convert::to_answer(result, execution.target(), ProtocolEra::Modern))),
                ExecutionStep::NeedsAnswers => {}
            },
            Some(responses) = answers.recv() => execution.open.answer(&responses),
            () = &mut expiry => return task.set(TaskStatus::Cancelled),
        }
    }
}

/// Returns the final status. A result completes a task even if the tool reports an error; a JSON-RPC error fails it.
fn final_status(answer: McpAnswer) -> TaskStatus {
    match answer {
        Ok(pieces) => match Json::parse(Bytes::from(pieces.concat())) {
            Ok(result) => TaskStatus::Completed(result),
            Err(_) => TaskStatus::Failed(
                RpcError::new(error::INTERNAL_ERROR, "The result is malformed").body().clone(),
            ),
        },
        Err(error) => TaskStatus::Failed(error.body().clone()),
    }
}

fn acknowledgement() -> Vec<Bytes> {
    vec![Bytes::from_static(b"{\"resultType\":\"complete\"}")]
}
