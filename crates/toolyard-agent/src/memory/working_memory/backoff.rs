//! The wait between two attempts to change what others change concurrently.

use std::time::Duration;

use tokio::time::sleep;

/// Maximum time between two attempts.
const MAX_BACKOFF: Duration = Duration::from_millis(64);

/// Waits after an attempt, for a random time, so that the same callers do not meet again.
pub(super) async fn backoff(attempt: usize) {
    let most = MAX_BACKOFF.min(Duration::from_millis(1 << attempt.min(10)));
    let random = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
    sleep(most.mul_f64(random)).await;
}
