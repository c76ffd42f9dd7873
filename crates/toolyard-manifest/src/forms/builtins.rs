//! What the gateway's own tools are told of.

use toolyard_core::access::Pattern;

use super::{Invalid, non_empty};

/// Which tools are meant.
pub(crate) fn pattern(text: &str) -> Result<Pattern, Invalid> {
    text.parse().map_err(|_| {
        Invalid::new("a pattern of tools", "`NAME` or `HANDLER/NAME`, where `*` stands for any characters")
    })
}

/// The id of a language model.
pub(crate) fn model(text: &str) -> Result<String, Invalid> {
    non_empty(text, Invalid::new("the id of a model", "what its provider calls it, such as gpt-5-mini"))
}

/// What a guide is asked for by.
pub(crate) fn guide_name(text: &str) -> Result<String, Invalid> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let is_valid = (1..=64).contains(&text.len()) && text.bytes().all(is_inner);
    let invalid =
        Invalid::new("the name of a guide", "letters, digits, `-` and `_`, 64 at most, such as web-tools");
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// What people call something.
pub(crate) fn display_name(text: &str) -> Result<String, Invalid> {
    let is_valid = !text.trim().is_empty() && text.chars().count() <= 100 && !text.contains(char::is_control);
    let invalid = Invalid::new("a name for people", "one line of at most 100 characters");
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// What something is about.
pub(crate) fn summary(text: &str) -> Result<String, Invalid> {
    let is_valid = !text.trim().is_empty() && text.chars().count() <= 300 && !text.contains(char::is_control);
    let invalid = Invalid::new("a summary", "one line of at most 300 characters");
    if is_valid { Ok(text.to_owned()) } else { Err(invalid) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn what_guides_and_patterns_are() {
        let long = "a".repeat(65);
        check(guide_name, &["web-tools", "Billing_2", &long[1..]], &["", "a b", "a/b", "über", &long]);
        let long = "ü".repeat(301);
        check(summary, &["Find invoices.", &long[2..]], &["", " ", "a\nb", "a\tb", &long]);
        check(pattern, &["search_*", "github/create_*"], &["", "a b", "github/"]);
    }
}
