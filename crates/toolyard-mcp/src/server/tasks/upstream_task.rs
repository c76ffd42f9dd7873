//! Tasks that upstream servers create for calls: awaited for clients without tasks, and observed for clients that
//! subscribe to them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt, unfold};
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::layers::in_time;
use toolyard_core::output_schema::wrap_result;
use toolyard_core::{
    Call, CallOutput, CallTarget, Client, ClientWrapper, ErrorCode, Gateway, Json, Object, Outcome, Registry,
    StartedTask, TaskAction, TaskOwner, TaskReference, ToolError,
};

use crate::server::interaction::multi_round_trip::{self, InvokeResult};
use crate::wire::{error, meta};

/// The poll interval if the server sets none, and the range of intervals that it may set.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Timeout of cancelling a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// True if the error says that the server runs the call only as a task.
pub(in crate::server) fn requires_task(error: &ToolError) -> bool {
    let names_tasks = || {
        let error = error.peer()?.to_object().ok()?;
        let code: i32 = error.get("code")?.as_text().parse().ok()?;
        let required = error.get("data")?.to_object().ok()?.get("requiredCapabilities")?.to_object().ok()?;
        let extensions = required.get("extensions")?.to_object().ok()?;
        Some(code == error::MISSING_CLIENT_CAPABILITY && extensions.get(meta::TASKS).is_some())
    };
    names_tasks() == Some(true)
}

/// Waits for the end of a task that a server created for a call, within the timeout of the call. Input that the task
/// needs is requested from the call's client. Dropping the future cancels the task.
pub(in crate::server) async fn wait_for_task(
    gateway: Arc<Gateway>,
    call: Call,
    started: StartedTask,
) -> InvokeResult {
    let StartedTask { body: task, owner: Some(TaskOwner { tool, handler }), .. } = started else {
        return Err(malformed_task());
    };
    let id = task.get_str("taskId").map(Arc::from).ok_or_else(malformed_task)?;
    let registry = Registry::view_for(gateway.registry(), &call.caller);
    let entry = registry.tool(&tool)?;
    let (timeout, published) = (entry.handler.limits.timeout, entry.tool.clone());
    let task_of_owner = TaskReference { tool, handler, id, action: TaskAction::Get };
    let mut guard =
        UpstreamTaskGuard { remote: UpstreamTask::new(gateway, &call, task_of_owner), is_over: false };
    let done = poll_until_done(&mut guard, &*call.client, task);
    let mut result = match Instant::now().checked_add(timeout) {
        Some(deadline) => in_time(deadline, &*call.client, done).await?,
        None => done.await,
    };
    if let (Ok(Outcome::Done(output)), Some(tool), true) =
        (&mut result, published, call.client.expects_objects())
    {
        wrap_result(output, tool.output_form());
    }
    result
}

async fn poll_until_done(
    guard: &mut UpstreamTaskGuard,
    client: &dyn Client,
    mut task: Object,
) -> InvokeResult {
    let mut answered = BTreeSet::new();
    loop {
        if let Some(result) = final_result(&task) {
            guard.is_over = true;
            return result;
        }
        let open_requests = input_requests(&task);
        // A request that is gone was answered; the same key later means a new request.
        answered.retain(|key: &String| open_requests.get(key).is_some());
        let open = open_requests.iter().filter(|(key, _)| !answered.contains(&**key));
        let open = open.fold(Object::new(), |open, (key, request)| open.with(&key, request.clone()));
        if open.is_empty() {
            sleep(poll_interval(&task)).await;
        } else {
            let needed = Object::new().with("inputRequests", open.to_json());
            let responses = multi_round_trip::ask_all(client, &needed).await?;
            answered.extend(responses.iter().map(|(key, _)| key.into_owned()));
            let params = Object::new().with("inputResponses", responses.to_json());
            guard.remote.request(TaskAction::Update, params).await?;
        }
        task = guard.remote.request(TaskAction::Get, Object::new()).await?;
    }
}

/// Returns the result of a finished task; `None` while it runs.
fn final_result(task: &Object) -> Option<InvokeResult> {
    match task.get_str("status").as_deref() {
        Some("completed") => Some(match task.get("result").and_then(|result| result.to_object().ok()) {
            Some(body) => {
                let is_error = body.get("isError").and_then(Json::to_bool) == Some(true);
                Ok(Outcome::Done(CallOutput { body, is_error }))
            }
            None => Err(malformed_task()),
        }),
        Some("failed") => Some(Err(match task.get("error") {
            Some(error) => ToolError::new(ErrorCode::ExecutionFailed, "The server's task failed")
                .from_peer(error.clone()),
            None => malformed_task(),
        })),
        Some("cancelled") => {
            Some(Err(ToolError::new(ErrorCode::Cancelled, "The server has cancelled the task")))
        }
        Some("working" | "input_required") => None,
        _ => Some(Err(malformed_task())),
    }
}

