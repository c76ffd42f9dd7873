//! Finds out that a server hangs.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connection::Connection;

/// How a silent server is asked whether it is there.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// For how long it may be silent. Some servers do nothing else while they run a tool: less than a call may take
    /// would be too short.
    pub interval: Duration,
    /// How long it may take to answer.
    pub time: Duration,
}

/// How often in a row a server may miss the question.
const MISSES: u32 = 2;

/// Waits until the server has not answered for so often. Without a probe that is never.
pub(super) async fn unanswered(connection: &Connection, probe: Option<Probe>) {
    let Some(probe) = probe else { return std::future::pending().await };
    let mut missed = 0;
    while missed < MISSES {
        let heard = connection.heard();
        // The second question comes at the same distance: a server that is busy may be about to answer the first.
        sleep(probe.interval).await;
        let is_silent = || connection.heard() == heard;
        let answers = !is_silent() || matches!(timeout(probe.time, connection.ping()).await, Ok(Ok(())));
        missed = if answers || !is_silent() { 0 } else { missed + 1 };
    }
}
