//! How often somebody may call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lets through so many in a period, evenly: a whole period's worth at once, then one at a time as time passes. It is
/// counted by each gateway for itself.
#[derive(Debug)]
pub(super) struct Rate {
    /// The time that one takes up.
    each: Duration,
    /// How far ahead of time one may be.
    period: Duration,
    /// When the time that was taken up is over.
    taken_until: Mutex<Instant>,
}

impl Rate {
    /// `millionths` of one in each `period`, which is more than none.
    pub(super) fn new(millionths: u64, period: Duration) -> Self {
        let nanos = period.as_nanos() * 1_000_000 / u128::from(millionths.max(1));
        let each = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Self { each, period: period.max(each), taken_until: Mutex::new(Instant::now()) }
    }

    /// Lets one through.
    ///
    /// # Errors
    /// Says how long to wait before it is worth another try.
    pub(super) fn take(&self) -> Result<(), Duration> {
        let now = Instant::now();
        let mut taken_until = self.taken_until.lock().unwrap_or_else(PoisonError::into_inner);
        let until = (*taken_until).max(now) + self.each;
        let ahead = until - now;
        if ahead > self.period {
            return Err(ahead - self.period);
        }
        *taken_until = until;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_period_at_once_and_then_one_at_a_time() {
        let check = async |millionths: u64, at_once: u32, wait: u64| {
            let rate = Rate::new(millionths, Duration::from_secs(1));
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
