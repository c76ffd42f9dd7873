//! Patterns, which are regular expressions of ECMAScript (JSON Schema 2020-12, section 6.4 of the core).

use std::borrow::Cow;

/// Converts a pattern in a notation that would match nothing as ECMAScript: a literal of JavaScript or PHP with its
/// slashes, or anchors of Ruby and Python. Returns `None` if its options cannot be expressed.
pub(super) fn to_ecmascript(pattern: &str) -> Option<Cow<'_, str>> {
    let Some((inside, options)) = literal(pattern) else { return Some(with_anchors(pattern)) };
    // `u` is how validators read patterns anyway; `g` is no property of a match.
    options.bytes().all(|option| b"gu".contains(&option)).then(|| with_anchors(inside))
}

/// Splits a literal `/^...$/options`. Nothing else can be meant: no text matches a slash before its beginning.
fn literal(pattern: &str) -> Option<(&str, &str)> {
    let (inside, options) = pattern.strip_prefix('/')?.rsplit_once('/')?;
    let is_literal = inside.starts_with('^') && options.bytes().all(|byte| byte.is_ascii_lowercase());
    is_literal.then_some((inside, options))
}

/// Replaces `\A`, `\Z` and `\z`, which are letters or errors in ECMAScript.
fn with_anchors(pattern: &str) -> Cow<'_, str> {
    if ![r"\A", r"\Z", r"\z"].iter().any(|anchor| pattern.contains(anchor)) {
        return Cow::Borrowed(pattern);
    }
    let mut text = String::with_capacity(pattern.len());
    let mut is_in_class = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('A') if !is_in_class => text.push('^'),
                Some('Z' | 'z') if !is_in_class => text.push('$'),
                escaped => text.extend(std::iter::once('\\').chain(escaped)),
            },
            other => {
                is_in_class = other == '[' || (is_in_class && other != ']');
                text.push(other);
            }
        }
    }
    Cow::Owned(text)
}
