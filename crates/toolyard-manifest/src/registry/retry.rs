//! The reader of `retries` and `retryPolicy`.
//!
//! Whether a request may be sent again is the author's word: who sets either of them says that the endpoint
//! can stand it, whatever the method.

use std::time::Duration;

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms,
    handler::{GrpcRetryPolicy, RetryPolicy},
};

/// The statuses of gRPC (grpc.io, "Status codes and their use in gRPC"). OK is not among them: what succeeded
/// is not sent again.
const GRPC_STATUS: Choice<&str> = Choice {
    noun: "status of gRPC",
    words: &[
        ("CANCELLED", "CANCELLED"),
        ("UNKNOWN", "UNKNOWN"),
        ("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        ("NOT_FOUND", "NOT_FOUND"),
        ("ALREADY_EXISTS", "ALREADY_EXISTS"),
        ("PERMISSION_DENIED", "PERMISSION_DENIED"),
        ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"),
        ("FAILED_PRECONDITION", "FAILED_PRECONDITION"),
        ("ABORTED", "ABORTED"),
        ("OUT_OF_RANGE", "OUT_OF_RANGE"),
        ("UNIMPLEMENTED", "UNIMPLEMENTED"),
        ("INTERNAL", "INTERNAL"),
        ("UNAVAILABLE", "UNAVAILABLE"),
        ("DATA_LOSS", "DATA_LOSS"),
        ("UNAUTHENTICATED", "UNAUTHENTICATED"),
    ],
    not_yet: &[],
};

/// When and how often a type of handler tries again.
pub(super) trait Policy: Sized {
    /// So many attempts, and the defaults of the contract.
    fn attempts(max_attempts: u32) -> Self;

    /// The object `retryPolicy`.
    fn read(cursor: Cursor<'_>) -> Option<Self>;
}

/// The policy of a handler that has fields of its own, unless its configuration has one.
pub(super) fn of_handler<P: Policy>(fields: &mut Fields<'_>, configured: Option<P>, config: &str) -> P {
    if let Some(policy) = configured {
        let reason = format!("`{config}.retryPolicy` says how often to try");
        fields.misplaced(&["retries", "retryPolicy"], &reason);
        return policy;
    }
    if let Some(policy) = fields.optional("retryPolicy", P::read) {
        fields.misplaced(&["retries"], "`retryPolicy` says how often to try");
        return policy;
    }
    let retries = fields.with_default("retries", |cursor| cursor.number(0, 10), 0);
    P::attempts(retries + 1)
}

impl Policy for RetryPolicy {
    fn attempts(max_attempts: u32) -> Self {
        Self::attempts(max_attempts)
    }

    fn read(cursor: Cursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let default = Self::attempts(1);
        let status =
            |cursor: Cursor<'_>| cursor.number(100, 599).and_then(|status| u16::try_from(status).ok());
        let backoff = backoff(&mut fields);
        let retry_on = fields.with_default("retryOn", |cursor| cursor.list(status), default.retry_on);
        let retry_on_network_error =
            fields.with_default("retryOnNetworkError", Cursor::flag, default.retry_on_network_error);
        let respect_retry_after =
            fields.with_default("respectRetryAfter", Cursor::flag, default.respect_retry_after);
        fields.finish();
        let Backoff { max_attempts, initial_backoff, backoff_multiplier, max_backoff } = backoff?;
        Some(Self {
            max_attempts,
            initial_backoff,
            backoff_multiplier,
            max_backoff,
            retry_on,
            retry_on_network_error,
            respect_retry_after,
        })
    }
}

impl Policy for GrpcRetryPolicy {
    fn attempts(max_attempts: u32) -> Self {
        Self::attempts(max_attempts)
    }

    fn read(cursor: Cursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let backoff = backoff(&mut fields);
        let retryable_status_codes = fields.with_default(
            "retryableStatusCodes",
            |cursor| cursor.list(|item| item.choice(&GRPC_STATUS)),
            Self::attempts(1).retryable_status_codes,
        );
        fields.finish();
        let Backoff { max_attempts, initial_backoff, backoff_multiplier, max_backoff } = backoff?;
        Some(Self { max_attempts, initial_backoff, backoff_multiplier, max_backoff, retryable_status_codes })
    }
}

/// What every policy says.
struct Backoff {
    max_attempts: u32,
    initial_backoff: Duration,
    backoff_multiplier: f64,
    max_backoff: Duration,
}

fn backoff(fields: &mut Fields<'_>) -> Option<Backoff> {
    let max_attempts = fields.required("maxAttempts", |cursor| cursor.number(1, 10));
    let default = RetryPolicy::attempts(1);
    let initial_backoff = fields.with_default("initialBackoff", Cursor::duration, default.initial_backoff);
    let backoff_multiplier = fields.with_default(
        "backoffMultiplier",
        |cursor| cursor.parse(forms::multiplier),
        default.backoff_multiplier,
    );
    let max_backoff = fields.with_default("maxBackoff", Cursor::duration, default.max_backoff);
    Some(Backoff { max_attempts: max_attempts?, initial_backoff, backoff_multiplier, max_backoff })
}
