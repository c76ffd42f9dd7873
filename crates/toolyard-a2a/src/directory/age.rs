//! Times as a model reads them.

use std::time::Duration;

use super::KnownAgent;
use std::time::SystemTime;

/// Returns an age such as `5m ago`.
#[must_use]
pub fn age(age: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match age.as_secs() {
        ..MINUTE => "just now".to_owned(),
        seconds @ MINUTE..HOUR => format!("{}m ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{}h ago", seconds / HOUR),
        seconds => format!("{}d ago", seconds / DAY),
    }
}

/// Returns the time at which an agent was last seen.
#[must_use]
pub fn last_seen(agent: &KnownAgent, now: SystemTime) -> String {
    let age = agent.last_seen.map(|seen| age(now.duration_since(seen).unwrap_or_default()));
    match (age, agent.is_well_known) {
        (Some(age), false) => age,
        (Some(age), true) => format!("{age} (well-known)"),
        (None, _) => "well-known (not yet seen this session)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let check = |seconds: u64, expected: &str| assert_eq!(age(Duration::from_secs(seconds)), expected);
        check(0, "just now");
        check(59, "just now");
        check(60, "1m ago");
        check(3_599, "59m ago");
        check(3_600, "1h ago");
        check(86_399, "23h ago");
        check(86_400, "1d ago");
        check(864_000, "10d ago");
    }
}
