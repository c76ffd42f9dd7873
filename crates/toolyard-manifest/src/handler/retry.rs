//! When what failed is tried again.

use std::time::Duration;

/// When and how often something that failed is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// `maxAttempts`: how often it is tried in all.
    pub max_attempts: u32,
    /// `initialBackoff`: the wait before the second attempt. 100 ms.
    pub initial_backoff: Duration,
    /// `backoffMultiplier`: how much longer each further wait is. 2.
    pub backoff_multiplier: f64,
    /// `maxBackoff`: no wait is longer. 30 s.
    pub max_backoff: Duration,
}

impl RetryPolicy {
    /// The policy of so many attempts, and the defaults of the contract.
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
