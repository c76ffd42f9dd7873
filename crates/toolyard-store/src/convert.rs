//! Between what the ports speak of and what databases keep.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => span(since),
        Err(before) => -span(before.duration()),
    }
}

/// Milliseconds of a span; those of one that is longer than there will be time, the most there can be.
pub(crate) fn span(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The time of so many milliseconds since 1970.
pub(crate) fn time(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    // Nothing that was put has such a time: the system's own reaches further.
    time.unwrap_or(UNIX_EPOCH)
}

/// A number that a database has given: it counts from one.
pub(crate) const fn number(kept: i64) -> u64 {
    kept.unsigned_abs()
}

/// A number as a database compares it: one that is too large is larger than all that it has given.
pub(crate) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many rows at most.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Which keys a list is about: from the first on, and before the end where there is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) from: String,
    pub(crate) end: Option<String>,
}

impl Keys {
    /// Those that begin with `prefix` and come behind `after`.
    pub(crate) fn of(prefix: &str, after: Option<&str>) -> Self {
        // No text stands between another one and the same with a NUL behind it.
        let behind = after.map(|after| format!("{after}\0")).unwrap_or_default();
        Self { from: behind.max(prefix.to_owned()), end: end(prefix) }
    }
}

/// The first text that comes behind all that begin with `prefix`, if any does. UTF-8 is ordered as its characters are.
fn end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // `RangeFrom` knows the gap in the numbers of characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_to_the_millisecond() {
        for kept in [0, 1, -1, 1_700_000_000_123, -5_000_000_000] {
            assert_eq!(millis(time(kept)), kept);
        }
        assert_eq!(millis(UNIX_EPOCH + Duration::from_micros(1999)), 1);
        assert_eq!(span(Duration::MAX), i64::MAX);
    }

    #[test]
    fn the_keys_of_a_list() {
        let check = |prefix, after, from: &str, end: Option<&str>| {
            assert_eq!(Keys::of(prefix, after), Keys { from: from.to_owned(), end: end.map(str::to_owned) });
        };
        check("", None, "", None);
        check("a", None, "a", Some("b"));
        check("a", Some("ab"), "ab\0", Some("b"));
        check("b", Some("a"), "b", Some("c"));
        check("a\u{D7FF}", None, "a\u{D7FF}", Some("a\u{E000}"));
        check("a\u{10FFFF}", None, "a\u{10FFFF}", Some("b"));
        check("\u{10FFFF}", None, "\u{10FFFF}", None);
    }
}
