//! Texts for names, annotations and messages.

use sha2::{Digest, Sha256};

/// The end of a text that was cut.
const ELLIPSIS: &str = "...";

/// Returns the text, or its beginning if it is longer than this number of bytes. `bytes` is at least three.
pub(crate) fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub(ELLIPSIS.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

/// Returns the first 16 hexadecimal digits of the SHA-256 of a text.
pub(crate) fn short_digest(text: &str) -> String {
    const BYTES: usize = 8;
    Sha256::digest(text).iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns `true` for a label of DNS (RFC 1123), such as the names of namespaces.
pub(crate) fn is_dns_label(text: &str) -> bool {
    const LENGTH: usize = 63;
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LENGTH
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        let check =
            |text: &str, bytes, expected| assert_eq!(shortened(text, bytes), expected, "{text} {bytes}");
        check("abcde", 5, "abcde");
        check("abcdef", 5, "ab...");
        check("aébcd", 5, "a...");
        check("éééé", 4, "...");
        check("", 3, "");
    }

    #[test]
    fn labels_have_inner_hyphens_only() {
        let check = |text: &str, expected| assert_eq!(is_dns_label(text), expected, "{text}");
        check("a", true);
        check("1-a", true);
        check("", false);
        check("-a", false);
        check("a-", false);
        check("A", false);
        check("a.b", false);
        check(&"a".repeat(63), true);
        check(&"a".repeat(64), false);
    }
}
