//! Calls that go on after their answer: the tasks extension (SEP-2663).
//!
//! A call goes on as a task where it may (see [`TaskOffer`](super::TaskOffer)) and its client takes tasks. The backend
//! knows nothing of that: it runs the same call, and what it asks is asked by way of the task. A task that a server has
//! begun by itself is not here: its id says where it is.

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
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{Caller, Client, Code, Json, Object, Outcome, Started, ToolError};

use super::rounds::{Job, Step, show_permitted};
use super::ticket::{Place, Tickets, task_of};
use super::{Answer, FrontendLimits, Sender, convert};
use crate::wire::{Era, RpcError, error, meta};

/// When a call goes on as a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handover {
    /// After this time.
    pub(super) after: Duration,
    /// And before it, once it asks something.
    pub(super) when_asking: bool,
}

/// Whether a client takes tasks.
pub(super) fn has_opted_in(capabilities: Option<&Json>) -> bool {
    let capabilities = capabilities.and_then(|capabilities| capabilities.to_object().ok());
    let extensions = capabilities.and_then(|capabilities| capabilities.get("extensions")?.to_object().ok());
    extensions.is_some_and(|extensions| extensions.get(meta::TASKS).is_some())
}

/// The capabilities of a client that takes tasks.
pub(super) fn extension() -> Object {
    let extension = Object::new().with(meta::TASKS, Object::new().to_json());
    Object::new().with("extensions", extension.to_json())
}

/// The client would have to take tasks.
pub(super) fn not_opted_in() -> RpcError {
    convert::missing_capability(&extension())
}

/// The task that a request names.
///
/// # Errors
/// When its client takes no tasks, or it names none.
pub(super) fn id(params: &Object, sender: &Sender) -> Result<String, RpcError> {
    if !has_opted_in(sender.client.capabilities()) {
        return Err(not_opted_in());
    }
    let id = params.get_str("taskId").map(Cow::into_owned);
    id.ok_or_else(|| RpcError::invalid_params("`params.taskId` is not a string"))
}

/// There is no such task, or it is somebody else's.
pub(super) fn unknown() -> RpcError {
    RpcError::invalid_params("`params.taskId` is no task that is known here")
}

/// How long a task of a server is found. The server decides how long it remembers it.
const FOUND: Duration = Duration::from_secs(30 * 24 * 3600);

/// A task that the server of a handler has made of a call of a tool, with an id of which no other server has one.
///
/// # Errors
/// When the server has not named it.
pub(super) fn named(mut started: Started, caller: &Caller, tickets: &Tickets) -> Result<Started, RpcError> {
    let nobodys = || RpcError::from(&ToolError::new(Code::ExecutionFailed, "The server's task has no id"));
    let (Some(owner), Some(id)) = (&started.owner, started.body.get_str("taskId")) else {
        return Err(nobodys());
    };
    let ticket = tickets.for_server(&task_of(caller), [&*owner.handler, &*owner.tool, &*id], FOUND)?;
    started.body.set("taskId", Json::string(&ticket));
    Ok(started)
}

/// All tasks of one frontend.
pub(super) struct Tasks {
    table: Mutex<HashMap<Arc<str>, Arc<Task>>>,
    /// The tasks that run. They end when this is dropped.
    running: Mutex<JoinSet<()>>,
    limits: FrontendLimits,
    tickets: Arc<Tickets>,
}

/// One task.
struct Task {
    id: Arc<str>,
    caller: Caller,
    created: SystemTime,
    since: Instant,
    state: watch::Sender<State>,
    answers: mpsc::Sender<Object>,
    work: Mutex<Option<AbortHandle>>,
}

/// How a task is.
#[derive(Debug, Clone)]
struct State {
    updated: SystemTime,
    status: Status,
}

#[derive(Debug, Clone)]
enum Status {
    Working,
    InputRequired(Json),
    Completed(Json),
    Failed(Json),
    Cancelled,
}

impl Status {
    const fn is_final(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }
}

/// Answers to one task that may wait to be taken.
const ANSWERS: usize = 16;

impl Tasks {
    pub(super) fn new(limits: FrontendLimits, tickets: Arc<Tickets>) -> Self {
        Self { table: Mutex::default(), running: Mutex::default(), limits, tickets }
    }

