//! JSON text that is passed on as it came.
//!
//! A gateway must not change what it relays: `1.10` stays `1.10`, members keep their order, integers
//! keep all their digits, and a member that nobody here knows reaches the other side. So a value is
//! kept as a slice of the text that brought it ([`Json`]), and is opened one level at a time
//! ([`Object`]) only where something in it decides the way. This module is not a parser into typed
//! values: [`Json::to_value`] is there for checks that need one, and its result never goes on.

mod object;
mod scan;
mod text;
mod value;

use std::borrow::Cow;
use std::fmt;

use bytes::{Bytes, BytesMut};

pub use object::Object;
use scan::Scanner;

/// How deep values may nest. Deeper text is refused: readers down the line recurse.
pub const MAX_DEPTH: usize = 128;

/// The [`JsonError::problem`] of a text that is some other value than the object that was expected.
pub const NOT_AN_OBJECT: &str = "expected an object";

/// Why a text is not JSON that can be relayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// What is wrong, in a few words.
    pub problem: &'static str,
    /// Where, counted in bytes from the beginning of the text.
    pub offset: usize,
}

/// One JSON value, as text that was checked once and is never written differently again.
///
/// The text contains no line break: outside of strings a break is only white space, and is turned
/// into a blank when the value is read, so that a value can be framed by lines (stdio) or by SSE
/// events. Cloning is cheap and shares the buffer; see [`Json::detach`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Bytes);

impl Json {
    /// Reads one value that fills `text`, surrounding white space apart.
    ///
    /// # Errors
    /// When the text is not UTF-8, not JSON (RFC 8259), or nests deeper than [`MAX_DEPTH`].
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        let text = text.into();
        check_utf8(&text)?;
        let range = Scanner::new(&text).whole_value()?;
        Ok(Self(without_breaks(text).slice(range)))
    }

    /// The JSON string that means `text`.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        text::write_quoted(text, &mut out);
        Self(out.into())
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// `true` or `false`.
    #[must_use]
    pub fn boolean(value: bool) -> Self {
        Self(Bytes::from_static(if value { b"true" } else { b"false" }))
    }

    /// A whole number.
    #[must_use]
    pub fn integer(number: i64) -> Self {
        Self(number.to_string().into())
    }

    /// A whole number that is not negative.
    #[must_use]
    pub fn unsigned(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Writes a value that was made here, such as an error's data or a server's own description.
    #[must_use]
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// The array of `items`.
    pub fn array<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = vec![b'['];
        for item in items {
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&item.0);
        }
        out.push(b']');
        Self(out.into())
    }

    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, sharing its buffer.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The text as a string slice.
    #[must_use]
    pub fn as_text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The same value in a buffer of its own, for what outlives the body that brought it: a slice of
    /// a few bytes would otherwise keep megabytes alive.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Opens an object. Members keep their order and their text.
    ///
    /// # Errors
    /// When this is not an object, or names a member twice: two readers down the line could take
    /// different ones.
    pub fn to_object(&self) -> Result<Object, JsonError> {
        Object::scanned(&self.0)
    }

    /// Opens an array.
    ///
    /// # Errors
    /// When this is not an array.
    pub fn to_items(&self) -> Result<Vec<Self>, JsonError> {
        let mut items = Vec::new();
        Scanner::new(&self.0).items(|range| items.push(Self(self.0.slice(range))))?;
        Ok(items)
    }

    /// The meaning of a string; `None` for any other kind of value.
    #[must_use]
    pub fn to_str(&self) -> Option<Cow<'_, str>> {
        text::unquote(&self.0)
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn to_bool(&self) -> Option<bool> {
        match &*self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Whether this is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == b"null"
    }

    /// Whether this is a number.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.0.first(), Some(b'-' | b'0'..=b'9'))
    }

    /// A typed value for a check that needs one. It is lossy by intent and never relayed: a number
    /// beyond 64-bit floats becomes the largest one, an unpaired surrogate becomes U+FFFD.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        value::to_value(self)
    }
}

/// Shows the size only: values hold what users and tools say to each other.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

/// Turns line breaks into blanks. Only for text that a [`Scanner`] has accepted: a string cannot hold
/// a raw break, so that each one found is white space and no value changes.
fn without_breaks(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut text = text.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared));
    for byte in text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    text.freeze()
}

fn check_utf8(text: &[u8]) -> Result<(), JsonError> {
    std::str::from_utf8(text)
        .map(|_| ())
        .map_err(|error| JsonError { problem: "not UTF-8", offset: error.valid_up_to() })
}

#[cfg(test)]
mod tests;
