//! From arguments to the parts of a request.
//!
//! [`style`] has the one table of styles; [`path`] and [`parameter`] put values where they belong, [`body`] makes the
//! body. Where a rule was ours to choose, it is said there.
//!
//! `null`, and an array or an object with nothing in it, is what RFC 6570 (section 2.3) calls undefined. Such a value is
//! left out where its parameter is not required, and written as the column `undefined` of the specification has it where
//! it is. In an array or an object, `null` is always left out.

pub(crate) mod body;
pub(crate) mod escape;
pub(crate) mod media;
pub(crate) mod out;
pub(crate) mod parameter;
pub(crate) mod path;
pub(crate) mod style;

use toolyard_core::{Code, Json, ToolError};

/// How much of a name is said, in bytes. Members may be called anything.
const LONGEST_NAME: usize = 200;

/// An argument that makes no request. `at` is where it is among the arguments, as a JSON Pointer without its first slash.
pub(crate) fn invalid(at: &str, problem: impl std::fmt::Display) -> ToolError {
    let at = cut(at, LONGEST_NAME);
    ToolError::new(Code::InvalidArguments, format!("Invalid arguments: /{at}: {problem}"))
}

/// The beginning of a text, of so many bytes at most, in whole characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// A value as a person would write it: a string without quotes, anything else as its own JSON text.
pub(crate) fn plain(value: &Json) -> String {
    value.to_str().map_or_else(|| value.as_text().to_owned(), |text| text.into_owned())
}

/// A value as a text of a media type: JSON is its own text, and so is a string in any other.
pub(crate) fn in_media_type(media_type: &str, value: &Json) -> String {
    if media::is_json(media_type) { value.as_text().to_owned() } else { plain(value) }
}

/// A value, opened one level deep. What is undefined in it is left out.
pub(crate) enum Opened {
    Undefined,
    /// A string, a number or a boolean.
    Text(String),
    /// At least one.
    Items(Vec<Json>),
    /// At least one.
    Members(Vec<(String, Json)>),
}

impl Opened {
    pub(crate) fn of(at: &str, value: &Json) -> Result<Self, ToolError> {
        let unclear = |error| invalid(at, error);
        Ok(match value.as_bytes().first() {
            Some(b'[') => {
                let mut items = value.to_items().map_err(unclear)?;
                items.retain(|item| !item.is_null());
                if items.is_empty() { Self::Undefined } else { Self::Items(items) }
            }
            Some(b'{') => {
                let object = value.to_object().map_err(unclear)?;
                let there = object.iter().filter(|(_, value)| !value.is_null());
                let members: Vec<_> = there.map(|(name, value)| (name.into_owned(), value.clone())).collect();
                if members.is_empty() { Self::Undefined } else { Self::Members(members) }
            }
            _ if value.is_null() => Self::Undefined,
            _ => Self::Text(plain(value)),
        })
    }
}

/// Whether a value has no values in it.
pub(crate) fn is_primitive(value: &Json) -> bool {
    !matches!(value.as_bytes().first(), Some(b'{' | b'['))
}
