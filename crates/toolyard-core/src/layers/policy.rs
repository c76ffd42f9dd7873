//! Takes what a call costs off what its caller has left.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::Code;

/// The layer that refuses who has nothing left to spend. That something does not exist for a caller at all is known
/// before: see [`Registry::seen_by`](crate::Registry::seen_by).
pub struct Policy;

impl Layer for Policy {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let grant = call.caller.grant.as_ref();
        let Some(allowance) = grant.and_then(|grant| grant.allowance.clone()) else { return next.run(call) };
        Box::pin(async move {
            let price = next.entry.price;
            allowance.take(price).await?;
            let answer = next.run(call).await;
            if answer.as_ref().is_err_and(|error| !was_run(error.code())) {
                allowance.give_back(price);
            }
            answer
        })
    }
}

/// Whether a call that failed like this may have done something. One that was withdrawn, or took too long, has been paid for.
const fn was_run(code: Code) -> bool {
    matches!(code, Code::Timeout | Code::ExecutionFailed | Code::Cancelled)
}
