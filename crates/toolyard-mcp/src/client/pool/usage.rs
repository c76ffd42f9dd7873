//! Tracks the use of a server, so that it can be stopped when it is idle.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

/// The use of a server.
pub(in crate::client) struct ServerUsage {
    now: watch::Sender<UsageState>,
}

#[derive(Clone, Copy)]
struct UsageState {
    running: usize,
    /// Time when a use last started or ended.
    last_used: Instant,
}

/// A use of the server, such as a running call; dropping it ends the use.
pub(in crate::client) struct UsageGuard(Arc<ServerUsage>);

impl Default for ServerUsage {
    fn default() -> Self {
        Self { now: watch::Sender::new(UsageState { running: 0, last_used: Instant::now() }) }
    }
}

impl ServerUsage {
    pub(in crate::client) fn begin(self: &Arc<Self>) -> UsageGuard {
        self.now.send_modify(|now| *now = UsageState { running: now.running + 1, last_used: Instant::now() });
        UsageGuard(self.clone())
    }

    /// Returns the time of the last use: now, while it is in use.
    pub(super) fn last_used(&self) -> Instant {
        let state = *self.now.borrow();
        if state.running > 0 { Instant::now() } else { state.last_used }
    }

    pub(super) fn is_running(&self) -> bool {
        self.now.borrow().running > 0
    }

    /// Waits until the server is in use.
    pub(super) async fn wait_until_used(&self) {
        // Cannot fail: the sender lives in `self`.
        let _gone = self.now.subscribe().wait_for(|now| now.running > 0).await.map(drop);
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        self.0
            .now
            .send_modify(|now| *now = UsageState { running: now.running - 1, last_used: Instant::now() });
    }
}
