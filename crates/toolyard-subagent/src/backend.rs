//! The backend of subagents: the subagent of a modern client that lends its model is the task of its call, and
//! subscribers of the resources are notified of changes.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use toolyard_core::task::acknowledgement;
use toolyard_core::{
    Backend, BackendWrapper, Call, CallOutput, CallTarget, Caller, ErrorCode, Json, Object, Outcome,
    StartedTask, TaskAction, TaskDescription, TaskReference, ToolError, resource_updates,
};

use crate::record::{SubagentOwner, SubagentRecord};
use crate::resources::{LIST_URI, ONE_PREFIX};
use crate::subagents::{Subagents, task};
use crate::tools::{SPAWN, SpawnArgs};

/// A backend that has the tools and resources of subagents.
pub struct SubagentBackend {
    inner: Arc<dyn Backend>,
    subagents: Subagents,
}

impl SubagentBackend {
    /// Wraps a backend that has the tools and resources of these subagents, if there are any.
    #[must_use]
    pub fn wrap(inner: Arc<dyn Backend>, subagents: Option<Subagents>) -> Arc<dyn Backend> {
        match subagents {
            Some(subagents) => Arc::new(Self { inner, subagents }),
            None => inner,
        }
    }

    /// Starts a subagent as the task of its call.
    async fn start_task(&self, call: &Call) -> Result<Outcome, ToolError> {
        let arguments = call.arguments().map_or(&b"{}"[..], Json::as_bytes);
        let args: SpawnArgs = serde_json::from_slice(arguments)
            .map_err(|error| ToolError::new(ErrorCode::InvalidArguments, format!("arguments: {error}")))?;
        let started = match self.subagents.start(call, args.into()).await {
            Ok(started) => started,
            Err(error) => return Ok(Outcome::Done(CallOutput::failure(&error.to_string()))),
        };
        let owner = SubagentOwner::of(&call.caller);
        let record = self.record(&owner, &started.id).await?;
        let body = self.describe(&owner, &record).to_started();
        Ok(Outcome::Task(StartedTask { is_here: true, ..body.into() }))
    }

    async fn run_action(&self, call: &Call, task: &TaskReference) -> Result<Outcome, ToolError> {
        let owner = SubagentOwner::of(&call.caller);
        // It reports an unknown task, too.
        let record = self.record(&owner, &task.id).await?;
        let body = match task.action {
            TaskAction::Get => self.describe(&owner, &record).to_object(),
            TaskAction::Update => {
                let responses =
                    call.params.get("inputResponses").and_then(|answers| answers.to_object().ok());
                let responses = responses.ok_or_else(|| {
                    let text =
                        "`inputResponses` is not an object: expected the answers by the keys of the requests";
                    ToolError::new(ErrorCode::InvalidArguments, text)
                })?;
                self.subagents.answer(&owner, &task.id, &responses);
                acknowledgement()
            }
            TaskAction::Cancel => {
                self.subagents.cancel(&owner, &task.id).await.map_err(unavailable)?;
                acknowledgement()
            }
        };
        Ok(Outcome::Done(CallOutput { body, is_error: false }))
    }

    async fn record(&self, owner: &SubagentOwner, id: &str) -> Result<SubagentRecord, ToolError> {
        let record = self.subagents.get(owner, id).await.map_err(unavailable)?;
        record.ok_or_else(|| {
            ToolError::new(
                ErrorCode::InvalidArguments,
                "unknown `taskId`: the subagent was removed, or never existed",
            )
        })
    }

    fn describe<'a>(&self, owner: &SubagentOwner, record: &'a SubagentRecord) -> TaskDescription<'a> {
        task::describe(record, self.subagents.open_requests(owner, &record.id))
    }
}

fn unavailable(error: toolyard_core::store::StoreError) -> ToolError {
    let text = "the store of subagents does not answer: try again later";
    ToolError::new(ErrorCode::Unavailable, text).caused_by(error)
}

impl BackendWrapper for SubagentBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        match &call.target {
            CallTarget::Tool(name) if **name == *SPAWN && self.subagents.are_tasks_for(&call) => {
                async move { self.start_task(&call).await }.boxed()
            }
            CallTarget::Task(task) if *task.tool == *SPAWN => {
                let task = task.clone();
                async move { self.run_action(&call, &task).await }.boxed()
            }
            _ => self.inner.call(call),
        }
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        let id = match (uri == LIST_URI, uri.strip_prefix(ONE_PREFIX)) {
            (true, _) => None,
            (false, Some(id)) => Some(id.to_owned()),
            (false, None) => return self.inner.follow(uri, caller),
        };
        let owner = SubagentOwner::of(caller);
        resource_updates(self.subagents.updates(), uri, move |update| {
            update.owner == owner && id.as_ref().is_none_or(|id| *id == update.id)
        })
    }
}
