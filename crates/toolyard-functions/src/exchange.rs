//! Functions as whatever answers JSON-RPC requests, each by itself.
//!
//! - [`FunctionExchange`]: a version that is published, or the latest of some;
//! - [`FolderExchange`]: what is in a folder now, for those who are still writing it.

mod folder;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::{Code, Exchange, Json, Phase, Standing, ToolError};

pub use folder::FolderExchange;

use crate::edition::Edition;
use crate::host::Host;
use crate::invoke::InvokeError;
use crate::shelf::Snapshot;
use crate::version::Wanted;

/// How often it is tried again to load a version that cannot be loaded.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// A hosted function, which a version is found of at each request. To one of MCP requests are messages; another one is given
/// its event, and answers with `{statusCode, body}`.
pub struct FunctionExchange {
    host: Host,
    id: String,
    wanted: Wanted,
    generation: watch::Receiver<u64>,
    standing: watch::Receiver<Standing>,
    _following: JoinSet<()>,
}

impl FunctionExchange {
    /// The version that is meant, whichever that is at the time.
    #[must_use]
    pub fn new(host: Host, id: String, wanted: Wanted) -> Self {
        let (generations, generation) = watch::channel(0);
        let (standings, standing) = watch::channel(Standing::default());
        let followed = Followed { host: host.clone(), id: id.clone(), wanted, generations, standings };
        let mut following = JoinSet::new();
        following.spawn(followed.follow());
        Self { host, id, wanted, generation, standing, _following: following }
    }
}

struct Followed {
    host: Host,
    id: String,
    wanted: Wanted,
    generations: watch::Sender<u64>,
    standings: watch::Sender<Standing>,
}

impl Followed {
    /// Counts how often another version is meant than before, and says what it is.
    async fn follow(self) {
        let mut known = self.host.watch();
        let mut before = known.borrow_and_update().mark(&self.id, self.wanted);
        loop {
            let is_ready = self.look().await;
            let other = self.other(&mut known, before.as_ref());
            let other = match is_ready {
                true => other.await,
                // It may have been a matter of a moment.
                false => match timeout(RETRY_EVERY, other).await {
                    Ok(other) => other,
                    Err(_) => continue,
                },
            };
            let Some(now) = other else { return };
            before = now;
            self.generations.send_modify(|number| *number += 1);
        }
    }

    /// What is meant, as soon as that is another version than before.
    async fn other(
        &self,
        known: &mut watch::Receiver<Arc<Snapshot>>,
        before: Option<&String>,
    ) -> Option<Option<String>> {
        let is_other = |known: &Arc<Snapshot>| known.mark(&self.id, self.wanted).as_ref() != before;
        let known = known.wait_for(is_other).await.ok()?;
        Some(known.mark(&self.id, self.wanted))
    }

    /// Says what the version is that is meant now; whether there is one that can be called.
    async fn look(&self) -> bool {
        let (phase, price) = match self.host.resolve(&self.id, self.wanted).await {
            Ok(edition) => (Phase::Ready, Some(edition.price)),
            Err(error) => (Phase::Unavailable { reason: error.to_string() }, None),
        };
        let is_ready = phase == Phase::Ready;
        self.standings.send_replace(Standing { phase, price });
        is_ready
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

    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }
}

async fn answer(
    host: &Host,
    edition: &Edition,
    request: &Json,
    deadline: Option<Instant>,
) -> Result<Json, ToolError> {
    let invoked = host.invoke(edition, request, None, deadline).await?;
    match invoked.failure {
        // It costs nothing, and whoever is called instead is not to be kept from answering.
        Some(failure) if !failure.may_have_run() => {
            Err(ToolError::new(Code::Unavailable, failure.to_string()).unsent())
        }
        _ => Ok(invoked.reply.to_json()),
    }
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
