//! Tools that a server of revision 2025-11-25 runs as tasks only (2025-11-25, basic/utilities/tasks, experimental).
//!
//! To whoever calls they are like other tools: the task is begun, waited for, and cancelled where nobody waits any more.

use std::sync::Arc;

use toolyard_core::{Call, Json, Object, Outcome, Target, Task, TaskAction, ToolError};

use super::connection::Connection;
use super::convert;
use super::repeat::Failure;
use super::transport::Answer;
use crate::wire::{Era, Id, message, method};

impl Connection {
    /// Runs a call of such a tool.
    pub(super) async fn call_as_task(&self, mut call: Call) -> Result<Outcome, Failure> {
        self.ask_for_log(&*call.client).await;
        call.params.set("task", Object::new().to_json());
        let waiting = Call { params: Object::new(), ..call.clone() };
        let created = self.exchange(method::TOOLS_CALL, call).await?;
        let Some(id) = task_of(&created) else { return Ok(convert::outcome(created, Era::Legacy)?) };
        let mut begun = Begun { connection: self, id: id.clone(), is_over: false };
        let (tool, handler) = (waiting.target.name().clone(), self.name.clone());
        let task = Task { tool, handler, id, action: TaskAction::Get };
        // It is answered once the task is over, and what the task asks comes meanwhile.
        let answer =
            self.exchange(method::TASKS_RESULT, Call { target: Target::Task(task), ..waiting }).await;
        // Whatever went wrong, another task would do the same work twice.
        let answer = answer.map_err(|error| Failure::for_good(ToolError::from(error)))?;
        begun.is_over = true;
        Ok(convert::outcome(answer, Era::Legacy)?)
    }
}

/// What the server calls the task that it has made of a call.
fn task_of(created: &Answer) -> Option<Arc<str>> {
    let task = created.as_ref().ok()?.to_object().ok()?.get("task")?.to_object().ok()?;
    task.get_str("taskId").map(Arc::from)
}

/// A task that runs. Dropping it before its end cancels it.
struct Begun<'c> {
    connection: &'c Connection,
    id: Arc<str>,
    is_over: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let id = Id::number(self.connection.next_id());
            let params = Object::new().with("taskId", Json::string(&self.id));
            self.connection.transport.post(vec![message::request(&id, method::TASKS_CANCEL, &params)]);
        }
    }
}
