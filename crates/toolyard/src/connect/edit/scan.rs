//! A scanner for JSON with comments and trailing commas that records byte offsets.

use std::ops::Range;

use serde_json::Value;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 100;

/// A reason not to edit a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error("not valid JSON")]
    NotJson,
    #[error("the member for servers is not an object")]
    NotAnObject,
    #[error("duplicate member")]
    DuplicateMember,
}

/// An object and its position in the text.
#[derive(Debug, Default)]
pub(super) struct JsonObject {
    pub(super) members: Vec<ScannedMember>,
    /// True if a comma follows the last member.
    pub(super) ends_with_comma: bool,
    /// Byte offset of the closing brace.
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct ScannedMember {
    pub(super) name: String,
    /// Byte offset of the name's opening quote.
    pub(super) start: usize,
    /// Byte range of the value.
    pub(super) span: Range<usize>,
    /// Byte offset of the comma behind the value.
    pub(super) comma: Option<usize>,
    /// The value if it is an object.
    pub(super) object: Option<JsonObject>,
}

impl JsonObject {
    /// Returns the member with this name.
    pub(super) fn member(&self, name: &str) -> Result<Option<&ScannedMember>, EditError> {
        let mut matching = self.members.iter().filter(|member| member.name == name);
        let first = matching.next();
        if matching.next().is_some() { Err(EditError::DuplicateMember) } else { Ok(first) }
    }
}

impl ScannedMember {
    /// Returns the value, or `None` if it contains comments.
    pub(super) fn value(&self, text: &str) -> Option<Value> {
        serde_json::from_str(&text[self.span.clone()]).ok()
    }
}

/// Scans a text that consists of one object.
pub(super) fn scan(text: &str) -> Result<JsonObject, EditError> {
    let mut scanner = JsonScanner { text, at: text.len() - text.trim_start_matches('\u{feff}').len() };
    let member = scanner.value(String::new(), 0)?;
    scanner.skip_whitespace()?;
    if scanner.at < text.len() {
        Err(EditError::NotJson)
    } else {
        member.object.ok_or(EditError::NotAnObject)
    }
}

struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl JsonScanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips whitespace and comments.
    fn skip_whitespace(&mut self) -> Result<(), EditError> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                comment.find("*/").ok_or(EditError::NotJson)? + "/**/".len()
            } else {
                self.at += rest.len() - trimmed.len();
                return Ok(());
            };
            self.at += rest.len() - trimmed.len() + length;
        }
    }

    /// Skips whitespace and comments, and the character if it comes next. Returns true if it did.
    fn skip_char(&mut self, character: char) -> Result<bool, EditError> {
        self.skip_whitespace()?;
        let has = self.rest().starts_with(character);
        self.at += if has { character.len_utf8() } else { 0 };
        Ok(has)
    }

    /// Scans the value of the member with this name.
    fn value(&mut self, name: String, depth: usize) -> Result<ScannedMember, EditError> {
        self.skip_whitespace()?;
        let start = self.at;
        let mut object = None;
        if depth > MAX_DEPTH {
            return Err(EditError::NotJson);
        } else if self.skip_char('{')? {
            object = Some(self.object(depth + 1)?);
        } else if self.skip_char('[')? {
            self.list(depth + 1)?;
        } else if self.rest().starts_with('"') {
            self.string()?;
        } else {
            self.literal()?;
        }
        Ok(ScannedMember { name, start, span: start..self.at, comma: None, object })
    }

    /// Scans an object after its opening brace.
    fn object(&mut self, depth: usize) -> Result<JsonObject, EditError> {
        let mut object = JsonObject::default();
        loop {
            if self.skip_char('}')? {
                object.end = self.at - 1;
                return Ok(object);
            }
            if !object.members.is_empty() && !object.ends_with_comma {
                return Err(EditError::NotJson);
            }
            let start = self.at;
            let name = self.string()?;
            if !self.skip_char(':')? {
                return Err(EditError::NotJson);
            }
            let member = self.value(name, depth)?;
            object.ends_with_comma = self.skip_char(',')?;
            let comma = object.ends_with_comma.then(|| self.at - 1);
            object.members.push(ScannedMember { start, comma, ..member });
        }
    }

    /// Scans an array after its opening bracket.
    fn list(&mut self, depth: usize) -> Result<(), EditError> {
        let mut has_next = true;
        while !self.skip_char(']')? {
            if !has_next {
                return Err(EditError::NotJson);
            }
            self.value(String::new(), depth)?;
            has_next = self.skip_char(',')?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, EditError> {
        self.parse_prefix(|rest| {
            let mut escaped = false;
            let ends = |byte: u8| match byte {
                _ if escaped => {
                    escaped = false;
                    false
                }
                b'\\' => {
                    escaped = true;
                    false
                }
                byte => byte == b'"',
            };
            rest.strip_prefix('"')?.bytes().position(ends).map(|end| end + 2)
        })
    }

    /// Scans a number, `true`, `false` or `null`.
    fn literal(&mut self) -> Result<Value, EditError> {
        self.parse_prefix(|rest| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            Some(rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
        })
    }

    /// Parses a prefix of the remaining text, whose length `length` determines.
    fn parse_prefix<T: serde::de::DeserializeOwned>(
        &mut self,
        length: impl FnOnce(&str) -> Option<usize>,
    ) -> Result<T, EditError> {
        let rest = self.rest();
        let length = length(rest).ok_or(EditError::NotJson)?;
        let parsed = serde_json::from_str(&rest[..length]).map_err(|_| EditError::NotJson)?;
        self.at += length;
        Ok(parsed)
    }
}