    /// Ends the tasks that run.
    pub(super) async fn stop(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    /// Lets a call go on as a task; gives the result that names it.
    pub(super) fn start(&self, job: Job, caller: Caller) -> Answer {
        let full = || RpcError::from(&ToolError::new(Code::Overloaded, "Too many tasks are running"));
        // Progress and log are not told of tasks (SEP-2663, task status notifications).
        job.client.say_nothing();
        let (answers, given) = mpsc::channel(ANSWERS);
        let now = SystemTime::now();
        let task = Arc::new(Task {
            id: self.tickets.for_here(&task_of(&caller), self.limits.task_ttl)?,
            caller,
            created: now,
            since: Instant::now(),
            state: watch::Sender::new(State { updated: now, status: Status::Working }),
            answers,
            work: Mutex::default(),
        });
        if !self.remember(&task) {
            return Err(full());
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        let over = task.since.checked_add(self.limits.task_ttl);
        let work = running.spawn(work(task.clone(), job, given, over));
        *task.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        Ok(self.describe(&task, "task", &State { updated: now, status: Status::Working }).to_pieces())
    }

    /// Forgets the tasks whose time is over, then notes one more. Where there are too many, the oldest that is
    /// over makes room.
    fn remember(&self, task: &Arc<Task>) -> bool {
        let mut table = self.table();
        table.retain(|_, task| task.since.elapsed() < self.limits.task_ttl || task.abort());
        if table.len() >= self.limits.tasks {
            let over = table.values().filter(|task| task.state.borrow().status.is_final());
            let Some(oldest) = over.min_by_key(|task| task.since).map(|task| task.id.clone()) else {
                return false;
            };
            table.remove(&oldest);
        }
        table.insert(task.id.clone(), task.clone());
        true
    }

    /// Whether another call can go on as a task.
    pub(super) fn has_room(&self) -> bool {
        let table = self.table();
        let lasts = |task: &&Arc<Task>| {
            task.since.elapsed() < self.limits.task_ttl && !task.state.borrow().status.is_final()
        };
        table.len() < self.limits.tasks || table.values().filter(lasts).count() < self.limits.tasks
    }

    /// Where a task is.
    ///
    /// # Errors
    /// When the id was not given out to this caller, or is too old.
    pub(super) fn place(&self, id: &str, caller: &Caller) -> Result<Place, RpcError> {
        self.tickets.place(&task_of(caller), id).map_err(|_unsealed| unknown())
    }

    /// The result of `tasks/get`.
    pub(super) fn get(&self, id: &str, sender: &Sender) -> Answer {
        let task = self.known(id, &sender.caller).ok_or_else(unknown)?;
        let state = task.state.borrow().clone();
        let mut description = self.describe(&task, "complete", &state);
        show_permitted(&mut description, &sender.client);
        Ok(description.to_pieces())
    }

    /// The result of `tasks/update`.
    pub(super) fn update(&self, id: &str, params: &Object, caller: &Caller) -> Answer {
        let task = self.known(id, caller).ok_or_else(unknown)?;
        let responses = params.get("inputResponses").and_then(|responses| responses.to_object().ok());
        let responses =
            responses.ok_or_else(|| RpcError::invalid_params("`params.inputResponses` is not an object"))?;
        if let Err(mpsc::error::TrySendError::Full(_)) = task.answers.try_send(responses) {
            return Err(RpcError::from(&ToolError::new(Code::Overloaded, "Too many answers at once")));
        }
        Ok(acknowledged())
    }

    /// The result of `tasks/cancel`. To cancel what is over changes nothing.
    pub(super) fn cancel(&self, id: &str, caller: &Caller) -> Answer {
        self.known(id, caller).ok_or_else(unknown)?.abort();
        Ok(acknowledged())
    }

    /// A client follows a task: its parameters of `notifications/tasks` now, and at each change, until it is over.
    /// `None` where it has no such task.
    pub(super) fn follow(self: &Arc<Self>, id: &str, caller: &Caller) -> Option<BoxStream<'static, Object>> {
        let task = self.known(id, caller)?;
        let mut state = task.state.subscribe();
        state.mark_changed();
        let next = async move |followed: Option<(watch::Receiver<State>, Arc<Task>, Arc<Self>)>| {
            let (mut state, task, tasks) = followed?;
            state.changed().await.ok()?;
            let now = state.borrow_and_update().clone();
            let mut params = tasks.describe(&task, "complete", &now);
            params.remove("resultType");
            Some((params, (!now.status.is_final()).then_some((state, task, tasks))))
        };
        Some(unfold(Some((state, task, self.clone())), next).boxed())
    }

    /// Ends the tasks of one caller.
    pub(super) fn forget(&self, caller: &Caller) {
        self.table().retain(|_, task| task.caller != *caller || task.abort());
    }

    fn known(&self, id: &str, caller: &Caller) -> Option<Arc<Task>> {
        let table = self.table();
        let task = table.get(id).filter(|task| task.caller == *caller);
        task.filter(|task| task.since.elapsed() < self.limits.task_ttl).cloned()
    }

    fn describe(&self, task: &Task, result_type: &str, state: &State) -> Object {
        let millis = |time: Duration| Json::unsigned(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let (status, member) = match &state.status {
            Status::Working => ("working", None),
            Status::InputRequired(requests) => ("input_required", Some(("inputRequests", requests))),
            Status::Completed(result) => ("completed", Some(("result", result))),
            Status::Failed(error) => ("failed", Some(("error", error))),
            Status::Cancelled => ("cancelled", None),
        };
        let description = Object::new()
            .with("resultType", Json::string(result_type))
            .with("taskId", Json::string(&task.id))
            .with("status", Json::string(status))
            .with("createdAt", Json::string(&iso_8601(task.created)))
            .with("lastUpdatedAt", Json::string(&iso_8601(state.updated)))
            .with("ttlMs", millis(self.limits.task_ttl))
            .with("pollIntervalMs", millis(self.limits.task_poll));
        member
            .into_iter()
            .fold(description, |description, (name, value)| description.with(name, value.clone()))
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Task>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    /// Moves on, unless the task is over.
    fn set(&self, status: Status) {
        self.state.send_if_modified(|state| {
            let moves = !state.status.is_final();
            if moves {
                *state = State { updated: SystemTime::now(), status };
            }
            moves
        });
    }

    /// Ends the work. Always `false`: nothing is left of the task.
    fn abort(&self) -> bool {
        if let Some(work) = self.work.lock().unwrap_or_else(PoisonError::into_inner).take() {
            work.abort();
        }
        self.set(Status::Cancelled);
        false
    }
}

/// The work of one task, which ends when it is forgotten.
async fn work(task: Arc<Task>, mut job: Job, mut answers: mpsc::Receiver<Object>, over: Option<Instant>) {
    let mut over = pin!(async move {
        match over {
            Some(over) => sleep_until(over).await,
            None => pending().await,
        }
    });
    loop {
        let status = match job.open.is_empty() {
            true => Status::Working,
            false => Status::InputRequired(job.open.requests()),
        };
        if !matches!((&task.state.borrow().status, &status), (Status::Working, Status::Working)) {
            task.set(status);
        }
        tokio::select! {
            step = job.step() => match step {
                Step::Over(Ok(Outcome::NeedsInput(needed))) => job.ask_and_retry(needed),
                Step::Over(Ok(Outcome::Task(begun))) => job.look_after(begun),
                Step::Over(came) => return task.set(ended(convert::answer(came, job.target(), Era::Modern))),
                Step::Asks => {}
            },
            Some(responses) = answers.recv() => job.open.answer(&responses),
            () = &mut over => return task.set(Status::Cancelled),
        }
    }
}

/// A result, though the tool says that it failed, completes a task; an error of the protocol fails it.
fn ended(answer: Answer) -> Status {
    match answer {
        Ok(pieces) => match Json::parse(Bytes::from(pieces.concat())) {
            Ok(result) => Status::Completed(result),
            Err(_) => {
                Status::Failed(RpcError::new(error::INTERNAL_ERROR, "The result is malformed").body().clone())
            }
        },
        Err(error) => Status::Failed(error.body().clone()),
    }
}

fn acknowledged() -> Vec<Bytes> {
    vec![Bytes::from_static(b"{\"resultType\":\"complete\"}")]
}
