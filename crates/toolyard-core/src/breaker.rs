//! A circuit breaker for upstreams that keep failing.
//!
//! A backend has one for its service, around all attempts of a call: [`crate::retry`] explains why it is not a layer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::CallTimeLimit;
use crate::error::{ErrorCode, ToolError};

/// Number of consecutive failures that opens the breaker.
const FAILURES: u32 = 5;

/// Time for which calls are refused before one of them may probe.
const OPEN: Duration = Duration::from_secs(30);

/// Refuses calls after several consecutive failures, and lets single calls probe for recovery.
#[derive(Debug, Default)]
pub struct CircuitBreaker {
    state: Mutex<BreakerState>,
}

#[derive(Debug, Clone, Copy)]
enum BreakerState {
    /// Calls pass. The number of failures since the last success.
    Closed(u32),
    /// Calls are refused until this time.
    Open(Instant),
    /// One call passes, and decides.
    Probing,
}

impl Default for BreakerState {
    fn default() -> Self {
        Self::Closed(0)
    }
}

impl CircuitBreaker {
    /// Runs `work` and records its result. Work that is dropped at its time limit has failed; work that is dropped
    /// before was cancelled, which does not count. Neither does a failure at a time limit that the caller chose.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`] without running it, while the breaker is open.
    pub async fn run<T>(
        &self,
        limit: CallTimeLimit,
        work: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> Result<T, ToolError> {
        let mut pass = self.enter(limit)?;
        let outcome = work.await;
        pass.failed = Some(failed(&outcome));
        Ok(outcome)
    }

    /// Returns `true` while calls are refused.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match *self.state() {
            BreakerState::Open(until) => until > Instant::now(),
            BreakerState::Closed(_) | BreakerState::Probing => false,
        }
    }

    fn enter(&self, limit: CallTimeLimit) -> Result<BreakerPass<'_>, ToolError> {
        let mut state = self.state();
        let probe = match *state {
            BreakerState::Closed(_) => false,
            BreakerState::Open(until) if until <= Instant::now() => {
                *state = BreakerState::Probing;
                true
            }
            BreakerState::Open(_) | BreakerState::Probing => {
                return Err(ToolError::new(
                    ErrorCode::Unavailable,
                    "The tool failed several times in a row, and is left alone for a while",
                )
                .unsent());
            }
        };
        Ok(BreakerPass { breaker: self, probe, limit, failed: None })
    }

    fn settle(&self, probe: bool, failed: Option<bool>) {
        let mut state = self.state();
        *state = match (*state, failed) {
            (BreakerState::Closed(failures), Some(true)) if failures + 1 < FAILURES => {
                BreakerState::Closed(failures + 1)
            }
            (BreakerState::Closed(_), Some(true)) => BreakerState::Open(Instant::now() + OPEN),
            (BreakerState::Closed(_), Some(false)) => BreakerState::Closed(0),
            (BreakerState::Probing, Some(true)) if probe => BreakerState::Open(Instant::now() + OPEN),
            (BreakerState::Probing, Some(false)) if probe => BreakerState::Closed(0),
            // The next call may probe instead.
            (BreakerState::Probing, None) if probe => BreakerState::Open(Instant::now()),
            // The call began before the breaker changed.
            (state, _) => state,
        };
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was let through. It settles when it is dropped, which is also the end of a cancelled call.
struct BreakerPass<'a> {
    breaker: &'a CircuitBreaker,
    probe: bool,
    limit: CallTimeLimit,
    failed: Option<bool>,
}

impl Drop for BreakerPass<'_> {
    fn drop(&mut self) {
        let failed = match self.failed {
            Some(false) => Some(false),
            _ if self.limit.is_cut_by_caller() => None,
            failed => failed.or(self.limit.is_over().then_some(true)),
        };
        self.breaker.settle(self.probe, failed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::{advance, sleep, timeout};

    use super::*;

    /// Makes calls that fail (`x`), succeed (`.`), are cancelled (`w`), or run out of the handler's time (`t`) or of
    /// the caller's, in which they are dropped (`c`) or fail (`d`); `+` advances 30 s.
    /// Compares the calls that were let through.
    async fn check(script: &str, expect: &str) {
        let breaker = CircuitBreaker::default();
        let mut passed = String::new();
        for step in script.chars() {
            let at = Some(Instant::now() + Duration::from_millis(1));
            let late = CallTimeLimit { at, is_of_caller: "cd".contains(step) };
            let none = CallTimeLimit::default();
            let refused = match step {
                '+' => {
                    advance(OPEN).await;
                    passed.push('+');
                    continue;
                }
                'w' => timeout(Duration::ZERO, breaker.run(none, pending::<()>(), |()| true)).await,
                't' | 'c' => {
                    timeout(Duration::from_millis(2), breaker.run(late, pending::<()>(), |()| false)).await
                }
                'd' => Ok(breaker.run(late, sleep(Duration::from_millis(2)), |()| true).await),
                step => Ok(breaker.run(none, ready(()), |()| step == 'x').await),
            };
            passed.push(if matches!(refused, Ok(Err(_))) { '-' } else { step });
        }
        assert_eq!(passed, expect, "{script}");
    }

    #[tokio::test(start_paused = true)]
    async fn breaker_opens_after_five_failures_in_a_row() {
        check("xxxx.xxxx.", "xxxx.xxxx.").await;
        check("xxxxx..x", "xxxxx---").await;
        check("xxwxxwx.", "xxwxxwx-").await;
        check("ttttt.", "ttttt-").await;
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_of_a_caller_does_not_count() {
        check("cccccc.", "cccccc.").await;
        check("dddddd.", "dddddd.").await;
        check("xxxxcdx.", "xxxxcdx-").await;
        check("xxxxx+dx.", "xxxxx+dx-").await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_probes_after_a_while() {
        check("xxxxx+..xxxx.", "xxxxx+..xxxx.").await;
        check("xxxxx+x.+.x.", "xxxxx+x-+.x.").await;
        check("xxxxx+w.", "xxxxx+w.").await;
        check("xxxxx+wwx.", "xxxxx+wwx-").await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_one_probes_at_a_time() {
        let breaker = CircuitBreaker::default();
        let none = CallTimeLimit::default();
        let fail = || breaker.run(none, ready(()), |()| true);
        let mut early = breaker.enter(none).unwrap();
        for _ in 0..FAILURES {
            fail().await.unwrap();
        }
        advance(OPEN).await;
        let probe = breaker.enter(none).unwrap();
        assert_eq!(fail().await.unwrap_err().code(), ErrorCode::Unavailable);
        // A call that started before the state changed does not count.
        early.failed = Some(false);
        drop(early);
        assert!(fail().await.is_err());
        drop(probe);
        assert!(fail().await.is_ok());
    }
}
