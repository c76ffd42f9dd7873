//! Leaves alone what keeps failing.
//!
//! A backend has one for each tool, around all the attempts of a call: see [`crate::retry`] for why it is not
//! a layer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Code, ToolError};

/// How many calls in a row have to fail.
const FAILURES: u32 = 5;

/// How long calls are refused then, before one of them may try.
const OPEN: Duration = Duration::from_secs(30);

/// Refuses calls after several in a row have failed, and lets single ones try whether that is over.
#[derive(Debug, Default)]
pub struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Calls pass. So many have failed since the last success.
    Closed(u32),
    /// Calls are refused until then.
    Open(Instant),
    /// One call passes, and decides.
    Probing,
}

impl Default for State {
    fn default() -> Self {
        Self::Closed(0)
    }
}

impl Breaker {
    /// Runs `work`, and remembers how it went. Work that is dropped after `deadline` has failed; before, it was
    /// withdrawn, which says nothing.
    ///
    /// # Errors
    /// [`Code::Unavailable`] without running it, while the breaker is open.
    pub async fn run<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> Result<T, ToolError> {
        let mut pass = self.enter(deadline)?;
        let outcome = work.await;
        pass.failed = Some(failed(&outcome));
        Ok(outcome)
    }

    fn enter(&self, deadline: Option<Instant>) -> Result<Pass<'_>, ToolError> {
        let mut state = self.state();
        let probe = match *state {
            State::Closed(_) => false,
            State::Open(until) if until <= Instant::now() => {
                *state = State::Probing;
                true
            }
            State::Open(_) | State::Probing => {
                return Err(ToolError::new(
                    Code::Unavailable,
                    "The tool failed several times in a row, and is left alone for a while",
                )
                .unsent());
            }
        };
        Ok(Pass { breaker: self, probe, deadline, failed: None })
    }

    fn settle(&self, probe: bool, failed: Option<bool>) {
        let mut state = self.state();
        *state = match (*state, failed) {
            (State::Closed(failures), Some(true)) if failures + 1 < FAILURES => State::Closed(failures + 1),
            (State::Closed(_), Some(true)) => State::Open(Instant::now() + OPEN),
            (State::Closed(_), Some(false)) => State::Closed(0),
            (State::Probing, Some(true)) if probe => State::Open(Instant::now() + OPEN),
            (State::Probing, Some(false)) if probe => State::Closed(0),
            // The next one may try instead.
            (State::Probing, None) if probe => State::Open(Instant::now()),
            // A call that began before all this.
            (state, _) => state,
        };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was let through. It settles when it is dropped, which is also how a withdrawn call ends.
struct Pass<'a> {
    breaker: &'a Breaker,
    probe: bool,
    deadline: Option<Instant>,
    failed: Option<bool>,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        self.breaker.settle(self.probe, self.failed.or(late.then_some(true)));
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::{advance, timeout};

    use super::*;

    /// Makes calls that fail (`x`), succeed (`.`), are withdrawn (`w`) or run out of time (`t`); `+` lets 30 s
    /// pass. Gives which of them were let through.
    async fn check(script: &str, expect: &str) {
        let breaker = Breaker::default();
        let mut passed = String::new();
        for step in script.chars() {
            let late = || Some(Instant::now() + Duration::from_millis(1));
            let refused = match step {
                '+' => {
                    advance(OPEN).await;
                    passed.push('+');
                    continue;
                }
                'w' => timeout(Duration::ZERO, breaker.run(None, pending::<()>(), |()| true)).await,
                't' => {
                    timeout(Duration::from_millis(2), breaker.run(late(), pending::<()>(), |()| false)).await
                }
                step => Ok(breaker.run(None, ready(()), |()| step == 'x').await),
            };
            passed.push(if matches!(refused, Ok(Err(_))) { '-' } else { step });
        }
        assert_eq!(passed, expect, "{script}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_five_failures_in_a_row() {
        check("xxxx.xxxx.", "xxxx.xxxx.").await;
        check("xxxxx..x", "xxxxx---").await;
        check("xxwxxwx.", "xxwxxwx-").await;
        check("ttttt.", "ttttt-").await;
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
        let breaker = Breaker::default();
        let fail = || breaker.run(None, ready(()), |()| true);
        let mut early = breaker.enter(None).unwrap();
        for _ in 0..FAILURES {
            fail().await.unwrap();
        }
        advance(OPEN).await;
        let probe = breaker.enter(None).unwrap();
        assert_eq!(fail().await.unwrap_err().code(), Code::Unavailable);
        // What began before decides nothing.
        early.failed = Some(false);
        drop(early);
        assert!(fail().await.is_err());
        drop(probe);
        assert!(fail().await.is_ok());
    }
}
