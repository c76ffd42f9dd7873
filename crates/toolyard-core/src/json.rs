//! JSON text that is relayed unchanged.
//!
//! A gateway must not change what it relays: `1.10` stays `1.10`, members keep their order, integers keep all digits,
//! and unknown members reach the other side. So a value is kept as a slice of the text that contained it ([`Json`]),
//! and is opened one level at a time ([`Object`]) where its content matters for routing. [`Json::to_value`] converts to
//! a typed value for validation only; its result is never sent.

mod object;
mod scan;
mod text;
mod value;

use std::borrow::Cow;
use std::fmt;

use bytes::{Bytes, BytesMut};

pub use object::Object;
use scan::JsonLexer;

/// Maximum nesting of typed values, whose users recurse. Text may be nested deeper, because it is read without recursion.
pub const MAX_DEPTH: usize = 1024;

/// Default limit of the nesting of arguments, results and definitions.
pub const DEFAULT_DEPTH: usize = 512;

/// Returns the text about a value that exceeds the configured limit of nesting.
#[must_use]
pub fn too_deep(max_depth: usize) -> String {
    format!("nested more than {max_depth} levels deep, the limit of `limits.jsonDepth`")
}

/// The [`JsonError::problem`] of a value that is nested more deeply than allowed.
pub const TOO_DEEP: &str = "nested too deeply";

/// The [`JsonError::problem`] of a value that is not the expected object.
pub const NOT_AN_OBJECT: &str = "expected an object";

/// The reason why a text is not JSON that can be relayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// Problem in a few words.
    pub problem: &'static str,
    /// Position in bytes from the beginning of the text.
    pub offset: usize,
}

/// A JSON value as text that was validated once and is never formatted again.
///
/// The text has no line breaks: outside of strings they are white space, and become blanks when the value is parsed, so
/// that it can be framed by lines (stdio) or SSE events. Cloning is cheap and shares the buffer; see [`Json::detach`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Bytes);

