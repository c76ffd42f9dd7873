//! Tasks that servers make of calls: looked after for clients that know nothing of tasks, and followed for those that want to
//! be told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, unfold};
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::layers::in_time;
use toolyard_core::{
    Call, Client, ClientWrapper, Code, Gateway, Json, Object, Outcome, Output, Owner, Registry, Started,
    Target, Task, TaskAction, ToolError,
};

use super::rounds::{self, Came};
use crate::wire::{error, meta};

/// How often a task is looked after whose server does not say, and the bounds of what it may say.
const POLL: Duration = Duration::from_secs(1);
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// How long the withdrawal of a task may take.
const WITHDRAWAL_TIME: Duration = Duration::from_secs(5);

/// Whether a server runs what was called as a task only.
pub(super) fn wants_task(error: &ToolError) -> bool {
    let wanted = || {
        let error = error.peer()?.to_object().ok()?;
        let code: i32 = error.get("code")?.as_text().parse().ok()?;
        let required = error.get("data")?.to_object().ok()?.get("requiredCapabilities")?.to_object().ok()?;
        let extensions = required.get("extensions")?.to_object().ok()?;
        Some(code == error::MISSING_CLIENT_CAPABILITY && extensions.get(meta::TASKS).is_some())
    };
    wanted() == Some(true)
}

/// Waits until a task that a server has made of a call is over, for as long as a call may take; what it asks meanwhile is asked
/// of the call's client. Dropping the future cancels the task.
pub(super) async fn looked_after(gateway: Arc<Gateway>, call: Call, started: Started) -> Came {
    let Started { body: task, owner: Some(Owner { tool, handler }) } = started else {
        return Err(malformed());
    };
    let id = task.get_str("taskId").map(Arc::from).ok_or_else(malformed)?;
    let registry = Registry::seen_by(gateway.registry(), &call.caller);
    let timeout = registry.tool(&tool)?.handler.limits.timeout;
    let task_of_owner = Task { tool, handler, id, action: TaskAction::Get };
    let mut begun = Begun { remote: Remote::new(gateway, &call, task_of_owner), is_over: false };
    let over = wait(&mut begun, &*call.client, task);
    match Instant::now().checked_add(timeout) {
        Some(deadline) => in_time(deadline, &*call.client, over).await?,
        None => over.await,
    }
}

async fn wait(begun: &mut Begun, client: &dyn Client, mut task: Object) -> Came {
    let mut answered = BTreeSet::new();
    loop {
        if let Some(came) = ended(&task) {
            begun.is_over = true;
            return came;
        }
        let asked = asked(&task);
        // What is not asked any more was heard: if the server asks under the same key again, it asks anew.
        answered.retain(|key: &String| asked.get(key).is_some());
        let open = asked.iter().filter(|(key, _)| !answered.contains(&**key));
        let open = open.fold(Object::new(), |open, (key, request)| open.with(&key, request.clone()));
        if open.is_empty() {
            sleep(poll_interval(&task)).await;
        } else {
            let needed = Object::new().with("inputRequests", open.to_json());
            let responses = rounds::ask(client, &needed).await?;
            answered.extend(responses.iter().map(|(key, _)| key.into_owned()));
            let params = Object::new().with("inputResponses", responses.to_json());
            begun.remote.ask(TaskAction::Update, params).await?;
        }
        task = begun.remote.ask(TaskAction::Get, Object::new()).await?;
    }
}

/// What came of a task; `None` while it goes on.
fn ended(task: &Object) -> Option<Came> {
    match task.get_str("status").as_deref() {
        Some("completed") => Some(match task.get("result").and_then(|result| result.to_object().ok()) {
            Some(body) => {
                let is_error = body.get("isError").and_then(Json::to_bool) == Some(true);
                Ok(Outcome::Done(Output { body, is_error }))
            }
            None => Err(malformed()),
        }),
        Some("failed") => Some(Err(match task.get("error") {
            Some(error) => {
                ToolError::new(Code::ExecutionFailed, "The server's task failed").from_peer(error.clone())
            }
            None => malformed(),
        })),
        Some("cancelled") => Some(Err(ToolError::new(Code::Cancelled, "The server has cancelled the task"))),
        Some("working" | "input_required") => None,
        _ => Some(Err(malformed())),
    }
}

