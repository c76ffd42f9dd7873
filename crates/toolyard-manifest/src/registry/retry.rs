//! The readers of `retries` and `retryPolicy`.
//!
//! The author decides whether requests may be repeated: with either field the author declares that the server tolerates
//! repetition of any request.

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats,
    handler::{GrpcRetry, HttpRetry, RetryPolicy},
};

/// The status codes of gRPC (grpc.io, "Status codes and their use in gRPC"), without OK: successful requests are not
/// repeated.
const GRPC_STATUS: KeywordChoice<&str> = KeywordChoice {
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
    unsupported: &[],
};

/// Fields that only apply to responses of HTTP endpoints.
const RESPONSE_FIELDS: &[&str] = &["retryOn", "retryOnNetworkError", "respectRetryAfter"];

/// A retry policy of a type of handler.
pub(super) trait ReadRetryPolicy: From<RetryPolicy> {
    /// Reads the object `retryPolicy`.
    fn read(cursor: ValueCursor<'_>) -> Option<Self>;
}

/// Returns the policy of the configuration, or else reads the handler's own fields.
pub(super) fn handler_retry<P: ReadRetryPolicy>(
    fields: &mut ObjectFields<'_>,
    configured: Option<P>,
    config: &str,
) -> P {
    if let Some(policy) = configured {
        let reason = format!("`{config}.retryPolicy` already sets the attempts");
        fields.reject_misplaced(&["retries", "retryPolicy"], &reason);
        return policy;
    }
    if let Some(policy) = fields.optional("retryPolicy", P::read) {
        fields.reject_misplaced(&["retries"], "`retryPolicy` already sets the attempts");
        return policy;
    }
    let retries = fields.with_default("retries", |cursor| cursor.number(0, 10), 0);
    RetryPolicy::attempts(retries + 1).into()
}

/// The policy of MCP servers and functions. Their transport interprets status codes.
impl ReadRetryPolicy for RetryPolicy {
    fn read(cursor: ValueCursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = common_fields(&mut fields);
        fields.reject_misplaced(
            RESPONSE_FIELDS,
            "such calls are tried again where the server cannot be reached or the connection breaks, and nowhere \
             else",
        );
        fields.finish();
        policy
    }
}

impl ReadRetryPolicy for HttpRetry {
    fn read(cursor: ValueCursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = common_fields(&mut fields);
        let default = Self::from(RetryPolicy::attempts(1));
        let status =
            |cursor: ValueCursor<'_>| cursor.number(100, 599).and_then(|status| u16::try_from(status).ok());
        let retry_on = fields.with_default("retryOn", |cursor| cursor.list(status), default.retry_on);
        let mut flag = |name, default| fields.with_default(name, ValueCursor::flag, default);
        let retry_on_network_error = flag("retryOnNetworkError", default.retry_on_network_error);
        let respect_retry_after = flag("respectRetryAfter", default.respect_retry_after);
        fields.finish();
        Some(Self { policy: policy?, retry_on, retry_on_network_error, respect_retry_after })
    }
}

impl ReadRetryPolicy for GrpcRetry {
    fn read(cursor: ValueCursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = common_fields(&mut fields);
        let retryable_status_codes = fields.with_default(
            "retryableStatusCodes",
            |cursor| cursor.list(|item| item.choice(&GRPC_STATUS)),
            Self::from(RetryPolicy::attempts(1)).retryable_status_codes,
        );
        fields.finish();
        Some(Self { policy: policy?, retryable_status_codes })
    }
}

/// Reads the fields that all policies have.
fn common_fields(fields: &mut ObjectFields<'_>) -> Option<RetryPolicy> {
    let max_attempts = fields.required("maxAttempts", |cursor| cursor.number(1, 10));
    let default = RetryPolicy::attempts(max_attempts.unwrap_or(1));
    let policy = RetryPolicy {
        initial_backoff: fields.with_default(
            "initialBackoff",
            ValueCursor::duration,
            default.initial_backoff,
        ),
        backoff_multiplier: fields.with_default(
            "backoffMultiplier",
            |cursor| cursor.parse(formats::multiplier),
            default.backoff_multiplier,
        ),
        max_backoff: fields.with_default("maxBackoff", ValueCursor::duration, default.max_backoff),
        ..default
    };
    max_attempts.map(|_| policy)
}
