//! Formats in the settings of the built-in tools.

use jiff::tz::TimeZone;
use toolyard_core::access::ScopePattern;

use super::{FormatError, non_empty};
use crate::handler::SecretString;

/// A pattern of tool names.
pub(crate) fn pattern(text: &str) -> Result<ScopePattern, FormatError> {
    text.parse().map_err(|_| {
        FormatError::new(
            "a pattern of tools",
            "`NAME` or `HANDLER/NAME`, where `*` stands for any characters",
        )
    })
}

/// The id of a language model.
pub(crate) fn model(text: &str) -> Result<String, FormatError> {
    non_empty(text, FormatError::new("the id of a model", "what its provider calls it, such as gpt-5-mini"))
}

/// The name of a guide.
pub(crate) fn guide_name(text: &str) -> Result<String, FormatError> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let is_valid = (1..=64).contains(&text.len()) && text.bytes().all(is_inner);
    let invalid = FormatError::new(
        "the name of a guide",
        "letters, digits, `-` and `_`, 64 at most, such as web-tools",
    );
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// A display name.
pub(crate) fn display_name(text: &str) -> Result<String, FormatError> {
    let is_valid = !text.trim().is_empty() && text.chars().count() <= 100 && !text.contains(char::is_control);
    let invalid = FormatError::new("a display name", "one line of at most 100 characters");
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// A one-line summary.
pub(crate) fn summary(text: &str) -> Result<String, FormatError> {
    let is_valid = !text.trim().is_empty() && text.chars().count() <= 300 && !text.contains(char::is_control);
    let invalid = FormatError::new("a summary", "one line of at most 300 characters");
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// The name of a time zone.
pub(crate) fn time_zone(text: &str) -> Result<String, FormatError> {
    let invalid =
        FormatError::new("a time zone", "a name of the IANA database, such as Europe/Berlin or UTC");
    TimeZone::get(text).map(|_| text.to_owned()).map_err(|_| invalid)
}

/// The secret of a webhook.
pub(crate) fn webhook_secret(text: &str) -> Result<SecretString, FormatError> {
    const LEAST: usize = 24;
    const INVALID: FormatError = FormatError::new(
        "a secret that cannot be guessed",
        "at least 24 characters, such as `openssl rand -hex 32` prints",
    );
    if text.len() >= LEAST { Ok(SecretString::new(text)) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn guide_names_summaries_and_patterns() {
        let long = "a".repeat(65);
        check(guide_name, &["web-tools", "Billing_2", &long[1..]], &["", "a b", "a/b", "über", &long]);
        let long = "ü".repeat(301);
        check(summary, &["Find invoices.", &long[2..]], &["", " ", "a\nb", "a\tb", &long]);
        check(pattern, &["search_*", "github/create_*"], &["", "a b", "github/"]);
        check(time_zone, &["Europe/Berlin", "UTC"], &["", "CET+1", "Berlin", "../etc/passwd", "+01:00"]);
    }
}
