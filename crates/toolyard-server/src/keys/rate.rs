//! Rate limits of calls.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A rate limiter: a burst of one period's calls, then calls at even intervals. Each gateway counts for itself.
#[derive(Debug)]
pub(super) struct CallRateLimiter {
    /// Interval between two calls.
    interval: Duration,
    /// Maximum lead over the even pace.
    period: Duration,
    /// Time until which the admitted calls use the rate.
    busy_until: Mutex<Instant>,
}

impl CallRateLimiter {
    /// Creates a limiter of `millionths` of a call in each `period`. `millionths` is positive.
    pub(super) fn new(millionths: u64, period: Duration) -> Self {
        let nanos = period.as_nanos() * 1_000_000 / u128::from(millionths.max(1));
        let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Self { interval, period: period.max(interval), busy_until: Mutex::new(Instant::now()) }
    }

    /// Admits one call.
    ///
    /// # Errors
    /// The time to wait before the next try.
    pub(super) fn take(&self) -> Result<(), Duration> {
        let now = Instant::now();
        let mut busy_until = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
        let until = (*busy_until).max(now) + self.interval;
        let lead = until - now;
        if lead > self.period {
            return Err(lead - self.period);
        }
        *busy_until = until;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn burst_of_a_period_then_even_pace() {
        let check = async |millionths: u64, at_once: u32, wait: u64| {
            let rate = CallRateLimiter::new(millionths, Duration::from_secs(1));
            for number in 0..at_once {
                assert_eq!(rate.take(), Ok(()), "{millionths} {number}");
            }
            let wait = Duration::from_millis(wait);
            assert_eq!(rate.take(), Err(wait), "{millionths}");
            tokio::time::advance(wait).await;
            assert_eq!(rate.take(), Ok(()), "{millionths} after {wait:?}");
            assert!(rate.take().is_err(), "{millionths}");
            tokio::time::advance(Duration::from_secs(100)).await;
            for _ in 0..at_once {
                assert_eq!(rate.take(), Ok(()), "{millionths} after a rest");
            }
            assert!(rate.take().is_err(), "{millionths} after a rest");
        };
        check(10_000_000, 10, 100).await;
        check(1_000_000, 1, 1000).await;
        // One every two seconds.
        check(500_000, 1, 2000).await;
    }
}
