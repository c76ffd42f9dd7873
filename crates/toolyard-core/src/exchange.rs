//! The port of hosted functions that answer JSON-RPC messages one by one, without a connection.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::CallPrice;
use crate::backend::BackendPhase;
use crate::error::ToolError;
use crate::json::Json;

/// Answers JSON-RPC requests, each independently.
pub trait MessageExchange: Send + Sync {
    /// Returns the response to a request. Dropping the future cancels the request.
    ///
    /// # Errors
    /// If there is no response: the function is unavailable, exceeds `deadline`, or fails.
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>>;

    /// Returns a number that changes when another version may answer, so that its catalog has to be listed again.
    fn generation(&self) -> watch::Receiver<u64>;

    /// Returns a text that identifies the version that answers now, if it is a published one.
    fn version(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns the known status of the function without asking it, and every change. Without one the function is ready
    /// and has no price.
    fn status(&self) -> watch::Receiver<FunctionStatus> {
        watch::channel(FunctionStatus { phase: BackendPhase::Ready, price: None }).1
    }
}

/// The known status of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionStatus {
    /// State of the function.
    pub phase: BackendPhase,
    /// Price of a call of one of its tools, if it has one.
    pub price: Option<CallPrice>,
}
