//! Points in time as JSON texts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// Formats a time in ISO 8601 with milliseconds, in UTC.
#[must_use]
pub fn iso_8601(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, rest) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let mut text = String::with_capacity("1970-01-01T00:00:00.000Z".len());
    // Every record of a call has a time, and formatting it would be a third of the work.
    for (number, digits, mark) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (hour, 2, ':'),
        (minute, 2, ':'),
        (second, 2, '.'),
        (u64::from(since.subsec_millis()), 3, 'Z'),
    ] {
        push_digits(number, digits, &mut text);
        text.push(mark);
    }
    text
}

/// Writes a number with leading zeros, in at least `digits` digits.
fn push_digits(number: u64, digits: u32, text: &mut String) {
    let mut scale = 10_u64.pow(digits - 1);
    while number / scale >= 10 {
        scale *= 10;
    }
    while scale > 0 {
        text.push(char::from(b'0' + (number / scale % 10) as u8));
        scale /= 10;
    }
}

/// Returns the date of a day counted from 1970-01-01. Years begin in March here, so that the leap day is the last one,
/// and come in eras of 400.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let days = days + 719_468;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Parses a time of RFC 3339, `2026-11-21T08:30:00Z` or with an offset such as `+01:00`; `None` for other texts.
/// Fractions below a millisecond are cut off, and times before 1970 become 1970: no query concerns them.
#[must_use]
pub fn parse(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let (millis, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
            let (digits, zone) = rest.split_at(end);
            (format!("{digits:0<3}")[..3].parse().ok()?, zone)
        }
    };
    // The calendar repeats every 400 years.
    let is_ancient = year < 1970;
    let days = days(if is_ancient { year + 2000 } else { year }, month, day)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = offset(zone)?;
    let seconds = i64::try_from(days * DAY + hour * 3600 + minute * 60 + second).ok()? - offset;
    let seconds = u64::try_from(seconds).ok().filter(|_| !is_ancient);
    let since = seconds.map(|seconds| Duration::from_secs(seconds) + Duration::from_millis(millis));
    UNIX_EPOCH.checked_add(since.unwrap_or_default())
}

/// Parses numbers with these counts of digits and a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns the offset of a zone from UTC, in seconds.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' | b'z' => return (zone.len() == 1).then_some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
    let is_one = hours <= 23 && minutes <= 59;
    is_one.then_some(sign * i64::try_from(hours * 3600 + minutes * 60).ok()?)
}

/// Returns the days from 1970-01-01 to a later date: the inverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year_from_march = if month > 2 { year } else { year - 1 };
    let month_from_march = (month + 9) % 12;
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    // Rejects dates such as the 30th of February.
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn times() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_582_934_400_000, "2020-02-29T00:00:00.000Z"),
            (1_795_219_200_001, "2026-11-21T00:00:00.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (millis, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(iso_8601(time), expected);
            assert_eq!(parse(expected), Some(time), "{expected}");
        }
    }

    #[test]
    fn equivalent_forms_are_parsed() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text).map(iso_8601).as_deref(), Some(expected), "{text}");
        };
        check("2026-11-21T08:30:00Z", "2026-11-21T08:30:00.000Z");
        check("2026-11-21 08:30:00z", "2026-11-21T08:30:00.000Z");
        check("2026-11-21t08:30:00.5Z", "2026-11-21T08:30:00.500Z");
        check("2026-11-21T08:30:00.123456789Z", "2026-11-21T08:30:00.123Z");
        check("2026-11-21T08:30:00+01:30", "2026-11-21T07:00:00.000Z");
        check("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00.000Z");
        for ancient in ["0000-02-29T00:00:00Z", "1135-04-28T16:46:08.478Z", "1970-01-01T00:00:00+01:00"] {
            check(ancient, "1970-01-01T00:00:00.000Z");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        let texts = [
            "",
            "2026",
            "2026-11-21",
            "2026-11-21T08:30:00",
            "2026-11-21T08:30Z",
            "2026-11-21T08:30:00.Z",
            "2026-11-21T24:00:00Z",
            "2026-02-30T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-11-21T08:30:00ZZ",
            "2026-11-21T08:30:00+1:00",
            "2026-11-21T08:30:00+25:00",
            "+026-11-21T08:30:00Z",
            "2026-11-21T08:30:00.5",
            "2026-11-2\u{e9}T08:30:00Z",
            "\u{1f600}",
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
