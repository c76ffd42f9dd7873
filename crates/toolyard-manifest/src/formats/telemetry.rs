//! Prefixes of metric names, and log filters.

use super::FormatError;

/// The prefix of metric names (OpenTelemetry, "Instrument name syntax", without the characters that Prometheus
/// replaces).
pub(crate) fn metric_prefix(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "a prefix of metrics",
        "a letter, then letters, digits, `_` and `.`, up to 64 in all",
    );
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let valid =
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(inner) && text.len() <= 64;
    if valid && !text.ends_with('.') { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// The log levels, least verbose first.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// A log filter: levels, each global or for the targets with a prefix. The parser of the logging library also accepts a
/// target alone, but that is usually a misspelled level.
pub(crate) fn log_filter(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "a filter of the log",
        "off, error, warn, info, debug or trace, for all or for a target, as in `info,toolyard_mcp=debug`",
    );
    let is_target = |target: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':');
        !target.is_empty() && target.bytes().all(inner)
    };
    let is_directive = |directive: &str| match directive.split_once('=') {
        Some((target, level)) => is_target(target) && LEVELS.contains(&level),
        None => LEVELS.contains(&directive),
    };
    if text.split(',').all(is_directive) { Ok(text.to_owned()) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets() {
        for text in ["info", "off", "info,toolyard_mcp=debug", "a::b=trace,c=off,warn"] {
            assert_eq!(log_filter(text).as_deref(), Ok(text));
        }
        for text in
            ["", "inof", "INFO", "info,", "=info", "a b=info", "a=", "a=1", "[span]=info", "info, b=warn"]
        {
            assert!(log_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prefixes() {
        for text in ["toolyard", "rockbot", "a.b_c", "A1"] {
            assert_eq!(metric_prefix(text).as_deref(), Ok(text));
        }
        for text in ["", "1a", "a.", "a-b", ".a", &"a".repeat(65)] {
            assert!(metric_prefix(text).is_err(), "{text}");
        }
    }
}
