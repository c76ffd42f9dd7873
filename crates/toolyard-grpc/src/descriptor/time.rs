//! The texts of `Timestamp` and `Duration`.

use std::fmt::Write;

const DAY: i64 = 24 * 60 * 60;
const NANOS: i64 = 1_000_000_000;

/// The first and last second of the years 1 to 9999.
const TIMESTAMPS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The most seconds of a duration: about 10,000 years.
const MAX_DURATION: i64 = 315_576_000_000;

/// Parses a time of RFC 3339 with at most nine digits of a fraction, such as `2026-11-21T08:30:00.5Z`; returns seconds
/// and nanoseconds since 1970.
pub(super) fn parse_timestamp(text: &str) -> Option<(i64, i32)> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let (nanos, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            (fraction(&rest[..end])?, &rest[end..])
        }
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day)? * DAY + hour * 3600 + minute * 60 + second - offset(zone)?;
    TIMESTAMPS.contains(&seconds).then_some((seconds, nanos))
}

/// Writes a time in UTC; `None` if it is out of range.
pub(super) fn format_timestamp(seconds: i64, nanos: i64) -> Option<String> {
    if !TIMESTAMPS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
        return None;
    }
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let rest = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let mut out = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    push_fraction(&mut out, nanos);
    out.push('Z');
    Some(out)
}

/// Parses a duration, such as `-1.5s`; returns seconds and nanoseconds with the same sign.
pub(super) fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = number.strip_prefix('-').map_or((1, number), |number| (-1, number));
    let (whole, nanos) = match number.split_once('.') {
        Some((whole, digits)) => (whole, fraction(digits)?),
        None => (number, 0),
    };
    if whole.is_empty() || whole.len() > 12 || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    (seconds <= MAX_DURATION).then_some((sign * seconds, i32::try_from(sign).ok()? * nanos))
}

/// Writes a duration; `None` if it is out of range, or its parts have different signs.
pub(super) fn format_duration(seconds: i64, nanos: i64) -> Option<String> {
    let is_mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
    if seconds.unsigned_abs() > MAX_DURATION as u64 || !(-NANOS < nanos && nanos < NANOS) || is_mixed {
        return None;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let mut out = format!("{sign}{}", seconds.abs());
    push_fraction(&mut out, nanos.abs());
    out.push('s');
    Some(out)
}

/// Writes 0, 3, 6 or 9 digits.
fn push_fraction(out: &mut String, nanos: i64) {
    let _ = match nanos {
        0 => Ok(()),
        nanos if nanos % 1_000_000 == 0 => write!(out, ".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => write!(out, ".{:06}", nanos / 1_000),
        nanos => write!(out, ".{nanos:09}"),
    };
}

/// Parses the digits of a fraction as nanoseconds.
fn fraction(digits: &str) -> Option<i32> {
    let is_valid = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_valid { format!("{digits:0<9}").parse().ok() } else { None }
}

/// Parses numbers with these counts of digits and a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let is_number = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = parts.next().filter(is_number)?.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns the offset of a zone from UTC, in seconds.
fn offset(zone: &str) -> Option<i64> {
    let (sign, zone) = match zone.split_at_checked(1)? {
        ("Z", "") => return Some(0),
        ("+", zone) => (1, zone),
        ("-", zone) => (-1, zone),
        _ => return None,
    };
    let [hours, minutes] = numbers(zone, ':', [2, 2])?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Returns the days from 1970-01-01 to a date of the years 1 to 9999.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if year < 1 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one, and come in eras of 400.
    let year_from_march = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year_of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    // Refuses dates such as the 30th of February.
    (date(days) == (year, month, day)).then_some(days)
}

/// Returns the date of a day counted from 1970-01-01: the inverse of [`days`].
const fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + (month <= 2) as i64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_the_range_of_the_specification() {
        let check = |text: &str, parsed, written: &str| {
            assert_eq!(parse_timestamp(text), Some(parsed), "{text}");
            assert_eq!(format_timestamp(parsed.0, i64::from(parsed.1)).as_deref(), Some(written));
        };
        check("1970-01-01T00:00:00Z", (0, 0), "1970-01-01T00:00:00Z");
        check("1972-01-01T10:00:20.021Z", (63_108_020, 21_000_000), "1972-01-01T10:00:20.021Z");
        check("0001-01-01T00:00:00Z", (-62_135_596_800, 0), "0001-01-01T00:00:00Z");
        check(
            "9999-12-31T23:59:59.999999999Z",
            (253_402_300_799, 999_999_999),
            "9999-12-31T23:59:59.999999999Z",
        );
        check("1969-12-31T23:59:59.5Z", (-1, 500_000_000), "1969-12-31T23:59:59.500Z");
        check("1970-01-01T01:00:00.00001+01:00", (0, 10_000), "1970-01-01T00:00:00.000010Z");
        check("1969-12-31T16:00:00-08:00", (0, 0), "1970-01-01T00:00:00Z");
        check("2000-02-29T00:00:00Z", (951_782_400, 0), "2000-02-29T00:00:00Z");
        for text in [
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01t00:00:00Z",
            "1970-01-01T00:00:00z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.1234567890Z",
            "1970-01-01T00:00:00+0100",
            "1970-01-01 00:00:00Z",
            "1970-01-01T00:00:0\u{e9}Z",
            "",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
        let written = [(253_402_300_800, 0), (-62_135_596_801, 0), (0, -1), (0, NANOS), (i64::MIN, i64::MAX)];
        assert!(written.into_iter().all(|(seconds, nanos)| format_timestamp(seconds, nanos).is_none()));
    }

    #[test]
    fn durations_have_the_range_of_the_specification() {
        let check = |text: &str, parsed, written: &str| {
            assert_eq!(parse_duration(text), Some(parsed), "{text}");
            assert_eq!(format_duration(parsed.0, i64::from(parsed.1)).as_deref(), Some(written));
        };
        check("0s", (0, 0), "0s");
        check("1.000340012s", (1, 340_012), "1.000340012s");
        check("1.5s", (1, 500_000_000), "1.500s");
        check("-0.5s", (0, -500_000_000), "-0.500s");
        check("-1.000001s", (-1, -1_000), "-1.000001s");
        check("315576000000.999999999s", (MAX_DURATION, 999_999_999), "315576000000.999999999s");
        for text in
            ["", "s", "1", "1 s", ".5s", "1.s", "+1s", "1e2s", "315576000001s", "1.0000000001s", "--1s"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        let written = [(MAX_DURATION + 1, 0), (1, -1), (-1, 1), (0, NANOS), (i64::MIN, i64::MIN)];
        assert!(written.into_iter().all(|(seconds, nanos)| format_duration(seconds, nanos).is_none()));
    }
}
