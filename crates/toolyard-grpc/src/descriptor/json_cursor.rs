//! Reads JSON text from left to right, without a tree of values: numbers keep all their digits.

use std::borrow::Cow;
use std::fmt;

/// A position in a JSON text that was validated before. For other texts the results are arbitrary values.
#[derive(Debug, Clone)]
pub(super) struct JsonCursor<'j> {
    rest: &'j str,
}

/// The kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonKind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// A string that is not Unicode text: half of a surrogate pair.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidText;

impl<'j> JsonCursor<'j> {
    pub(super) fn new(text: &'j str) -> Self {
        let mut cursor = Self { rest: text };
        cursor.skip_blanks();
        cursor
    }

    /// Returns the kind of the value that begins here.
    pub(super) fn kind(&self) -> JsonKind {
        match self.rest.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::Text,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'-' | b'0'..=b'9') => JsonKind::Number,
            _ => JsonKind::Null,
        }
    }

    /// Reads `true` or `false`.
    pub(super) fn boolean(&mut self) -> bool {
        let value = self.rest.starts_with('t');
        self.skip_value();
        value
    }

    /// Reads a string.
    pub(super) fn text(&mut self) -> Result<Cow<'j, str>, InvalidText> {
        let text = self.skip_value();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
        if inner.contains('\\') {
            return serde_json::from_str(text).map(Cow::Owned).map_err(|_| InvalidText);
        }
        Ok(Cow::Borrowed(inner))
    }

    /// Skips the opening bracket of an object or array.
    pub(super) fn open(&mut self) {
        self.skip(1);
    }

    /// Moves to the next member of an object, and returns its name; `None` behind its end.
    pub(super) fn member(&mut self) -> Option<Result<Cow<'j, str>, InvalidText>> {
        self.item()?;
        let name = self.text();
        // The colon.
        self.skip(1);
        Some(name)
    }

    /// Moves to the next item of an array; `None` behind its end.
    pub(super) fn item(&mut self) -> Option<()> {
        match self.rest.as_bytes().first() {
            Some(b'}' | b']') => {
                self.skip(1);
                None
            }
            Some(b',') => {
                self.skip(1);
                Some(())
            }
            Some(_) => Some(()),
            None => None,
        }
    }

    /// Skips a value, and returns its text.
    pub(super) fn skip_value(&mut self) -> &'j str {
        let text = self.rest;
        let bytes = text.as_bytes();
        let end = match self.kind() {
            JsonKind::Text => end_of_text(bytes),
            JsonKind::Array | JsonKind::Object => end_of_brackets(bytes),
            _ => bytes.iter().position(|byte| b",]} \t\r\n".contains(byte)).unwrap_or(bytes.len()),
        };
        self.skip(end.max(1));
        text.get(..end).unwrap_or_default()
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.skip_blanks();
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
}

/// Returns the end of the string at the start.
fn end_of_text(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// Returns the end of the object or array at the start.
fn end_of_brackets(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += end_of_text(&bytes[at..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order() {
        let text = r#" { "a" : [1.50, "x\n", true, null, {"b": "}"}] , "c\u0041":{ } } "#;
        let mut cursor = JsonCursor::new(text);
        assert_eq!(cursor.kind(), JsonKind::Object);
        cursor.open();
        assert_eq!(cursor.member(), Some(Ok("a".into())));
        assert_eq!(cursor.kind(), JsonKind::Array);
        cursor.open();
        let mut items = Vec::new();
        while cursor.item().is_some() {
            let kind = cursor.kind();
            items.push((kind, cursor.skip_value()));
        }
        let expected = [
            (JsonKind::Number, "1.50"),
            (JsonKind::Text, r#""x\n""#),
            (JsonKind::Boolean, "true"),
            (JsonKind::Null, "null"),
            (JsonKind::Object, r#"{"b": "}"}"#),
        ];
        assert_eq!(items, expected);
        assert_eq!(cursor.member(), Some(Ok("cA".into())));
        cursor.open();
        assert_eq!(cursor.member(), None);
        assert_eq!(cursor.member(), None);
    }

    #[test]
    fn half_of_a_surrogate_pair_is_no_text() {
        let check = |text: &str, expected: Result<&str, InvalidText>| {
            assert_eq!(JsonCursor::new(text).text(), expected.map(Cow::from), "{text}");
        };
        check(r#""a\"b\\""#, Ok(r#"a"b\"#));
        check(r#""\ud83d\ude00""#, Ok("\u{1f600}"));
        check(r#""\ud83d""#, Err(InvalidText));
    }
}
