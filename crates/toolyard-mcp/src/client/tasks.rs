//! Tools that run only as tasks of 2025-11-25 (basic/utilities/tasks, experimental).
//!
//! Callers do not notice: the task is started, awaited, and cancelled if the call is dropped.

use std::sync::Arc;

use toolyard_core::{Call, CallTarget, Json, Object, TaskAction, TaskReference, ToolError};

use super::connection::UpstreamConnection;
use super::retry::AttemptError;
use super::transport::UpstreamResult;
use crate::wire::{RequestId, message, method};

impl UpstreamConnection {
    /// Performs a call of such a tool.
    pub(super) async fn invoke_as_task(&self, mut call: Call) -> Result<UpstreamResult, AttemptError> {
        call.params.set("task", Object::new().to_json());
        let task_call = Call { params: Object::new(), ..call.clone() };
        let created = self.invoke(method::TOOLS_CALL, call).await?;
        let Some(id) = created_task_id(&created) else {
            return Ok(created);
        };
        let mut guard = LegacyTaskGuard { connection: self, id: id.clone(), is_over: false };
        let (tool, handler) = (task_call.target.name().clone(), self.name.clone());
        let task = TaskReference { tool, handler, id, action: TaskAction::Get };
        // `tasks/result` is answered at the end of the task; requests of the server arrive meanwhile.
        let task_call = Call { target: CallTarget::Task(task), ..task_call };
        let answer = self.invoke(method::TASKS_RESULT, task_call).await;
        // After any failure another task could repeat the work.
        let answer = answer.map_err(|error| AttemptError::permanent(ToolError::from(error)))?;
        guard.is_over = true;
        Ok(answer)
    }
}

/// Returns the id of the task that the server has created for a call.
fn created_task_id(created: &UpstreamResult) -> Option<Arc<str>> {
    let task = created.as_ref().ok()?.to_object().ok()?.get("task")?.to_object().ok()?;
    task.get_str("taskId").map(Arc::from)
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
