//! Functions as adapters that answer JSON-RPC requests.
//!
//! - [`FunctionExchange`]: a published version, or the latest matching one;
//! - [`FolderExchange`]: the current content of a folder, for development.

mod folder;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::{BackendPhase, ErrorCode, FunctionStatus, Json, MessageExchange, ToolError};

pub use folder::FolderExchange;

use crate::function_index::IndexSnapshot;
use crate::host::FunctionHost;
use crate::invoke::InvokeError;
use crate::loaded_version::LoadedVersion;
use crate::version::VersionSelector;

/// Interval of attempts to load a version that failed to load.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A hosted function, whose version is resolved for each request. MCP functions get the request; other functions get
/// their event and return `{statusCode, body}`.
pub struct FunctionExchange {
    host: FunctionHost,
    id: String,
    selector: VersionSelector,
    generation: watch::Receiver<u64>,
    standing: watch::Receiver<FunctionStatus>,
    _following: JoinSet<()>,
}

impl FunctionExchange {
    /// Creates an exchange with the version that the selector matches at the time of each request.
    #[must_use]
    pub fn new(host: FunctionHost, id: String, wanted: VersionSelector) -> Self {
        let (generations, generation) = watch::channel(0);
        let (standings, standing) = watch::channel(FunctionStatus::default());
        let followed =
            VersionFollower { host: host.clone(), id: id.clone(), selector: wanted, generations, standings };
        let mut following = JoinSet::new();
        following.spawn(followed.follow());
        Self { host, id, selector: wanted, generation, standing, _following: following }
    }
}

struct VersionFollower {
    host: FunctionHost,
    id: String,
    selector: VersionSelector,
    generations: watch::Sender<u64>,
    standings: watch::Sender<FunctionStatus>,
}

impl VersionFollower {
    /// Increments the generation for each change of the selected version, and publishes its status.
    async fn follow(self) {
        let mut snapshots = self.host.watch();
        let mut before = snapshots.borrow_and_update().version_key(&self.id, self.selector);
        loop {
            let is_ready = self.publish_status().await;
            let wait_for_other = self.other(&mut snapshots, before.as_ref());
            let other = match is_ready {
                true => wait_for_other.await,
                // The failure may be temporary.
                false => match timeout(RETRY_INTERVAL, wait_for_other).await {
                    Ok(other) => other,
                    Err(_) => continue,
                },
            };
            let Some(now) = other else { return };
            before = now;
            self.generations.send_modify(|number| *number += 1);
        }
    }

    /// Waits until another version is selected, and returns its mark.
    async fn other(
        &self,
        snapshots: &mut watch::Receiver<Arc<IndexSnapshot>>,
        before: Option<&String>,
    ) -> Option<Option<String>> {
        let is_other = |snapshots: &Arc<IndexSnapshot>| {
            snapshots.version_key(&self.id, self.selector).as_ref() != before
        };
        let snapshots = snapshots.wait_for(is_other).await.ok()?;
        Some(snapshots.version_key(&self.id, self.selector))
    }

    /// Publishes the status of the selected version; returns true if it can be called.
    async fn publish_status(&self) -> bool {
        let (phase, price) = match self.host.resolve(&self.id, self.selector).await {
            Ok(loaded) => (BackendPhase::Ready, Some(loaded.price)),
            Err(error) => (BackendPhase::Unavailable { reason: error.to_string().into() }, None),
        };
        let is_ready = phase == BackendPhase::Ready;
        self.standings.send_replace(FunctionStatus { phase, price });
        is_ready
    }
}

impl MessageExchange for FunctionExchange {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move {
            let version = with_deadline(deadline, self.host.resolve(&self.id, self.selector)).await??;
            call_function(&self.host, &version, &request, deadline).await
        })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.clone()
    }

    fn version(&self) -> Option<Arc<str>> {
        self.host.version_key(&self.id, self.selector)
    }

    fn status(&self) -> watch::Receiver<FunctionStatus> {
        self.standing.clone()
    }
}

async fn call_function(
    host: &FunctionHost,
    version: &LoadedVersion,
    request: &Json,
    deadline: Option<Instant>,
) -> Result<Json, ToolError> {
    let invoked = host.invoke(version, request, None, deadline).await?;
    match invoked.failure {
        // The call costs nothing, and the caller may try an alternative.
        Some(failure) if !failure.may_have_run() => {
            Err(ToolError::new(ErrorCode::Unavailable, failure.to_string()).unsent())
        }
        _ => Ok(invoked.reply.to_json()),
    }
}

/// Waits for a future until the deadline.
async fn with_deadline<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(deadline) = deadline else { return Ok(work.await) };
    let late = |_| ToolError::new(ErrorCode::Timeout, "The function was not ready in time").unsent();
    timeout_at(deadline, work).await.map_err(late)
}

impl From<InvokeError> for ToolError {
    fn from(error: InvokeError) -> Self {
        let code = match error {
            InvokeError::TimedOut(_) => ErrorCode::Timeout,
            InvokeError::Busy => ErrorCode::Overloaded,
            InvokeError::Unavailable(_) => ErrorCode::Unavailable,
        };
        let tool_error = Self::new(code, error.to_string());
        let tool_error = if error.may_have_run() { tool_error } else { tool_error.unsent() };
        match error {
            InvokeError::Unavailable(why) => tool_error.caused_by(why),
            _ => tool_error,
        }
    }
}
