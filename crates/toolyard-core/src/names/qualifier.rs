//! URIs that name their handler.
//!
//! If two servers have the same URI, the second one's is published with its handler in the scheme: `file:///a` of
//! `docs` is `docs+file:///a`. It stays a valid URI, and is resolved without a table.

use super::legal::hash;

/// Returns the qualifier of a handler. A scheme may have letters, digits, `.`, `-` and `+`, and begins with a letter
/// (RFC 3986, 3.1). Clients may change the case of letters.
pub(crate) fn qualifier(handler: &str) -> String {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let begins_well = handler.starts_with(|c: char| c.is_ascii_lowercase());
    if begins_well && handler.chars().all(is_legal) {
        return format!("{handler}+");
    }
    let legal = |c: char| Some(c.to_ascii_lowercase()).filter(|c| is_legal(*c)).unwrap_or('-');
    format!("x-{}-{}+", handler.chars().map(legal).collect::<String>(), hash(handler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualifier_is_a_part_of_a_scheme() {
        let cases = [
            ("docs", "docs+"),
            ("my-docs.2", "my-docs.2+"),
            ("my_docs", "x-my-docs-8287f053+"),
            ("my docs", "x-my-docs-ede1dfbc+"),
            ("Docs", "x-docs-7af023c4+"),
            ("2docs", "x-2docs-6071d749+"),
            ("", "x--e3b0c442+"),
        ];
        for (handler, expect) in cases {
            assert_eq!(qualifier(handler), expect);
        }
    }
}
