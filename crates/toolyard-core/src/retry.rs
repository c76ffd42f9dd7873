//! Retries with backoff.
//!
//! Retries are part of the backends rather than a layer around them. Only the protocol shows what may be repeated, and
//! when: a status, a `Retry-After`, a broken connection. From the outside a 404 and a 503 are both results of a failed
//! tool.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Number and delays of attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrySchedule {
    /// Maximum number of attempts, including the first.
    pub attempts: u32,
    /// Delay before the second attempt.
    pub initial_backoff: Duration,
    /// Factor of each further delay.
    pub multiplier: f64,
    /// Maximum delay, also for delays that the server asks for.
    pub max_backoff: Duration,
}

/// The verdict about one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// A success, or a failure that a further attempt would repeat.
    Final,
    /// A further attempt may succeed.
    Again {
        /// Delay that the server asked for.
        wait: Option<Duration>,
    },
}

/// The result of all attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOutcome<T> {
    /// Result of the last attempt.
    pub last: T,
    /// Number of attempts.
    pub attempts: u32,
    /// `true` if attempts ran out: a further one might have succeeded.
    pub exhausted: bool,
}

/// Random part of each delay, so that clients that failed together do not return together.
const JITTER: f64 = 0.1;

impl RetrySchedule {
    /// Returns a schedule with one attempt.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            attempts: 1,
            initial_backoff: Duration::from_millis(100),
            multiplier: 2.0,
            max_backoff: Duration::from_secs(30),
        }
    }

    /// Returns the maximum time of all attempts and delays if one attempt takes at most `attempt`.
    #[must_use]
    pub fn budget(&self, attempt: Duration) -> Duration {
        let attempts = self.attempts.max(1);
        let waits = self.max_backoff.saturating_mul(attempts - 1);
        attempt.saturating_mul(attempts).saturating_add(waits)
    }

    /// Makes attempts until one is final or none is left. An attempt that could only begin after `deadline` is not
    /// made: the caller would not see its result.
    pub async fn run<T, F: Future<Output = T>>(
        &self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> F,
        judge: impl Fn(&T) -> AttemptVerdict,
    ) -> RetryOutcome<T> {
        let mut attempts = 1;
        loop {
            let last = attempt().await;
            let AttemptVerdict::Again { wait } = judge(&last) else {
                return RetryOutcome { last, attempts, exhausted: false };
            };
            let next = Instant::now().checked_add(self.wait(attempts, wait, jitter()));
            let in_time = next.is_some_and(|next| deadline.is_none_or(|deadline| next < deadline));
            match next.filter(|_| in_time && attempts < self.attempts) {
                Some(next) => sleep_until(next).await,
                None => return RetryOutcome { last, attempts, exhausted: true },
            }
            attempts += 1;
        }
    }

    /// Returns the delay after the given number of attempts.
    fn wait(&self, attempts: u32, asked: Option<Duration>, jitter: f64) -> Duration {
        let longest = self.max_backoff.as_secs_f64();
        let exponent = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
        let wait =
            self.initial_backoff.as_secs_f64() * self.multiplier.powi(exponent) * (1.0 + JITTER * jitter);
        let wait = wait.max(asked.unwrap_or_default().as_secs_f64());
        // Not a number, or out of range for a duration: longer than the longest.
        Duration::try_from_secs_f64(wait.min(longest)).unwrap_or(self.max_backoff)
    }
}

/// Returns a random number between -1 and 1; 0 if the system has no randomness.
fn jitter() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX) * 2.0 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy(attempts: u32) -> RetrySchedule {
        RetrySchedule { attempts, initial_backoff: SECOND, multiplier: 2.0, max_backoff: 5 * SECOND }
    }

    /// Runs attempts with the given verdicts, the last one repeatedly. Returns their times in milliseconds with the
    /// jitter rounded off, and whether attempts ran out.
    async fn run(
        policy: RetrySchedule,
        deadline: Option<Duration>,
        verdicts: &[Option<Option<u64>>],
    ) -> (Vec<u64>, bool) {
        let start = Instant::now();
        let mut times = Vec::new();
        let tried = policy
            .run(
                deadline.map(|deadline| start + deadline),
                || {
                    times.push(u64::try_from(start.elapsed().as_millis()).unwrap());
                    std::future::ready(times.len())
                },
                |made| match verdicts[(made - 1).min(verdicts.len() - 1)] {
                    None => AttemptVerdict::Final,
                    Some(wait) => AttemptVerdict::Again { wait: wait.map(Duration::from_secs) },
                },
            )
            .await;
        assert_eq!((tried.last, tried.attempts as usize), (times.len(), times.len()));
        (times, tried.exhausted)
    }

    /// Compares times with the planned ones, with tolerance for the jitter.
    #[track_caller]
    fn check((times, exhausted): (Vec<u64>, bool), planned: &[u64], expect_exhausted: bool) {
        assert_eq!(exhausted, expect_exhausted);
        assert_eq!(times.len(), planned.len(), "{times:?}");
        for (time, planned) in times.iter().zip(planned) {
            assert!(time.abs_diff(*planned) <= planned / 10 + 1, "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_up_to_the_maximum() {
        check(run(policy(1), None, &[Some(None)]).await, &[0], true);
        check(run(policy(3), None, &[None]).await, &[0], false);
        check(run(policy(3), None, &[Some(None), None]).await, &[0, 1000], false);
        check(run(policy(6), None, &[Some(None)]).await, &[0, 1000, 3000, 7000, 12000, 17000], true);
    }

    #[tokio::test(start_paused = true)]
    async fn server_may_request_a_longer_wait() {
        check(run(policy(2), None, &[Some(Some(3))]).await, &[0, 3000], true);
        check(run(policy(2), None, &[Some(Some(0))]).await, &[0, 1000], true);
        check(run(policy(2), None, &[Some(Some(3600))]).await, &[0, 5000], true);
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_starts_after_the_deadline() {
        check(run(policy(9), Some(4 * SECOND), &[Some(None)]).await, &[0, 1000, 3000], true);
        check(run(policy(9), Some(Duration::ZERO), &[Some(None)]).await, &[0], true);
    }

    #[test]
    fn extreme_schedules_are_harmless() {
        let odd =
            RetrySchedule { multiplier: f64::INFINITY, initial_backoff: Duration::MAX, ..policy(u32::MAX) };
        assert_eq!(odd.wait(u32::MAX, Some(Duration::MAX), 1.0), 5 * SECOND);
        assert_eq!(RetrySchedule { multiplier: f64::NAN, ..odd }.wait(3, None, 0.0), Duration::ZERO);
        assert_eq!(RetrySchedule { max_backoff: Duration::MAX, ..odd }.wait(9, None, 0.0), Duration::MAX);
        assert_eq!(odd.budget(Duration::MAX), Duration::MAX);
        assert_eq!(policy(3).budget(SECOND), 13 * SECOND);
    }
}
