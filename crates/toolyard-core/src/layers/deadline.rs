//! Limits the time of a call.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{CallResult, Layer, NextLayer};
use crate::call::Call;
use crate::client::Client;
use crate::error::{ErrorCode, ToolError};

/// Shortest interval between two checks of the time.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Ends a call at its deadline by dropping its future.
pub struct DeadlineLayer;

impl Layer for DeadlineLayer {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let Some(deadline) = call.deadline else { return next.run(call).await };
            let client = call.client.clone();
            in_time(deadline, &*client, next.run(call)).await?
        })
    }
}

/// Runs work for a client until `deadline`. Time in which the client answers questions is not counted, and moves the
/// end.
///
/// # Errors
/// [`ErrorCode::Timeout`] after the deadline.
pub async fn in_time<T>(
    deadline: Instant,
    client: &dyn Client,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let mut work = pin!(work);
    // Another call of the same request may have asked the client before.
    let asked_before = client.asked_for();
    let mut until = deadline;
    loop {
        if let Ok(done) = timeout_at(until, &mut work).await {
            return Ok(done);
        }
        until = deadline + client.asked_for().saturating_sub(asked_before);
        if until <= Instant::now() {
            return Err(ToolError::new(ErrorCode::Timeout, "The tool did not answer in time"));
        }
        // While a question is open the end moves with the clock.
        until = until.max(Instant::now() + LEAST_WAIT);
    }
}
