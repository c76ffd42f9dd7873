//! The readers of `retries` and `retryPolicy`.
//!
//! Whether a request may be sent again is the author's word: who sets either of them says that the server can
//! stand it, whatever the request.

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms,
    handler::{GrpcRetry, HttpRetry, RetryPolicy},
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

/// What only the responses of HTTP endpoints have.
const OF_RESPONSES: &[&str] = &["retryOn", "retryOnNetworkError", "respectRetryAfter"];

/// When and how often a type of handler tries again.
pub(super) trait Policy: From<RetryPolicy> {
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
    RetryPolicy::attempts(retries + 1).into()
}

/// That of an MCP server, and of a function. What a status means there is the transport's business.
impl Policy for RetryPolicy {
    fn read(cursor: Cursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = policy(&mut fields);
        fields.misplaced(
            OF_RESPONSES,
            "such calls are tried again where the server cannot be reached or the connection breaks, and nowhere \
             else",
        );
        fields.finish();
        policy
    }
}

impl Policy for HttpRetry {
    fn read(cursor: Cursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = policy(&mut fields);
        let default = Self::from(RetryPolicy::attempts(1));
        let status =
            |cursor: Cursor<'_>| cursor.number(100, 599).and_then(|status| u16::try_from(status).ok());
        let retry_on = fields.with_default("retryOn", |cursor| cursor.list(status), default.retry_on);
        let mut flag = |name, default| fields.with_default(name, Cursor::flag, default);
        let retry_on_network_error = flag("retryOnNetworkError", default.retry_on_network_error);
        let respect_retry_after = flag("respectRetryAfter", default.respect_retry_after);
        fields.finish();
        Some(Self { policy: policy?, retry_on, retry_on_network_error, respect_retry_after })
    }
}

impl Policy for GrpcRetry {
    fn read(cursor: Cursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = policy(&mut fields);
        let retryable_status_codes = fields.with_default(
            "retryableStatusCodes",
            |cursor| cursor.list(|item| item.choice(&GRPC_STATUS)),
            Self::from(RetryPolicy::attempts(1)).retryable_status_codes,
        );
        fields.finish();
        Some(Self { policy: policy?, retryable_status_codes })
    }
}

/// What every policy says.
fn policy(fields: &mut Fields<'_>) -> Option<RetryPolicy> {
    let max_attempts = fields.required("maxAttempts", |cursor| cursor.number(1, 10));
    let default = RetryPolicy::attempts(max_attempts.unwrap_or(1));
    let policy = RetryPolicy {
        initial_backoff: fields.with_default("initialBackoff", Cursor::duration, default.initial_backoff),
        backoff_multiplier: fields.with_default(
            "backoffMultiplier",
            |cursor| cursor.parse(forms::multiplier),
            default.backoff_multiplier,
        ),
        max_backoff: fields.with_default("maxBackoff", Cursor::duration, default.max_backoff),
        ..default
    };
    max_attempts.map(|_| policy)
}