/// Returns the input that the task needs.
fn input_requests(task: &Object) -> Object {
    task.get("inputRequests").and_then(|requests| requests.to_object().ok()).unwrap_or_default()
}

fn poll_interval(task: &Object) -> Duration {
    let interval = task.get("pollIntervalMs").and_then(|interval| interval.as_text().parse().ok());
    interval
        .map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis)
        .clamp(POLL_INTERVAL_RANGE.0, POLL_INTERVAL_RANGE.1)
}

fn malformed_task() -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The server's task is malformed")
}

/// A task of an upstream server, and the call that created it.
struct UpstreamTask {
    gateway: Arc<Gateway>,
    call: Call,
    task: TaskReference,
}

impl UpstreamTask {
    /// Creates a task of a call. Requests for the task use the caller and the client of the call.
    fn new(gateway: Arc<Gateway>, call: &Call, task: TaskReference) -> Self {
        let call = Call { params: Object::new(), deadline: None, ..call.clone() };
        Self { gateway, call, task }
    }

    fn build_call(&self, action: TaskAction, params: Object) -> Call {
        let target = CallTarget::Task(TaskReference { action, ..self.task.clone() });
        Call { target, params, ..self.call.clone() }
    }

    async fn request(&self, action: TaskAction, params: Object) -> Result<Object, ToolError> {
        match self.gateway.invoke(self.build_call(action, params)).await? {
            Outcome::Done(output) => Ok(output.body),
            Outcome::NeedsInput(_) | Outcome::Task(_) => Err(malformed_task()),
        }
    }
}

/// A task that is awaited. Dropping the guard before the end cancels the task.
struct UpstreamTaskGuard {
    remote: UpstreamTask,
    is_over: bool,
}

impl Drop for UpstreamTaskGuard {
    fn drop(&mut self) {
        let Ok(runtime) = runtime::Handle::try_current() else { return };
        if self.is_over {
            return;
        }
        let (gateway, cancellation) =
            (self.remote.gateway.clone(), self.remote.build_call(TaskAction::Cancel, Object::new()));
        runtime.spawn(async move {
            let _too_slow = timeout(CANCEL_TIMEOUT, gateway.invoke(cancellation)).await;
        });
    }
}

/// Polls a task on behalf of a call, and returns the parameters of `notifications/tasks`: now, and at each change until
/// the task ends or cannot be polled any more. `public_id` is the id that the client knows.
pub(in crate::server) fn task_changes(
    gateway: Arc<Gateway>,
    call: &Call,
    task: TaskReference,
    public_id: &str,
) -> BoxStream<'static, Object> {
    let task = UpstreamTask::new(gateway, call, task);
    let public_id = Json::string(public_id);
    let first = Some((task, None::<Object>));
    unfold(first, move |followed| {
        let public_id = public_id.clone();
        async move {
            let (remote, last) = followed?;
            let mut reported = last.clone();
            loop {
                if let Some(reported) = &reported {
                    sleep(poll_interval(reported)).await;
                }
                let mut now = remote.request(TaskAction::Get, Object::new()).await.ok()?;
                now.remove("resultType");
                now.set("taskId", public_id.clone());
                if last.as_ref() != Some(&now) {
                    let is_over = final_result(&now).is_some();
                    return Some((now.clone(), (!is_over).then_some((remote, Some(now)))));
                }
                reported = Some(now);
            }
        }
    })
    .boxed()
}

/// A client that supports tasks because the gateway awaits them.
#[derive(Debug)]
pub(in crate::server) struct TaskCapableClient {
    client: Arc<dyn Client>,
    capabilities: Json,
}

impl TaskCapableClient {
    pub(in crate::server) fn new(client: Arc<dyn Client>) -> Self {
        let declared = client.capabilities().and_then(|declared| declared.to_object().ok());
        let mut capabilities = declared.unwrap_or_default();
        let extensions = capabilities.get("extensions").and_then(|extensions| extensions.to_object().ok());
        let extensions = extensions.unwrap_or_default().with(meta::TASKS, Object::new().to_json());
        capabilities.set("extensions", extensions.to_json());
        Self { client, capabilities: capabilities.to_json() }
    }
}

impl ClientWrapper for TaskCapableClient {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn capabilities(&self) -> Option<&Json> {
        Some(&self.capabilities)
    }
}