/// What a task asks.
fn asked(task: &Object) -> Object {
    task.get("inputRequests").and_then(|requests| requests.to_object().ok()).unwrap_or_default()
}

fn poll_interval(task: &Object) -> Duration {
    let said = task.get("pollIntervalMs").and_then(|interval| interval.as_text().parse().ok());
    said.map_or(POLL, Duration::from_millis).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)
}

fn malformed() -> ToolError {
    ToolError::new(Code::ExecutionFailed, "The server's task is malformed")
}

/// A task of a server, and on whose behalf it is asked about.
struct Remote {
    gateway: Arc<Gateway>,
    call: Call,
    task: Task,
}

impl Remote {
    /// On behalf of who made a call. Requests about its task go to the same server for the same client.
    fn new(gateway: Arc<Gateway>, call: &Call, task: Task) -> Self {
        let call = Call { params: Object::new(), deadline: None, ..call.clone() };
        Self { gateway, call, task }
    }

    fn request(&self, action: TaskAction, params: Object) -> Call {
        let target = Target::Task(Task { action, ..self.task.clone() });
        Call { target, params, ..self.call.clone() }
    }

    async fn ask(&self, action: TaskAction, params: Object) -> Result<Object, ToolError> {
        match self.gateway.invoke(self.request(action, params)).await? {
            Outcome::Done(output) => Ok(output.body),
            Outcome::NeedsInput(_) | Outcome::Task(_) => Err(malformed()),
        }
    }
}

/// A task that is waited for. Dropping it before its end cancels it.
struct Begun {
    remote: Remote,
    is_over: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let Ok(runtime) = runtime::Handle::try_current() else { return };
        if self.is_over {
            return;
        }
        let (gateway, withdrawal) =
            (self.remote.gateway.clone(), self.remote.request(TaskAction::Cancel, Object::new()));
        runtime.spawn(async move {
            let _too_slow = timeout(WITHDRAWAL_TIME, gateway.invoke(withdrawal)).await;
        });
    }
}

/// Looks after a task on behalf of who made a call: the parameters of `notifications/tasks` now, and at each change, until it is
/// over or cannot be asked about any more. `shown` is what the client calls it.
pub(super) fn followed(
    gateway: Arc<Gateway>,
    call: &Call,
    task: Task,
    shown: &str,
) -> BoxStream<'static, Object> {
    let remote = Remote::new(gateway, call, task);
    let shown = Json::string(shown);
    let first = Some((remote, None::<Object>));
    unfold(first, move |followed| {
        let shown = shown.clone();
        async move {
            let (remote, last) = followed?;
            let mut told = last.clone();
            loop {
                if let Some(told) = &told {
                    sleep(poll_interval(told)).await;
                }
                let mut now = remote.ask(TaskAction::Get, Object::new()).await.ok()?;
                now.remove("resultType");
                now.set("taskId", shown.clone());
                if last.as_ref() != Some(&now) {
                    let is_over = ended(&now).is_some();
                    return Some((now.clone(), (!is_over).then_some((remote, Some(now)))));
                }
                told = Some(now);
            }
        }
    })
    .boxed()
}

/// A client for which tasks are looked after here.
#[derive(Debug)]
pub(super) struct TakesTasks {
    client: Arc<dyn Client>,
    capabilities: Json,
}

impl TakesTasks {
    pub(super) fn new(client: Arc<dyn Client>) -> Self {
        let declared = client.capabilities().and_then(|declared| declared.to_object().ok());
        let mut capabilities = declared.unwrap_or_default();
        let extensions = capabilities.get("extensions").and_then(|extensions| extensions.to_object().ok());
        let extensions = extensions.unwrap_or_default().with(meta::TASKS, Object::new().to_json());
        capabilities.set("extensions", extensions.to_json());
        Self { client, capabilities: capabilities.to_json() }
    }
}

impl ClientWrapper for TakesTasks {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }
}
