//! Durations on the command line.

use std::time::Duration;

/// The text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number and a unit, such as 30s, 10min, 12h, 90d or 4w")]
pub(crate) struct InvalidDuration;

/// Parses a duration of whole seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| InvalidDuration)?;
    let seconds = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(InvalidDuration),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(InvalidDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(parse_duration(text).ok(), seconds.map(Duration::from_secs), "{text:?}");
        };
        check("30s", Some(30));
        check("10min", Some(600));
        check("12h", Some(43_200));
        check("90d", Some(7_776_000));
        check("4w", Some(2_419_200));
        for text in [
            "",
            "s",
            "1",
            "1m",
            "1.5h",
            "-1h",
            "1 h",
            "1h30min",
            "99999999999999999999s",
            "99999999999999999w",
        ] {
            check(text, None);
        }
    }
}
