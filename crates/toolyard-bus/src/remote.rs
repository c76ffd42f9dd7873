//! The tools of workers, as a gateway publishes them.
//!
//! - `directory`: the workers that announce themselves, and the tools that follow from it;
//! - `keeper`: the task that listens to announcements.
//!
//! A call goes to the topic of a group, so that the workers of the group share the load. A tool is published while all
//! workers of its group announce it, because any of them may take the call.

mod directory;
mod keeper;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolyard_core::{
    Backend, BackendPhase, Call, CallTarget, Catalog, ErrorCode, Object, Outcome, ToolError,
};
use toolyard_manifest::{BusHandler, BusSettings};

use self::directory::{RemoteTool, RemoteTools};
use self::keeper::WorkersKeeper;
use crate::bus::MessageBus;
use crate::caller::{RemoteCall, ToolCaller};
use crate::envelope::{TraceContext, new_id};
use crate::record::ToolInvokeRequest;
use crate::request::Repetition;
use crate::topic::Topic;

/// Time limit of a call without a deadline. The gateway sets one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Configuration of the tools of workers.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Name of the handler, for logs.
    pub name: Arc<str>,
    /// The groups, and limits of workers.
    pub handler: BusHandler,
    /// Settings of the bus.
    pub settings: BusSettings,
    /// Maximum number of tools of a worker.
    pub max_tools: usize,
    /// Maximum size of the definitions of a worker's tools, in bytes.
    pub max_definition_bytes: usize,
}

/// A backend of the tools of workers.
pub struct RemoteBackend {
    catalog: watch::Receiver<Arc<Catalog>>,
    tools: watch::Receiver<Arc<RemoteTools>>,
    caller: watch::Receiver<Option<Arc<ToolCaller>>>,
    refresh: Arc<Notify>,
    /// Aborted when the backend is dropped.
    _keeper: JoinSet<()>,
}

impl RemoteBackend {
    /// Creates a backend, and spawns the task that listens to workers on the current runtime.
    #[must_use]
    pub fn start(bus: Arc<dyn MessageBus>, options: RemoteOptions) -> Self {
        let (catalog, tools, caller) =
            (watch::Sender::default(), watch::Sender::default(), watch::Sender::default());
        let (refresh, mut keeper) = (Arc::<Notify>::default(), JoinSet::new());
        let (catalog_of, tools_of, caller_of) = (catalog.subscribe(), tools.subscribe(), caller.subscribe());
        let task = WorkersKeeper::new(bus, options, catalog, tools, caller, refresh.clone());
        keeper.spawn(task.run());
        Self { catalog: catalog_of, tools: tools_of, caller: caller_of, refresh, _keeper: keeper }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let mut catalog = self.catalog.clone();
        // Calls of tools of the last run wait here. The sender lives as long as the task.
        drop(catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await);
        let tool = match &call.target {
            CallTarget::Tool(name) => self.tools.borrow().get(name).cloned(),
            _ => None,
        };
        let (Some(tool), Some(caller)) = (tool, self.caller.borrow().clone()) else {
            return Err(self.unknown());
        };
        let request = ToolInvokeRequest::of(&call, new_id()?).ok_or_else(|| self.unknown())?;
        let remote = remote_call(&call, &tool)?;
        tokio::select! {
            output = caller.call_in_full(&request, remote) => output.map(Outcome::Done),
            () = self.is_gone(&tool) => Err(vanished(&tool)),
        }
    }

    /// Waits until no worker of the group has the tool any more, not even one that finishes its calls.
    async fn is_gone(&self, tool: &RemoteTool) {
        let mut tools = self.tools.clone();
        if tools.wait_for(|tools| !tools.is_reachable(tool)).await.is_err() {
            // Without its sender the backend is being dropped, and the call with it.
            std::future::pending().await
        }
    }

    fn unknown(&self) -> ToolError {
        match &self.catalog.borrow().phase {
            BackendPhase::Unavailable { reason } => {
                ToolError::new(ErrorCode::Unavailable, "No worker has this tool at present")
                    .caused_by(reason.to_string())
                    .unsent()
            }
            _ => ToolError::new(ErrorCode::ToolNotFound, "No worker has this tool any more").unsent(),
        }
    }
}

/// Returns the call of a tool on the topic of its group.
fn remote_call(call: &Call, tool: &RemoteTool) -> Result<RemoteCall, ToolError> {
    let topic = Topic::tool_invoke_of_group(&tool.group)
        .map_err(|_| ToolError::new(ErrorCode::ExecutionFailed, "The group of the workers has no topic"))?;
    let remaining = call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let text = |meta: &Object, name: &str| meta.get_str(name).map(std::borrow::Cow::into_owned);
    let parent = text(&call.meta, "traceparent");
    let state = text(&call.meta, "tracestate");
    Ok(RemoteCall {
        topic,
        timeout: remaining.unwrap_or(DEFAULT_TIMEOUT),
        repetition: if tool.is_repeatable { Repetition::AfterLoss } else { Repetition::Never },
        trace: parent.and_then(|parent| TraceContext::parse(&parent, state.as_deref())),
        headers: Vec::new(),
        client: call.client.clone(),
    })
}

/// Returns the error of a call whose workers have vanished. It may have run, or still do so: only a call that may run
/// twice can be repeated.
fn vanished(tool: &RemoteTool) -> ToolError {
    let (code, message) = match tool.is_repeatable {
        true => (ErrorCode::Unavailable, "The last worker with this tool has vanished during the call"),
        false => (
            ErrorCode::ExecutionFailed,
            "The last worker with this tool has vanished during the call, which may have run",
        ),
    };
    ToolError::new(code, message).because("the last worker with this tool has vanished")
}

impl Backend for RemoteBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

impl fmt::Debug for RemoteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBackend").finish_non_exhaustive()
    }
}
