//! Patterns, which are regular expressions of ECMAScript (JSON Schema 2020-12, section 6.4 of the core).

use std::borrow::Cow;

use jsonschema_regex::is_valid_ecma_regex;

/// Maximum length of a pattern that is checked, in bytes. Names of groups are compared with one another.
const MAX_CHECKED_BYTES: usize = 4096;

/// Converts a pattern in a notation that would match nothing as ECMAScript: a literal of JavaScript or PHP with its
/// slashes, or anchors of Ruby and Python. Returns `None` if it is invalid, or its options cannot be expressed.
pub(crate) fn to_ecmascript(pattern: &str) -> Option<Cow<'_, str>> {
    let (inside, options) = literal(pattern).unwrap_or((pattern, ""));
    // `u` is how validators read patterns anyway; `g` is no property of a match.
    let is_expressible = options.bytes().all(|option| b"gu".contains(&option));
    let converted = is_expressible.then(|| with_anchors(inside))?;
    (converted.len() > MAX_CHECKED_BYTES || is_valid_ecma_regex(&without_letter_escapes(&converted)))
        .then_some(converted)
}

/// Removes the backslash of letters that it does not change. Validators differ in whether they accept it.
fn without_letter_escapes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some(escaped)) => {
                characters.next();
                let is_plain = escaped.is_ascii_alphabetic() && !"dDwWsSbBnrtfvcxukpP".contains(escaped);
                text.extend((!is_plain).then_some(character));
                text.push(escaped);
            }
            _ => text.push(character),
        }
    }
    text
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
