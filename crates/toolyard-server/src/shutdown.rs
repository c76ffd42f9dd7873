//! The shutdown of a gateway, one subsystem after another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use toolyard_mcp::server::McpFrontend;

/// A started part of the gateway. Dropping it stops it at once.
pub(crate) trait Subsystem: Send + Sync {
    /// Finishes the work that is under way, within `drain`, and stops.
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()>;
}

/// Stops subsystems in this order. Each has the time `drain`.
pub(crate) async fn stop_in_order(subsystems: Vec<Box<dyn Subsystem>>, drain: Duration) {
    for subsystem in subsystems {
        subsystem.stop(drain).await;
    }
}

/// Tasks without work to finish.
impl Subsystem for JoinSet<()> {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        // Dropping them aborts them.
        Box::pin(async move { drop(self) })
    }
}

/// Tasks and suspended calls of MCP clients. The requests have ended with the listeners.
impl Subsystem for Arc<McpFrontend> {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { McpFrontend::stop(&self).await })
    }
}
