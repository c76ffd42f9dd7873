//! An object that is opened one level deep.

use std::cmp::Ordering;
use std::fmt;

use bytes::Bytes;

use super::scan::JsonLexer;
use super::{Json, JsonError, check_utf8, has_breaks, without_breaks};

/// Number of members up to which duplicates are found by comparing them one by one, without sorting.
const FEW: usize = 16;

/// Maximum size of objects that are encoded into one buffer, in bytes.
const WORTH_COPYING: usize = 8 * 1024;

/// A member of an object with its name and value as text.
#[derive(Clone, PartialEq, Eq)]
struct JsonMember {
    key: Json,
    value: Json,
}

impl JsonMember {
    /// Returns `true` if the member has this name.
    fn is(&self, name: &str) -> bool {
        let (plain, name) = (self.plain_key(), name.as_bytes());
        match plain.len().cmp(&name.len()) {
            // Escapes are longer than what they stand for.
            Ordering::Less => false,
            Ordering::Equal => plain == name && !has_escape(plain),
            Ordering::Greater => {
                (plain[0] == b'\\' || name.first() == Some(&plain[0]))
                    && has_escape(plain)
                    && self.key.to_str().is_some_and(|key| key.as_bytes() == name)
            }
        }
    }

    /// Returns the name without its quotes, with its escapes.
    fn plain_key(&self) -> &[u8] {
        let quoted = self.key.as_bytes();
        &quoted[1..quoted.len() - 1]
    }
}

/// Returns `true` if a name has an escape sequence.
fn has_escape(name: &[u8]) -> bool {
    memchr::memchr(b'\\', name).is_some()
}

/// The members of an object in their order. Names are unique.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object {
    members: Vec<JsonMember>,
}

impl Object {
    /// Creates an object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Parses a text with exactly one object, in one pass.
    ///
    /// # Errors
    /// If the text is not a JSON object, or has duplicate members at this level.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        Self::parse_within(text, usize::MAX)
    }

    /// Parses a text with exactly one object that is nested `max_depth` levels deep at most, itself included.
    ///
    /// # Errors
    /// As [`Object::parse`], and with the problem [`TOO_DEEP`](super::TOO_DEEP).
    pub fn parse_within(text: impl Into<Bytes>, max_depth: usize) -> Result<Self, JsonError> {
        let text = text.into();
        check_utf8(&text)?;
        if !has_breaks(&text) {
            return Self::read(&text, JsonLexer::within(&text, max_depth));
        }
        // Its line breaks may be replaced only if it is valid.
        JsonLexer::within(&text, max_depth).whole_value()?;
        let text = without_breaks(text);
        Self::read(&text, JsonLexer::of_valid(&text, max_depth))
    }

    /// Opens a value that was validated before.
    pub(super) fn scanned(text: &Bytes, max_depth: usize) -> Result<Self, JsonError> {
        Self::read(text, JsonLexer::of_valid(text, max_depth))
    }

    fn read(text: &Bytes, mut lexer: JsonLexer<'_>) -> Result<Self, JsonError> {
        let mut members = Vec::with_capacity(8);
        lexer.members(|key, value| {
            members.push(JsonMember { key: Json(text.slice(key)), value: Json(text.slice(value)) });
        })?;
        let object = Self { members };
        match object.has_double_name() {
            false => Ok(object),
            true => Err(JsonError { problem: "a member is named twice in the object", offset: 0 }),
        }
    }

    fn has_double_name(&self) -> bool {
        let plain = || self.members.iter().map(JsonMember::plain_key);
        if self.members.len() <= FEW && !plain().any(has_escape) {
            return plain().enumerate().any(|(i, name)| plain().take(i).any(|earlier| earlier == name));
        }
        let mut names: Vec<_> = self.members.iter().map(|member| member.key.to_str()).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Returns the value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.members.iter().find(|member| member.is(name)).map(|member| &member.value)
    }

    /// Returns the content of a member that is a string.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<std::borrow::Cow<'_, str>> {
        self.get(name).and_then(Json::to_str)
    }

    /// Returns `true` if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (std::borrow::Cow<'_, str>, &Json)> {
        self.members.iter().map(|member| (member.key.to_str().unwrap_or_default(), &member.value))
    }

    /// Sets a member in its place, or adds it at the end.
    pub fn set(&mut self, name: &str, value: Json) {
        match self.members.iter_mut().find(|member| member.is(name)) {
            Some(member) => member.value = value,
            None => self.members.push(JsonMember { key: Json::string(name), value }),
        }
    }

    /// Sets a member, for construction in one expression: see [`Object::set`].
    #[must_use]
    pub fn with(mut self, name: &str, value: Json) -> Self {
        self.set(name, value);
        self
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let at = self.members.iter().position(|member| member.is(name))?;
        Some(self.members.remove(at).value)
    }

    /// Encodes the object: unchanged members keep their text.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (i, member) in self.members.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(member.key.as_bytes());
            out.push(b':');
            out.extend_from_slice(member.value.as_bytes());
        }
        out.push(b'}');
    }

    /// Returns the object as a value.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut out = Vec::with_capacity(self.written_size());
        self.write(&mut out);
        Json(out.into())
    }

    /// Returns the encoded object in pieces, which share the buffers of members where copying would cost more.
    #[must_use]
    pub fn to_pieces(&self) -> Vec<Bytes> {
        if self.written_size() <= WORTH_COPYING {
            return vec![self.to_json().bytes()];
        }
        let mut pieces = Vec::with_capacity(self.members.len() * 4 + 1);
        for (i, member) in self.members.iter().enumerate() {
            pieces.push(Bytes::from_static(if i == 0 { b"{" } else { b"," }));
            pieces.push(member.key.bytes());
            pieces.push(Bytes::from_static(b":"));
            pieces.push(member.value.bytes());
        }
        pieces.push(Bytes::from_static(b"}"));
        pieces
    }

    fn written_size(&self) -> usize {
        2 + self.members.iter().map(|m| m.key.as_bytes().len() + m.value.as_bytes().len() + 2).sum::<usize>()
    }
}

/// Shows the names only: values contain data of users and tools.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.iter().map(|member| member.key.as_text())).finish()
    }
}
