//! Where things stand in a text of JSON with comments, and commas behind last members.

use std::ops::Range;

use serde_json::Value;

/// How deep a text may nest.
const DEEPEST: usize = 100;

/// Why a program had better not change a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unclear {
    #[error("it is not JSON")]
    NotJson,
    #[error("the place of the servers is no object")]
    NoObject,
    #[error("it names the same twice")]
    Twice,
}

/// An object, as far as it stands in the text.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) members: Vec<Member>,
    /// Whether a comma stands behind the last of them.
    pub(super) ends_with_comma: bool,
    /// Where its closing brace is.
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct Member {
    name: String,
    /// Where its value is.
    pub(super) place: Range<usize>,
    /// The value, where it is an object.
    pub(super) object: Option<Object>,
}

impl Object {
    /// The member of this name.
    pub(super) fn member(&self, name: &str) -> Result<Option<&Member>, Unclear> {
        let mut found = self.members.iter().filter(|member| member.name == name);
        let first = found.next();
        if found.next().is_some() { Err(Unclear::Twice) } else { Ok(first) }
    }
}

impl Member {
    /// The value, where it has no comments in it.
    pub(super) fn value(&self, text: &str) -> Option<Value> {
        serde_json::from_str(&text[self.place.clone()]).ok()
    }
}

/// Finds the object that a text is.
pub(super) fn scan(text: &str) -> Result<Object, Unclear> {
    let mut scanner = Scanner { text, at: text.len() - text.trim_start_matches('\u{feff}').len() };
    let member = scanner.value(String::new(), 0)?;
    scanner.blank()?;
    if scanner.at < text.len() { Err(Unclear::NotJson) } else { member.object.ok_or(Unclear::NoObject) }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments.
    fn blank(&mut self) -> Result<(), Unclear> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                comment.find("*/").ok_or(Unclear::NotJson)? + "/**/".len()
            } else {
                self.at += rest.len() - trimmed.len();
                return Ok(());
            };
            self.at += rest.len() - trimmed.len() + length;
        }
    }

    /// Skips blanks, and a character if it comes next.
    fn has(&mut self, character: char) -> Result<bool, Unclear> {
        self.blank()?;
        let has = self.rest().starts_with(character);
        self.at += if has { character.len_utf8() } else { 0 };
        Ok(has)
    }

    /// A value of this name.
    fn value(&mut self, name: String, depth: usize) -> Result<Member, Unclear> {
        self.blank()?;
        let start = self.at;
        let mut object = None;
        if depth > DEEPEST {
            return Err(Unclear::NotJson);
        } else if self.has('{')? {
            object = Some(self.object(depth + 1)?);
        } else if self.has('[')? {
            self.list(depth + 1)?;
        } else if self.rest().starts_with('"') {
            self.string()?;
        } else {
            self.word()?;
        }
        Ok(Member { name, place: start..self.at, object })
    }

    /// An object whose brace was read.
    fn object(&mut self, depth: usize) -> Result<Object, Unclear> {
        let mut object = Object::default();
        loop {
            if self.has('}')? {
                object.end = self.at - 1;
                return Ok(object);
            }
            if !object.members.is_empty() && !object.ends_with_comma {
                return Err(Unclear::NotJson);
            }
            let name = self.string()?;
            if !self.has(':')? {
                return Err(Unclear::NotJson);
            }
            object.members.push(self.value(name, depth)?);
            object.ends_with_comma = self.has(',')?;
        }
    }

    /// A list whose bracket was read.
    fn list(&mut self, depth: usize) -> Result<(), Unclear> {
        let mut may_go_on = true;
        while !self.has(']')? {
            if !may_go_on {
                return Err(Unclear::NotJson);
            }
            self.value(String::new(), depth)?;
            may_go_on = self.has(',')?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Unclear> {
        self.parsed(|rest| {
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

    /// A number, or one of the three words.
    fn word(&mut self) -> Result<Value, Unclear> {
        self.parsed(|rest| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            Some(rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
        })
    }

    /// What the part of the rest means that has this length.
    fn parsed<T: serde::de::DeserializeOwned>(
        &mut self,
        length: impl FnOnce(&str) -> Option<usize>,
    ) -> Result<T, Unclear> {
        let rest = self.rest();
        let length = length(rest).ok_or(Unclear::NotJson)?;
        let parsed = serde_json::from_str(&rest[..length]).map_err(|_| Unclear::NotJson)?;
        self.at += length;
        Ok(parsed)
    }
}
