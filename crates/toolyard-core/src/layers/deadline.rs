//! Bounds the time of a call.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::client::Client;
use crate::error::{Code, ToolError};

/// How long to wait at least before the time is looked at again.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// The layer that ends a call when its time is up. Dropping what runs is how it ends.
pub struct Deadline;

impl Layer for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some(deadline) = call.deadline else { return next.run(call).await };
            let client = call.client.clone();
            in_time(deadline, &*client, next.run(call)).await?
        })
    }
}

/// Does some work for a client, until `deadline`. What the client takes to answer questions meanwhile is not the
/// work's time, and moves the end.
///
/// # Errors
/// [`Code::Timeout`] when the time is up.
pub async fn in_time<T>(
    deadline: Instant,
    client: &dyn Client,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    let mut work = pin!(work);
    // Of the same client's request another call may have run, and asked, before.
    let asked_before = client.asked_for();
    let mut until = deadline;
    loop {
        if let Ok(done) = timeout_at(until, &mut work).await {
            return Ok(done);
        }
        until = deadline + client.asked_for().saturating_sub(asked_before);
        if until <= Instant::now() {
            return Err(ToolError::new(Code::Timeout, "The tool did not answer in time"));
        }
        // While a question is open the end moves away as fast as it comes near.
        until = until.max(Instant::now() + LEAST_WAIT);
    }
}
