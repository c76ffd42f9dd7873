//! Detects a server that hangs.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::UpstreamConnection;

/// The settings of the liveness probe.
#[derive(Debug, Clone, Copy)]
pub struct LivenessProbe {
    /// Silence after which a request is sent. Some servers handle nothing else while they run a tool, so that this
    /// should exceed the longest call.
    pub interval: Duration,
    /// Timeout of the request.
    pub timeout: Duration,
}

/// Number of consecutive failures that make the server unresponsive.
const MAX_MISSES: u32 = 2;

/// Waits until the server is unresponsive; never returns without a probe.
pub(in crate::client) async fn wait_until_unresponsive(
    connection: &UpstreamConnection,
    probe: Option<LivenessProbe>,
) {
    let Some(probe) = probe else { return std::future::pending().await };
    let mut missed = 0;
    while missed < MAX_MISSES {
        let received = connection.received();
        // The pause before the second request is the same: a busy server may be about to answer the first.
        sleep(probe.interval).await;
        let is_silent = || connection.received() == received;
        let answers = !is_silent() || matches!(timeout(probe.timeout, connection.ping()).await, Ok(Ok(())));
        missed = if answers || !is_silent() { 0 } else { missed + 1 };
    }
}
