//! Spends the price of a call from the caller's quota.

use futures_util::future::BoxFuture;

use super::{CallResult, Layer, NextLayer};
use crate::call::{Call, CallTarget};

/// Refuses callers whose quota or rate is used up. Entries that do not exist for a caller are refused before: see
/// [`Registry::view_for`](crate::Registry::view_for).
pub struct AccessPolicy;

impl Layer for AccessPolicy {
    fn name(&self) -> &'static str {
        "access_policy"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let grant = call.caller.grant.as_ref();
        // Requests about a task were paid for when the task began.
        let grant = grant.filter(|_| !matches!(call.target, CallTarget::Task(_)));
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
