//! Retry policies.

use std::time::Duration;

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
