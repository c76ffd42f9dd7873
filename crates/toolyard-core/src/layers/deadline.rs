//! Bounds the time of a call.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::{Code, ToolError};
use crate::gate::by;

/// The layer that ends a call when its time is up. Dropping what runs is how it ends.
pub struct Deadline;

impl Layer for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let answer = by(call.deadline, next.run(call)).await;
            answer.unwrap_or_else(|| Err(ToolError::new(Code::Timeout, "The tool did not answer in time")))
        })
    }
}
