//! Encodes arguments into the parts of a request.
//!
//! [`style`] implements the table of styles; [`path`] and [`parameter`] encode parameters, [`body`] the body. Decisions
//! that the specification leaves open are documented there.
//!
//! `null`, and an empty array or object, is undefined in the terms of RFC 6570 (section 2.3). Undefined values are
//! omitted for optional parameters, and written as in the column `undefined` of the specification for required ones. In
//! an array or an object, `null` is always omitted.

pub(crate) mod body;
pub(crate) mod escape;
pub(crate) mod media;
pub(crate) mod out;
pub(crate) mod parameter;
pub(crate) mod path;
pub(crate) mod style;

use toolyard_core::{ErrorCode, Json, ToolError};

/// Maximum length of a path in an error, in bytes. Member names may have any length.
const MAX_PATH_BYTES: usize = 200;

/// Returns the error for an invalid argument. `at` is its JSON Pointer among the arguments, without the first slash.
pub(crate) fn invalid_argument(at: &str, problem: impl std::fmt::Display) -> ToolError {
    let at = truncate(at, MAX_PATH_BYTES);
    ToolError::new(ErrorCode::InvalidArguments, format!("Invalid arguments: /{at}: {problem}"))
}

/// Truncates a text to a number of bytes, at a character boundary.
pub(crate) fn truncate(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Returns a value as plain text: a string without quotes, anything else as JSON.
pub(crate) fn plain(value: &Json) -> String {
    value.to_str().map_or_else(|| value.as_text().to_owned(), |text| text.into_owned())
}

/// Returns a value as a text of a media type: as JSON for JSON types, else as plain text.
pub(crate) fn in_media_type(media_type: &str, value: &Json) -> String {
    if media::is_json(media_type) { value.as_text().to_owned() } else { plain(value) }
}

/// A value, decoded one level deep, without undefined values.
pub(crate) enum OpenedValue {
    Undefined,
    /// A string, a number or a boolean.
    Text(String),
    /// Items, at least one.
    Items(Vec<Json>),
    /// Members, at least one.
    Members(Vec<(String, Json)>),
}

impl OpenedValue {
    pub(crate) fn of(at: &str, value: &Json) -> Result<Self, ToolError> {
        let unclear = |error| invalid_argument(at, error);
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

/// True for values other than arrays and objects.
pub(crate) fn is_primitive(value: &Json) -> bool {
    !matches!(value.as_bytes().first(), Some(b'{' | b'['))
}
