//! The port of whatever answers one JSON-RPC message with one other, without a connection: a hosted function.

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ToolError;
use crate::json::Json;

/// Answers JSON-RPC requests, each by itself.
pub trait Exchange: Send + Sync {
    /// Has a request answered; gives whatever came as the answer. Dropping the future withdraws the request.
    ///
    /// # Errors
    /// When there is no answer: nobody is there, it took longer than until `deadline`, or it broke down.
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>>;

    /// A number that is another one as soon as who answers may be another one: what it offers is to be asked for again.
    fn generation(&self) -> watch::Receiver<u64>;
}
