//! Trying again what may succeed the next time.
//!
//! This stands in backends rather than in a layer around them. Only who speaks the protocol can tell what may
//! be repeated, and when: a status, a `Retry-After`, a broken connection. On the outside a 404 and a 503 are
//! both results of a tool that failed.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How often and after which waits something is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// How often it is tried in all; the first time counts.
    pub attempts: u32,
    /// The wait before the second attempt.
    pub initial_backoff: Duration,
    /// How much longer each further wait is.
    pub multiplier: f64,
    /// No wait is longer, whoever asks for it.
    pub max_backoff: Duration,
}

/// What to make of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts, as a success or as a failure that the next attempt would only repeat.
    Final,
    /// The next one may succeed.
    Again {
        /// What the other side said about when.
        wait: Option<Duration>,
    },
}

/// What came of it in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried<T> {
    /// What the last attempt gave.
    pub last: T,
    /// How many there were.
    pub attempts: u32,
    /// Whether it was given up: another attempt might have succeeded.
    pub exhausted: bool,
}

/// How much a wait is shortened or lengthened at random, so that those who failed together do not come back
/// together.
const JITTER: f64 = 0.1;

impl Retry {
    /// One attempt.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            attempts: 1,
            initial_backoff: Duration::from_millis(100),
            multiplier: 2.0,
            max_backoff: Duration::from_secs(30),
        }
    }

    /// The longest that everything may take where one attempt takes at most `attempt`.
    #[must_use]
    pub fn budget(&self, attempt: Duration) -> Duration {
        let attempts = self.attempts.max(1);
        let waits = self.max_backoff.saturating_mul(attempts - 1);
        attempt.saturating_mul(attempts).saturating_add(waits)
    }

    /// Makes attempts until one of them is final, or none is left. An attempt that could only begin after
    /// `deadline` is not made: who waits would not hear of it.
    pub async fn run<T, F: Future<Output = T>>(
        &self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> F,
        judge: impl Fn(&T) -> Verdict,
    ) -> Tried<T> {
        let mut attempts = 1;
        loop {
            let last = attempt().await;
            let Verdict::Again { wait } = judge(&last) else {
                return Tried { last, attempts, exhausted: false };
            };
            let next = Instant::now().checked_add(self.wait(attempts, wait, jitter()));
            let in_time = next.is_some_and(|next| deadline.is_none_or(|deadline| next < deadline));
            match next.filter(|_| in_time && attempts < self.attempts) {
                Some(next) => sleep_until(next).await,
                None => return Tried { last, attempts, exhausted: true },
            }
            attempts += 1;
        }
    }

    /// How long to wait after the given number of attempts.
    fn wait(&self, attempts: u32, asked: Option<Duration>, jitter: f64) -> Duration {
        let longest = self.max_backoff.as_secs_f64();
        let exponent = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
        let wait =
            self.initial_backoff.as_secs_f64() * self.multiplier.powi(exponent) * (1.0 + JITTER * jitter);
        let wait = wait.max(asked.unwrap_or_default().as_secs_f64());
        // What is no number, or none that a duration can be, is longer than the longest.
        Duration::try_from_secs_f64(wait.min(longest)).unwrap_or(self.max_backoff)
    }
}

/// Between -1 and 1. Where the system gives no random number the waits are even, which harms nobody.
fn jitter() -> f64 {
    getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX) * 2.0 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy(attempts: u32) -> Retry {
        Retry { attempts, initial_backoff: SECOND, multiplier: 2.0, max_backoff: 5 * SECOND }
    }

    /// Runs attempts that are judged as told, the last one for good. Gives when they were made, in
    /// milliseconds with the jitter rounded off, and whether it was given up.
    async fn run(
        policy: Retry,
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
                    None => Verdict::Final,
                    Some(wait) => Verdict::Again { wait: wait.map(Duration::from_secs) },
                },
            )
            .await;
        assert_eq!((tried.last, tried.attempts as usize), (times.len(), times.len()));
        (times, tried.exhausted)
    }

    /// Whether times are what was planned, give or take the jitter of each wait.
    #[track_caller]
    fn check((times, exhausted): (Vec<u64>, bool), planned: &[u64], expect_exhausted: bool) {
        assert_eq!(exhausted, expect_exhausted);
        assert_eq!(times.len(), planned.len(), "{times:?}");
        for (time, planned) in times.iter().zip(planned) {
            assert!(time.abs_diff(*planned) <= planned / 10 + 1, "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_up_to_a_bound() {
        check(run(policy(1), None, &[Some(None)]).await, &[0], true);
        check(run(policy(3), None, &[None]).await, &[0], false);
        check(run(policy(3), None, &[Some(None), None]).await, &[0, 1000], false);
        check(run(policy(6), None, &[Some(None)]).await, &[0, 1000, 3000, 7000, 12000, 17000], true);
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_side_may_ask_for_a_longer_wait() {
        check(run(policy(2), None, &[Some(Some(3))]).await, &[0, 3000], true);
        check(run(policy(2), None, &[Some(Some(0))]).await, &[0, 1000], true);
        check(run(policy(2), None, &[Some(Some(3600))]).await, &[0, 5000], true);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_after_the_deadline() {
        check(run(policy(9), Some(4 * SECOND), &[Some(None)]).await, &[0, 1000, 3000], true);
        check(run(policy(9), Some(Duration::ZERO), &[Some(None)]).await, &[0], true);
    }

    #[test]
    fn odd_policies_do_no_harm() {
        let odd = Retry { multiplier: f64::INFINITY, initial_backoff: Duration::MAX, ..policy(u32::MAX) };
        assert_eq!(odd.wait(u32::MAX, Some(Duration::MAX), 1.0), 5 * SECOND);
        assert_eq!(Retry { multiplier: f64::NAN, ..odd }.wait(3, None, 0.0), Duration::ZERO);
        assert_eq!(Retry { max_backoff: Duration::MAX, ..odd }.wait(9, None, 0.0), Duration::MAX);
        assert_eq!(odd.budget(Duration::MAX), Duration::MAX);
        assert_eq!(policy(3).budget(SECOND), 13 * SECOND);
    }
}
