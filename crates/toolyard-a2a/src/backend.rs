//! The backend of other agents: for a client that takes tasks the task of an agent is the task of its call, and
//! subscribers of the resources are notified of changes.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use toolyard_agent::memory::WorkingMemory;
use toolyard_core::task::acknowledgement;
use toolyard_core::{
    Backend, BackendWrapper, Call, CallOutput, CallTarget, Caller, ErrorCode, Json, Object, Outcome,
    StartedTask, TaskAction, TaskReference, ToolError, resource_updates,
};
use toolyard_manifest::AgentSettings;

use crate::agents::Agents;
use crate::mcp_task;
use crate::resources::{TaskResource, TaskResources};
use crate::tasks::{AgentTask, AgentTaskOwner};
use crate::tools::{self, INVOKE, Invocation, InvokeAgentArgs};

/// A backend that has the tools and resources of other agents. Agents are known and invoked while it exists.
pub struct AgentBackend {
    inner: Arc<dyn Backend>,
    agents: Agents,
    memory: Option<WorkingMemory>,
    settings: Arc<AgentSettings>,
    resources: TaskResources,
}

impl AgentBackend {
    /// Wraps a backend that has these tools and resources, and enables the agents with these settings. Results go to
    /// `memory`, if there is one.
    #[must_use]
    pub fn new(
        inner: Arc<dyn Backend>,
        agents: Agents,
        memory: Option<WorkingMemory>,
        settings: AgentSettings,
    ) -> Self {
        let settings = Arc::new(settings);
        agents.enable(Some(settings.clone()));
        Self { inner, agents, memory, settings, resources: TaskResources::new() }
    }

    /// Starts the task of an agent as the task of its call.
    async fn start_task(&self, call: &Call) -> Result<Outcome, ToolError> {
        let arguments = call.arguments().map_or(&b"{}"[..], Json::as_bytes);
        let args: InvokeAgentArgs = serde_json::from_slice(arguments)
            .map_err(|error| ToolError::new(ErrorCode::InvalidArguments, format!("arguments: {error}")))?;
        match tools::invoke_agent(&self.agents, self.memory.as_ref(), call, args).await {
            Ok(Invocation::Started(task)) => {
                let body = mcp_task::describe(&task, &self.settings).to_started();
                Ok(Outcome::Task(StartedTask { is_here: true, ..body.into() }))
            }
            Ok(Invocation::Text(text)) => Ok(Outcome::Done(CallOutput::text(&text))),
            Err(error) => Ok(Outcome::Done(CallOutput::failure(&error.to_string()))),
        }
    }

    async fn run_action(&self, call: &Call, task: &TaskReference) -> Result<Outcome, ToolError> {
        let owner = AgentTaskOwner::of(&call.caller);
        // It reports an unknown task, too.
        let stored = self.task(&owner, &task.id).await?;
        let body = match task.action {
            TaskAction::Get => mcp_task::describe(&stored, &self.settings).to_object(),
            // A task of an agent requests no input.
            TaskAction::Update => acknowledgement(),
            TaskAction::Cancel => {
                self.agents.cancel(&owner, &task.id);
                acknowledgement()
            }
        };
        Ok(Outcome::Done(CallOutput { body, is_error: false }))
    }

    async fn task(&self, owner: &AgentTaskOwner, id: &str) -> Result<AgentTask, ToolError> {
        let tasks = self.agents.tasks(owner).await.map_err(|error| {
            let text = "the store of the tasks does not answer: try again later";
            ToolError::new(ErrorCode::Unavailable, text).caused_by(error)
        })?;
        tasks.into_iter().find(|task| task.id == id).ok_or_else(|| {
            let text = "unknown `taskId`: the task was removed, or never existed";
            ToolError::new(ErrorCode::InvalidArguments, text)
        })
    }
}

impl Drop for AgentBackend {
    fn drop(&mut self) {
        self.agents.disable(&self.settings);
    }
}

impl BackendWrapper for AgentBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        match &call.target {
            CallTarget::Tool(name) if **name == *INVOKE && call.client.takes_tasks() => {
                async move { self.start_task(&call).await }.boxed()
            }
            CallTarget::Task(task) if *task.tool == *INVOKE => {
                let task = task.clone();
                async move { self.run_action(&call, &task).await }.boxed()
            }
            _ => self.inner.call(call),
        }
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let Some(resource) = self.resources.find(uri) else { return self.inner.follow(uri, caller) };
        let owner = AgentTaskOwner::of(caller);
        resource_updates(self.agents.updates().subscribe(), uri, move |update| {
            let is_shown = match &resource {
                TaskResource::List => true,
                TaskResource::One(id) => *id == update.id,
            };
            update.owner == owner && is_shown
        })
    }
}

#[cfg(test)]
mod tests;
