//! The port of whatever answers one JSON-RPC message with one other, without a connection: a hosted function.

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::Price;
use crate::backend::Phase;
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

    /// What is known of who answers without asking, and every change of that. Where nothing is, somebody does and says of no
    /// price.
    fn standing(&self) -> watch::Receiver<Standing> {
        watch::channel(Standing { phase: Phase::Ready, price: None }).1
    }
}

/// What is known of who answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it can.
    pub phase: Phase,
    /// What a call of one of its tools costs, where it says so.
    pub price: Option<Price>,
}
