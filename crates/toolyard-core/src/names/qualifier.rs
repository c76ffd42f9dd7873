//! URIs that name their handler.
//!
//! If two servers have the same URI, the second one's is published with its handler in the scheme: `file:///a` of
//! `docs` is `docs+file:///a`. It stays a valid URI, and is resolved without a table. A URI of MCP Apps keeps its scheme,
//! by which hosts know it, and has the handler in the authority: `ui://docs+a/b`.

use std::borrow::Cow;

use super::legal::hash;

/// The scheme of MCP Apps (SEP-1865), whose letters have any case.
const UI: &str = "ui://";

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

/// Returns `true` for a URI of MCP Apps, which is known to its server only.
pub(crate) fn is_ui(uri: &str) -> bool {
    uri.get(..UI.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(UI))
}

/// Splits a URI or template in front of the place of its qualifier.
fn split(uri: &str) -> (&str, &str) {
    uri.split_at(if is_ui(uri) { UI.len() } else { 0 })
}

/// Returns a URI or template with a qualifier.
pub(crate) fn qualified(qualifier: &str, uri: &str) -> String {
    let (scheme, rest) = split(uri);
    format!("{scheme}{qualifier}{rest}")
}

/// Returns a URI or template without its qualifier; `None` if it has another one, or none.
pub(crate) fn unqualified<'u>(qualifier: &str, uri: &'u str) -> Option<Cow<'u, str>> {
    let (scheme, rest) = split(uri);
    let own = rest.strip_prefix(qualifier)?;
    Some(if scheme.is_empty() { Cow::Borrowed(own) } else { Cow::Owned(format!("{scheme}{own}")) })
}

/// Returns the text at the place of a qualifier that looks like one, in lower case.
pub(super) fn qualifier_of(uri: &str) -> Option<String> {
    let (_, rest) = split(uri);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.')?;
    rest[end..].starts_with('+').then(|| rest[..=end].to_ascii_lowercase())
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

    #[test]
    fn qualified_uri_keeps_the_scheme_of_apps() {
        for (uri, expected) in [
            ("file:///a", "docs+file:///a"),
            ("ui://a/b", "ui://docs+a/b"),
            ("UI://a/{b}", "UI://docs+a/{b}"),
            ("ui:a", "docs+ui:a"),
            ("{+uri}", "docs+{+uri}"),
            ("é", "docs+é"),
            ("", "docs+"),
        ] {
            let qualified = qualified("docs+", uri);
            assert_eq!(qualified, expected);
            assert_eq!(unqualified("docs+", &qualified).as_deref(), Some(uri));
            assert_eq!(unqualified("other+", &qualified), None);
            assert_eq!(qualifier_of(&qualified).as_deref(), Some("docs+"));
        }
        for (uri, expected) in
            [("a:b", None), ("ui://a/b+c", None), ("Docs+a:b", Some("docs+")), ("UI://DOCS+a", Some("docs+"))]
        {
            assert_eq!(qualifier_of(uri).as_deref(), expected, "{uri}");
        }
    }
}
