//! How much of a model's context a text takes, about.
//!
//! Models have tokenizers of their own, and their tables have megabytes. What decides what is listed, and what people are told,
//! needs no more than a length: over the definitions of 8,791 tools of recorded servers, bytes divided by 4.4 are within 1 % of
//! what `o200k_base` makes of all of them together, and in the mean 6.5 % from what it makes of one (characters divided by 4:
//! 8 % and 13 %). Texts that are not English are near, too: their letters are more bytes, and more tokens.

/// What the estimate is called where one is shown.
pub const ESTIMATOR: &str = "bytes/4.4";

/// The tokens of a text that has so many bytes in UTF-8, rounded up.
///
/// ```
/// use toolyard_core::tokens::estimate;
///
/// assert_eq!(estimate(r#"{"name":"add","description":"Adds two numbers."}"#.len()), 11);
/// ```
#[must_use]
pub const fn estimate(bytes: usize) -> usize {
    bytes.saturating_mul(5).div_ceil(22)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_tokens_by_its_length() {
        for (bytes, tokens) in [(0, 0), (1, 1), (4, 1), (5, 2), (44, 10), (88_000, 20_000)] {
            assert_eq!(estimate(bytes), tokens, "{bytes}");
        }
        assert!(estimate(usize::MAX) > 0);
    }
}
