//! Takes what a call costs off what its caller has left.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::{Call, Target};

/// The layer that refuses who has nothing left to spend. That something does not exist for a caller at all is known
/// before: see [`Registry::seen_by`](crate::Registry::seen_by).
pub struct Policy;

impl Layer for Policy {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let grant = call.caller.grant.as_ref();
        // What looks after a task was paid for when the task began.
        let grant = grant.filter(|_| !matches!(call.target, Target::Task(_)));
        let Some(allowance) = grant.and_then(|grant| grant.allowance.clone()) else { return next.run(call) };
        Box::pin(async move {
            let entry = next.entry;
            let price = entry.price.or_else(|| entry.handler.backend.price(&call)).unwrap_or_default();
            allowance.take(price).await?;
            let answer = next.run(call).await;
            if answer.as_ref().is_err_and(|error| !error.may_have_run()) {
                allowance.give_back(price);
            }
            answer
        })
    }
}
