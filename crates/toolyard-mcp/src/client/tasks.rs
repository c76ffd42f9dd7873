//! Tools that run only as tasks of 2025-11-25 (basic/utilities/tasks, experimental).
//!
//! Callers do not notice: the task is started, awaited, and cancelled if the call is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use toolyard_core::{Call, CallTarget, Json, Object, TaskAction, TaskReference, ToolError};

use super::connection::UpstreamConnection;
use super::retry::AttemptError;
use super::transport::{TransportError, UpstreamResult};
use crate::wire::{RequestId, message, method};

/// Time between two requests for a task, unless the server names one.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

impl UpstreamConnection {
    /// Performs a call of such a tool.
    pub(super) async fn invoke_as_task(&self, call: &Call) -> Result<UpstreamResult, AttemptError> {
        let mut call = call.clone();
        call.params.set("task", Object::new().to_json());
        let created = self.invoke(method::TOOLS_CALL, &call).await?;
        let Some(id) = created_task_id(&created) else {
            return Ok(created);
        };
        let mut guard = LegacyTaskGuard { connection: self, id: id.clone(), is_over: false };
        let (tool, handler) = (call.target.name().clone(), self.name.clone());
        let task = TaskReference { tool, handler, id, action: TaskAction::Get };
        let task_call = Call { target: CallTarget::Task(task), params: Object::new(), ..call };
        let answer = self.task_result(&task_call).await;
        // After any failure another task could repeat the work.
        let answer = answer.map_err(|error| AttemptError::permanent(ToolError::from(error)))?;
        guard.is_over = true;
        Ok(answer)
    }

    /// Waits for the result of a task. `tasks/result` is answered at its end, and requests of the server arrive
    /// meanwhile; FastMCP answers at once, with an error until the end.
    async fn task_result(&self, task: &Call) -> Result<UpstreamResult, TransportError> {
        loop {
            let answer = self.invoke(method::TASKS_RESULT, task).await?;
            if answer.is_ok() {
                return Ok(answer);
            }
            let state = self.invoke(method::TASKS_GET, task).await?;
            let Some(interval) = poll_interval(&state) else { return Ok(answer) };
            sleep(interval).await;
        }
    }
}

/// Member of `_meta` in which FastMCP 2 has the created task, beside a result without content.
const DRAFT_TASK: &str = "modelcontextprotocol.io/task";

/// Returns the id of the task that the server has created for a call.
fn created_task_id(created: &UpstreamResult) -> Option<Arc<str>> {
    let created = created.as_ref().ok()?.to_object().ok()?;
    let draft = || created.get("_meta")?.to_object().ok()?.get(DRAFT_TASK).cloned();
    let task = created.get("task").cloned().or_else(draft)?.to_object().ok()?;
    task.get_str("taskId").map(Arc::from)
}

/// Returns the time until the next request for a task that has not ended; `None` if it has, or if it is unknown.
fn poll_interval(state: &UpstreamResult) -> Option<Duration> {
    let task = state.as_ref().ok()?.to_object().ok()?;
    matches!(&*task.get_str("status")?, "working" | "input_required").then(|| {
        let interval = task.get("pollInterval").and_then(|interval| interval.as_text().parse().ok());
        let interval = interval.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        interval.clamp(POLL_INTERVAL_RANGE.0, POLL_INTERVAL_RANGE.1)
    })
}

/// A running task. Dropping the guard before the end cancels the task.
struct LegacyTaskGuard<'c> {
    connection: &'c UpstreamConnection,
    id: Arc<str>,
    is_over: bool,
}

impl Drop for LegacyTaskGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let id = RequestId::number(self.connection.next_id());
            let params = Object::new().with("taskId", Json::string(&self.id));
            self.connection.transport.enqueue(vec![message::request(&id, method::TASKS_CANCEL, &params)]);
        }
    }
}
