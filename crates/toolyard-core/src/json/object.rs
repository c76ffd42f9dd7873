//! An object that is opened one level deep.

use std::fmt;

use bytes::Bytes;

use super::scan::JsonLexer;
use super::{Json, JsonError, check_utf8, has_breaks, without_breaks};

/// Number of members up to which duplicates are found by comparing them one by one, without sorting.
const FEW: usize = 16;

/// Maximum size of objects that are encoded into one buffer, in bytes.
const WORTH_COPYING: usize = 8 * 1024;

/// The error of an object with two members of one name.
const DOUBLE_NAME: JsonError = JsonError { problem: "a member is named twice in the object", offset: 0 };

/// A member of an object with its name and value as text.
#[derive(Clone, PartialEq, Eq)]
struct JsonMember {
    key: Json,
    value: Json,
    /// `true` if the name has an escape sequence, so that it is not the text between its quotes.
    has_escape: bool,
}

impl JsonMember {
    fn new(name: &str, value: Json) -> Self {
        let key = Json::string(name);
        let has_escape = memchr::memchr(b'\\', key.as_bytes()).is_some();
        Self { key, value, has_escape }
    }

    /// Returns `true` if the member has this name.
    fn is(&self, name: &str) -> bool {
        match self.has_escape {
            false => self.plain_key() == name.as_bytes(),
            true => self.key.to_str().is_some_and(|key| key == name),
        }
    }

    /// Returns the name without its quotes, with its escapes.
    fn plain_key(&self) -> &[u8] {
        let quoted = self.key.as_bytes();
        &quoted[1..quoted.len() - 1]
    }
}

/// Returns `true` if two of a few names are equal.
fn has_double<T: PartialEq>(names: impl Iterator<Item = T> + Clone) -> bool {
    names.clone().enumerate().any(|(i, name)| names.clone().take(i).any(|earlier| earlier == name))
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

    /// Checks a value that was validated before, as [`Object::scanned`] does, without keeping its members.
    pub(super) fn check(text: &Bytes, max_depth: usize) -> Result<(), JsonError> {
        let mut names = [&[][..]; FEW];
        let (mut count, mut has_escape) = (0, false);
        JsonLexer::of_valid(text, max_depth).members(|key, _| {
            if let Some(name) = names.get_mut(count) {
                *name = &text[key.range];
            }
            count += 1;
            has_escape |= key.has_escape;
        })?;
        match names.get(..count) {
            Some(names) if !has_escape => match has_double(names.iter()) {
                false => Ok(()),
                true => Err(DOUBLE_NAME),
            },
            _ => Self::scanned(text, max_depth).map(drop),
        }
    }

    fn read(text: &Bytes, mut lexer: JsonLexer<'_>) -> Result<Self, JsonError> {
        let mut members = Vec::with_capacity(8);
        lexer.members(|key, value| {
            let (name, value) = (Json(text.slice(key.range)), Json(text.slice(value)));
            members.push(JsonMember { key: name, value, has_escape: key.has_escape });
        })?;
        let object = Self { members };
        match object.has_double_name() {
            false => Ok(object),
            true => Err(DOUBLE_NAME),
        }
    }

    fn has_double_name(&self) -> bool {
        let plain = || self.members.iter().map(JsonMember::plain_key);
        if self.members.len() <= FEW && !self.members.iter().any(|member| member.has_escape) {
            return has_double(plain());
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
            None => self.members.push(JsonMember::new(name, value)),
        }
    }

    /// Sets a member to a string, as [`Object::set`] does. A member with the same text is not written again.
    pub fn set_string(&mut self, name: &str, text: &str) {
        match self.get(name) {
            Some(value) if value.is_plain_string(text) => {}
            _ => self.set(name, Json::string(text)),
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
