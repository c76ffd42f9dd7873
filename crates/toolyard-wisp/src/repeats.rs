//! The limit of identical wisps, which stops an agent that spawns the same one over and over.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};
use toolyard_core::Caller;

use crate::failure::StepFailure;

/// Maximum number of different wisps whose times are kept. Beyond it, the one that was not spawned for longest is
/// forgotten.
const MAX_WISPS: usize = 10_000;

/// A wisp of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallerWisp {
    /// The caller's key, or else its session.
    caller: Option<String>,
    digest: String,
}

/// Counts identical wisps of each caller.
#[derive(Debug)]
pub struct RepeatLimit {
    most: usize,
    window: Duration,
    times: Mutex<HashMap<CallerWisp, VecDeque<Instant>>>,
}

impl RepeatLimit {
    /// Returns a limit of `most` identical wisps within a time.
    #[must_use]
    pub fn new(most: usize, window: Duration) -> Self {
        Self { most, window, times: Mutex::default() }
    }

    /// Counts a wisp of a caller, by the digest of its definition.
    ///
    /// # Errors
    /// If the caller has spawned it too often. Such a wisp does not count.
    pub fn count(&self, caller: &Caller, digest: &str) -> Result<(), StepFailure> {
        let key = caller.principal.as_deref().or(caller.session.as_deref());
        let wisp = CallerWisp { caller: key.map(str::to_owned), digest: digest.to_owned() };
        let now = Instant::now();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |time: &Instant| now.duration_since(*time) < self.window;
        if times.len() >= MAX_WISPS && !times.contains_key(&wisp) {
            times.retain(|_, times| times.back().is_some_and(is_recent));
            if times.len() >= MAX_WISPS {
                let oldest = times.iter().min_by_key(|(_, times)| times.back().copied());
                if let Some(oldest) = oldest.map(|(wisp, _)| wisp.clone()) {
                    times.remove(&oldest);
                }
            }
        }
        let times = times.entry(wisp).or_default();
        while times.front().is_some_and(|time| !is_recent(time)) {
            times.pop_front();
        }
        if times.len() >= self.most {
            return Err(StepFailure::structural(format!(
                "the same wisp was spawned {} times in {} s: it is stopped. Do not spawn it again: read its earlier outputs, or \
                 change the definition",
                self.most,
                self.window.as_secs()
            )));
        }
        times.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::failure::FailureCategory;

    fn caller(key: &str) -> Caller {
        Caller { principal: Some(key.into()), ..Caller::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn identical_wisps_are_stopped_within_the_window() {
        let window = Duration::from_secs(300);
        let limit = RepeatLimit::new(30, window);
        for _ in 0..30 {
            limit.count(&caller("a"), "d1").expect("within the limit");
        }
        let failure = limit.count(&caller("a"), "d1").expect_err("too often");
        assert_eq!(failure.category, FailureCategory::Structural);
        assert!(failure.message.contains("30 times in 300 s"), "{failure}");
        limit.count(&caller("a"), "d2").expect("another definition");
        limit.count(&caller("b"), "d1").expect("another caller");
        advance(window).await;
        limit.count(&caller("a"), "d1").expect("the window has passed");
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_wisps_is_bounded() {
        let limit = RepeatLimit::new(1, Duration::from_secs(300));
        limit.count(&caller("a"), "first").expect("within the limit");
        for number in 0..MAX_WISPS {
            advance(Duration::from_millis(1)).await;
            limit.count(&caller("a"), &number.to_string()).expect("within the limit");
        }
        assert_eq!(limit.times.lock().expect("no panic").len(), MAX_WISPS);
        limit.count(&caller("a"), "first").expect("forgotten");
    }
}
