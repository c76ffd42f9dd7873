//! Bounds the time of a call.

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::{Code, ToolError};

/// The layer that ends a call when its time is up: the handler's limit, or the door's where that is
/// sooner. Dropping what runs is how it ends.
pub struct DeadlineLayer;

impl Layer for DeadlineLayer {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let limit = next.entry.handler.limits.timeout;
            let ours = Instant::now() + limit;
            let deadline = call.deadline.map_or(ours, |theirs| theirs.min(ours));
            call.deadline = Some(deadline);
            timeout_at(deadline, next.run(call)).await.unwrap_or_else(|_| {
                Err(ToolError::new(Code::Timeout, format!("The tool did not answer within {limit:?}")))
            })
        })
    }
}
