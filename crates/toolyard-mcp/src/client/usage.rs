//! Whether a server is called, and when it last was.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

/// The calls of one server.
pub(super) struct Usage {
    now: watch::Sender<Now>,
}

#[derive(Clone, Copy)]
struct Now {
    running: usize,
    /// When a call last began or ended.
    last: Instant,
}

/// A use of the server, such as a call that runs, for as long as this is there.
pub(super) struct Running(Arc<Usage>);

impl Default for Usage {
    fn default() -> Self {
        Self { now: watch::Sender::new(Now { running: 0, last: Instant::now() }) }
    }
}

impl Usage {
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.now.send_modify(|now| *now = Now { running: now.running + 1, last: Instant::now() });
        Running(self.clone())
    }

    /// When it was last in use: now, if it is.
    pub(super) fn last(&self) -> Instant {
        let now = *self.now.borrow();
        if now.running > 0 { Instant::now() } else { now.last }
    }

    pub(super) fn is_running(&self) -> bool {
        self.now.borrow().running > 0
    }

    /// Waits until there is a call.
    pub(super) async fn begun(&self) {
        // We hold the sender ourselves.
        let _gone = self.now.subscribe().wait_for(|now| now.running > 0).await.map(drop);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.now.send_modify(|now| *now = Now { running: now.running - 1, last: Instant::now() });
    }
}
