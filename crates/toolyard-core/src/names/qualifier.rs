//! URIs that name their handler.
//!
//! Where two servers have one URI, that of the second is published with its handler's name in front, as a part of the scheme:
//! `file:///a` of `docs` is `docs+file:///a`. So it stays a URI, and what it means can be read off it without a table.

use super::legal::hash;

/// What stands before the URIs of a handler: a scheme may hold small letters, digits, `.`, `-` and `+`, and begins with a
/// letter (RFC 3986, 3.1). Large letters may be made small by any client.
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
