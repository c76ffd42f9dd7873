//! The reader of `retries` and `retryPolicy`.
//!
//! Whether a request may be sent again is the author's word: who sets either of them says that the endpoint
//! can stand it, whatever the method.

use crate::{cursor::Cursor, fields::Fields, forms, handler::RetryPolicy};

/// The policy of a handler that has fields of its own, and the one that its configuration has.
pub(super) fn retry(fields: &mut Fields<'_>, configured: Option<RetryPolicy>) -> RetryPolicy {
    if let Some(policy) = configured {
        fields.misplaced(&["retries", "retryPolicy"], "`httpConfig.retryPolicy` says how often to try");
        return policy;
    }
    if let Some(policy) = fields.optional("retryPolicy", policy) {
        fields.misplaced(&["retries"], "`retryPolicy` says how often to try");
        return policy;
    }
    let retries = fields.with_default("retries", |cursor| cursor.number(0, 10), 0);
    RetryPolicy::attempts(retries + 1)
}

pub(super) fn policy(cursor: Cursor<'_>) -> Option<RetryPolicy> {
    let mut fields = cursor.fields()?;
    let max_attempts = fields.required("maxAttempts", |cursor| cursor.number(1, 10));
    let default = RetryPolicy::attempts(1);
    let status = |cursor: Cursor<'_>| cursor.number(100, 599).and_then(|status| u16::try_from(status).ok());
    let policy = RetryPolicy {
        max_attempts: max_attempts.unwrap_or(1),
        initial_backoff: fields.with_default("initialBackoff", Cursor::duration, default.initial_backoff),
        backoff_multiplier: fields.with_default(
            "backoffMultiplier",
            |cursor| cursor.parse(forms::multiplier),
            default.backoff_multiplier,
        ),
        max_backoff: fields.with_default("maxBackoff", Cursor::duration, default.max_backoff),
        retry_on: fields.with_default("retryOn", |cursor| cursor.list(status), default.retry_on),
        retry_on_network_error: fields.with_default(
            "retryOnNetworkError",
            Cursor::flag,
            default.retry_on_network_error,
        ),
        respect_retry_after: fields.with_default(
            "respectRetryAfter",
            Cursor::flag,
            default.respect_retry_after,
        ),
    };
    fields.finish();
    max_attempts.map(|_| policy)
}
