//! Durations in the notation of Go, which Kubernetes resources use.

use std::time::Duration;

use super::FormatError;

/// The format of a duration, for messages.
pub(crate) const DURATION: &str = "a duration such as 500ms, 30s, 1m30s or 2h";

/// Parses a duration. The maximum is that of Go, about 292 years, so that both sides accept the same values.
pub(crate) fn duration(text: &str) -> Result<Duration, FormatError> {
    const INVALID: FormatError = FormatError::new("a duration", DURATION);
    match nanoseconds(text) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None if text.bytes().all(|b| b.is_ascii_digit()) => Err(INVALID.hint("add a unit, as in `30s`")),
        None => Err(INVALID.hint("the units are h, m, s, ms, us and ns, without spaces")),
    }
}

/// Writes a duration in one unit without a fraction: the largest, but seconds up to two minutes, as in `90s`.
pub(crate) fn duration_text(duration: Duration) -> String {
    const UNITS: [(&str, u128); 5] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
    ];
    let nanoseconds = duration.as_nanos();
    let is_exact = |(name, unit): &(&str, u128)| {
        nanoseconds >= *unit && nanoseconds.is_multiple_of(*unit) && (*name != "m" || nanoseconds / unit > 1)
    };
    match UNITS.into_iter().find(is_exact) {
        Some((name, unit)) => format!("{}{name}", nanoseconds / unit),
        None => format!("{nanoseconds}ns"),
    }
}

fn nanoseconds(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut sum: u128 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let number;
        let unit;
        (number, rest) = split_while(rest, is_number);
        (unit, rest) = split_while(rest, |c| !is_number(c));
        sum = sum.checked_add(term(number, unit)?)?;
    }
    let sum = i64::try_from(sum).ok()?;
    if text.is_empty() { None } else { u64::try_from(sum).ok() }
}

/// Parses a number with one unit, such as `1.5h`. Fractions of a nanosecond are truncated.
fn term(number: &str, unit: &str) -> Option<u128> {
    /// Further digits are below a nanosecond in every unit.
    const DIGITS: usize = 15;
    let unit = nanoseconds_of(unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(DIGITS)];
    let whole = digits(whole)?.checked_mul(unit)?;
    let part = digits(fraction)? * unit / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_add(part)
}

fn nanoseconds_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn digits(text: &str) -> Option<u128> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_follow_go() {
        let cases = [
            ("30s", 30_000_000_000),
            ("1m30s", 90_000_000_000),
            ("500ms", 500_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("2us3ns", 2_003),
            ("1\u{b5}s1\u{3bc}s", 2_000),
            ("0.0000000019s", 1),
            ("0.3333333333333333333333333333333h", 1_200_000_000_000 - 1),
            ("0", 0),
            ("0s", 0),
            ("9223372036854775807ns", i64::MAX.unsigned_abs()),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_one_unit() {
        for text in ["0ns", "1ns", "1us", "1500ms", "1s", "60s", "90s", "2m", "30m", "1h", "2160h"] {
            assert_eq!(duration(text).map(duration_text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let cases = [
            "",
            "30",
            "s",
            "30 s",
            " 30s",
            "-30s",
            "+30s",
            "1d",
            "30S",
            "1.2.3s",
            ".s",
            "9223372036854775808ns",
            "99999999999999999999999999999999999999999h",
            "1m30",
            "1s\u{e9}",
            "\u{661}s",
        ];
        for text in cases {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
