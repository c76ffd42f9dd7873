//! Functions as whatever answers JSON-RPC requests, each by itself.
//!
//! - [`FunctionExchange`]: a version that is published, or the latest of some;
//! - [`FolderExchange`]: what is in a folder now, for those who are still writing it.

mod folder;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{Code, Exchange, Json, ToolError};

pub use folder::FolderExchange;

use crate::edition::Edition;
use crate::host::Host;
use crate::invoke::InvokeError;
use crate::shelf::Snapshot;
use crate::version::Wanted;

/// A hosted function, which a version is found of at each request. To one of MCP requests are messages; another one is given
/// its event, and answers with `{statusCode, body}`.
pub struct FunctionExchange {
    host: Host,
    id: String,
    wanted: Wanted,
    generation: watch::Receiver<u64>,
    _following: JoinSet<()>,
}

impl FunctionExchange {
    /// The version that is meant, whichever that is at the time.
    #[must_use]
    pub fn new(host: Host, id: String, wanted: Wanted) -> Self {
        let (sender, generation) = watch::channel(0);
        let mut following = JoinSet::new();
        following.spawn(follow(host.watch(), id.clone(), wanted, sender));
        Self { host, id, wanted, generation, _following: following }
    }
}

/// Counts how often another version is meant than before.
async fn follow(
    mut known: watch::Receiver<Arc<Snapshot>>,
    id: String,
    wanted: Wanted,
    generation: watch::Sender<u64>,
) {
    let mut before = known.borrow_and_update().mark(&id, wanted);
    while known.changed().await.is_ok() {
        let now = known.borrow_and_update().mark(&id, wanted);
        if now != before {
            generation.send_modify(|number| *number += 1);
            before = now;
        }
    }
}

impl Exchange for FunctionExchange {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move {
            let found = within(deadline, self.host.resolve(&self.id, self.wanted)).await??;
            answer(&self.host, &found, &request, deadline).await
        })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.clone()
    }
}

async fn answer(
    host: &Host,
    edition: &Edition,
    request: &Json,
    deadline: Option<Instant>,
) -> Result<Json, ToolError> {
    let invoked = host.invoke(edition, request, None, deadline).await?;
    Ok(invoked.reply.to_json())
}

/// What comes of something before the deadline.
async fn within<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(deadline) = deadline else { return Ok(work.await) };
    let late = |_| ToolError::new(Code::Timeout, "The function was not ready in time").unsent();
    timeout_at(deadline, work).await.map_err(late)
}

impl From<InvokeError> for ToolError {
    fn from(error: InvokeError) -> Self {
        let code = match error {
            InvokeError::TimedOut(_) => Code::Timeout,
            InvokeError::Busy => Code::Overloaded,
            InvokeError::Unavailable(_) => Code::Unavailable,
        };
        let said = Self::new(code, error.to_string());
        let said = if error.may_have_run() { said } else { said.unsent() };
        match error {
            InvokeError::Unavailable(why) => said.caused_by(why),
            _ => said,
        }
    }
}
