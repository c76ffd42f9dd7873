//! Retry policies: `retries` and `retryPolicy`.
//!
//! The author decides whether requests may be repeated: with either field the author declares that the server tolerates
//! repetition of any request.

use std::time::Duration;

use crate::{cursor::ValueCursor, fields::ObjectFields, formats};

/// Number of attempts and backoff of retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// `maxAttempts`: total number of attempts.
    pub max_attempts: u32,
    /// `initialBackoff`: the wait before the second attempt. Default: 100 ms.
    pub initial_backoff: Duration,
    /// `backoffMultiplier`: the factor between two waits. Default: 2.
    pub backoff_multiplier: f64,
    /// `maxBackoff`: the longest wait. Default: 30 s.
    pub max_backoff: Duration,
}

/// The retry policy of HTTP requests.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRetry {
    /// Number of attempts and backoff.
    pub policy: RetryPolicy,
    /// `retryOn`: the retryable status codes. Default: 408, 429, 500, 502, 503, 504.
    pub retry_on: Vec<u16>,
    /// `retryOnNetworkError`: retry if there is no response, or none in time. Default: true.
    pub retry_on_network_error: bool,
    /// `respectRetryAfter`: honour a longer wait that the server requests. Default: true.
    pub respect_retry_after: bool,
}

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Returns a policy with a number of attempts and the defaults of the contract.
    #[must_use]
    pub const fn attempts(max_attempts: u32) -> Self {
        Self {
            max_attempts,
            initial_backoff: Duration::from_millis(100),
            backoff_multiplier: 2.0,
            max_backoff: Duration::from_secs(30),
        }
    }
}

// === impl HttpRetry ===

/// Applies the defaults for HTTP, which the contract does not define.
impl From<RetryPolicy> for HttpRetry {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            policy,
            retry_on: vec![408, 429, 500, 502, 503, 504],
            retry_on_network_error: true,
            respect_retry_after: true,
        }
    }
}

// === readers ===

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

/// Reads the fields that all policies have.
pub(super) fn common_fields(fields: &mut ObjectFields<'_>) -> Option<RetryPolicy> {
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