impl Json {
    /// Parses a text with exactly one value, surrounded by optional white space.
    ///
    /// # Errors
    /// If the text is not UTF-8, or not JSON (RFC 8259).
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        Self::parse_within(text, usize::MAX)
    }

    /// Parses a text with exactly one value that is nested `max_depth` levels deep at most.
    ///
    /// # Errors
    /// As [`Json::parse`], and with the problem [`TOO_DEEP`].
    pub fn parse_within(text: impl Into<Bytes>, max_depth: usize) -> Result<Self, JsonError> {
        let text = text.into();
        check_utf8(&text)?;
        let range = JsonLexer::within(&text, max_depth).whole_value()?;
        Ok(Self(without_breaks(text).slice(range)))
    }

    /// Returns a JSON string with the content `text`.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        text::write_quoted(text, &mut out);
        Self(out.into())
    }

    /// Appends a JSON string with the content `text`.
    pub fn write_string(text: &str, out: &mut Vec<u8>) {
        text::write_quoted(text, out);
    }

    /// Returns `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// Returns an object without members.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Returns `true` or `false`.
    #[must_use]
    pub fn boolean(value: bool) -> Self {
        Self(Bytes::from_static(if value { b"true" } else { b"false" }))
    }

    /// Returns an integer.
    #[must_use]
    pub fn integer(number: i64) -> Self {
        Self(number.to_string().into())
    }

    /// Returns an unsigned integer.
    #[must_use]
    pub fn unsigned(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Encodes a value of our own, such as the data of an error.
    #[must_use]
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// Returns an array of `items`.
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

    /// Returns the text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text, sharing its buffer.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Returns the text.
    #[must_use]
    pub fn as_text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the same value in a buffer of its own, for values that outlive their message: a slice of a few bytes
    /// would otherwise keep megabytes alive.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns the same value in the buffer that `replace` returns for its bytes. That buffer may own something else for
    /// as long as the bytes live. Its bytes must be equal.
    #[must_use]
    pub fn with_bytes(&self, replace: impl FnOnce(Bytes) -> Bytes) -> Self {
        let bytes = replace(self.0.clone());
        debug_assert!(bytes == self.0, "the replacement has other bytes");
        Self(bytes)
    }

    /// Opens an object. Members keep their order and their text.
    ///
    /// # Errors
    /// If this is not an object, or has duplicate members: two readers could take different ones.
    pub fn to_object(&self) -> Result<Object, JsonError> {
        Object::scanned(&self.0, usize::MAX)
    }

    /// Opens an object that is nested `max_depth` levels deep at most, itself included.
    ///
    /// # Errors
    /// As [`Json::to_object`], and with the problem [`TOO_DEEP`].
    pub fn to_object_within(&self, max_depth: usize) -> Result<Object, JsonError> {
        Object::scanned(&self.0, max_depth)
    }

    /// Checks that this is an object that [`Json::to_object_within`] opens.
    ///
    /// # Errors
    /// As [`Json::to_object_within`].
    pub fn check_object_within(&self, max_depth: usize) -> Result<(), JsonError> {
        Object::check(&self.0, max_depth)
    }

    /// Opens an array.
    ///
    /// # Errors
    /// If this is not an array.
    pub fn to_items(&self) -> Result<Vec<Self>, JsonError> {
        let mut items = Vec::new();
        JsonLexer::of_valid(&self.0, usize::MAX).items(|range| items.push(Self(self.0.slice(range))))?;
        Ok(items)
    }

    /// Returns the content of a string; `None` for other values.
    #[must_use]
    pub fn to_str(&self) -> Option<Cow<'_, str>> {
        text::unquote(&self.0)
    }

    /// Returns `true` if this is what [`Json::string`] makes of a text that needs no escapes.
    fn is_plain_string(&self, text: &str) -> bool {
        let content = self.0.strip_prefix(b"\"").and_then(|quoted| quoted.strip_suffix(b"\""));
        content == Some(text.as_bytes()) && !text.contains('\\')
    }

    /// Returns a boolean; `None` for other values.
    #[must_use]
    pub fn to_bool(&self) -> Option<bool> {
        match &*self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Returns `true` for objects.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns `true` for strings.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.0.first() == Some(&b'"')
    }

    /// Returns `true` for `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == b"null"
    }

    /// Returns `true` for numbers.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.0.first(), Some(b'-' | b'0'..=b'9'))
    }

    /// Returns `true` if the value is nested more than `max_depth` levels deep, itself included.
    #[must_use]
    pub fn is_deeper_than(&self, max_depth: usize) -> bool {
        // Each level has a bracket on both sides.
        self.0.len() / 2 > max_depth && JsonLexer::within(&self.0, max_depth).whole_value().is_err()
    }

    /// Returns a typed value for validation. The conversion is lossy, and the result is never sent: numbers beyond
    /// 64-bit floats become the largest one, unpaired surrogates become U+FFFD, and values nested deeper than
    /// [`MAX_DEPTH`] become `null`.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        value::to_value(self)
    }
}

/// Parses a text to a typed value, as [`Json::to_value`] does, without copying it; `None` if it is not JSON.
pub(crate) fn value_of(text: &str) -> Option<serde_json::Value> {
    let range = JsonLexer::within(text.as_bytes(), usize::MAX).whole_value().ok()?;
    Some(value::value_of(&text.as_bytes()[range]))
}

/// Shows the size only: values contain data of users and tools.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

/// Replaces line breaks by blanks, in text that a [`JsonLexer`] has accepted: a string has no raw line break, so no
/// value changes.
fn without_breaks(text: Bytes) -> Bytes {
    if !has_breaks(&text) {
        return text;
    }
    let mut text = text.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared));
    for byte in text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    text.freeze()
}

fn has_breaks(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_some()
}

fn check_utf8(text: &[u8]) -> Result<(), JsonError> {
    std::str::from_utf8(text)
        .map(|_| ())
        .map_err(|error| JsonError { problem: "not UTF-8", offset: error.valid_up_to() })
}

#[cfg(test)]
mod tests;
