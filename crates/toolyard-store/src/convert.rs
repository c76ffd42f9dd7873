//! Conversions between the types of the store traits and the types of the databases.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
pub(crate) fn unix_millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => duration_millis(since),
        Err(before) => -duration_millis(before.duration()),
    }
}

/// Milliseconds of a duration, saturating at `i64::MAX`.
pub(crate) fn duration_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The time that is `millis` milliseconds after the Unix epoch.
pub(crate) fn system_time(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let time = if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    // Cannot overflow for a time that was stored: the range of `SystemTime` is wider.
    time.unwrap_or(UNIX_EPOCH)
}

/// Converts a number that the database assigned; such numbers start at one.
pub(crate) const fn to_unsigned(raw: i64) -> u64 {
    raw.unsigned_abs()
}

/// Converts a number for a comparison; one that is too large compares greater than all that the database assigned.
pub(crate) fn saturating_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row limit as SQL takes it.
pub(crate) fn row_limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// The range of keys that a list covers: from `from` on and, if there is an `end`, before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) from: String,
    pub(crate) end: Option<String>,
}

impl KeyRange {
    /// The keys that begin with `prefix` and sort after `after`.
    pub(crate) fn of(prefix: &str, after: Option<&str>) -> Self {
        // No string sorts between another one and the same with a NUL appended.
        let behind = after.map(|after| format!("{after}\0")).unwrap_or_default();
        Self { from: behind.max(prefix.to_owned()), end: prefix_end(prefix) }
    }
}

/// The first string that sorts after all strings with this prefix, if there is one. UTF-8 sorts by code point.
fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // `RangeInclusive<char>` skips the gap of the surrogates.
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
    fn times_round_trip_to_the_millisecond() {
        for value in [0, 1, -1, 1_700_000_000_123, -5_000_000_000] {
            assert_eq!(unix_millis(system_time(value)), value);
        }
        assert_eq!(unix_millis(UNIX_EPOCH + Duration::from_micros(1999)), 1);
        assert_eq!(duration_millis(Duration::MAX), i64::MAX);
    }

    #[test]
    fn key_range_of_prefix_and_cursor() {
        let check = |prefix, after, from: &str, end: Option<&str>| {
            assert_eq!(
                KeyRange::of(prefix, after),
                KeyRange { from: from.to_owned(), end: end.map(str::to_owned) }
            );
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
