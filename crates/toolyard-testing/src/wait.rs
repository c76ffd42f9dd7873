//! Waiting for conditions. The time limit is for failed tests only.

use std::time::{Duration, Instant};

/// Time limit of any wait, generous enough for a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Polls until `attempt` returns a value.
#[track_caller]
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Polls until the condition holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Polls until the condition holds, while other tasks run. The limit is one of real time, also if the time of tokio is
/// paused.
pub async fn until_async(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        // As short as the timer allows: some tests act on what lasts for a moment.
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
}
