//! The body of a request.

mod file;
pub(crate) mod form;
mod multipart;
mod xml;

use std::borrow::Cow;

use bytes::Bytes;
use toolyard_core::{Json, Object, ToolError};

use super::{in_media_type, invalid_argument, media};
use crate::operation::{BodyContent, BodyKind, RequestBody};

/// An encoded body with its media type.
pub(crate) struct WrittenBody {
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

/// The value of a body.
struct BodyValue {
    value: Json,
    /// Name of the argument with the whole body; empty if each member is an argument.
    argument: String,
    /// Arguments with the names of their members, if these differ.
    arguments: Vec<(String, String)>,
}

impl BodyValue {
    /// Returns the location of a member among the arguments.
    fn at(&self, member: &str) -> String {
        match self.arguments.iter().find(|(_, of)| of == member) {
            Some((argument, _)) => argument.clone(),
            None if self.argument.is_empty() => member.to_owned(),
            None => format!("{}/{member}", self.argument),
        }
    }

    /// The members, without those that are `null`.
    fn members(&self) -> Result<Vec<(String, Json)>, ToolError> {
        let object = self.value.to_object().map_err(|error| invalid_argument(&self.argument, error))?;
        let there = object.iter().filter(|(_, value)| !value.is_null());
        Ok(there.map(|(name, value)| (name.into_owned(), value.clone())).collect())
    }
}

/// Encodes the body from the arguments that parameters have left.
pub(crate) fn write(body: &RequestBody, arguments: &Object) -> Result<Option<WrittenBody>, ToolError> {
    let Some(body_value) = body_value(body, arguments)? else { return Ok(None) };
    let encoded_body =
        |media_type: &str, bytes: Bytes| WrittenBody { media_type: media_type.to_owned(), bytes };
    Ok(Some(match &body.kind {
        BodyKind::Json => {
            encoded_body(concrete_or(&body.media_type, "application/json"), body_value.value.bytes())
        }
        BodyKind::Form(parts) => {
            let declared = concrete_or(&body.media_type, "application/x-www-form-urlencoded");
            encoded_body(declared, form::write(&body_value, parts)?)
        }
        BodyKind::Multipart(parts) => {
            let (boundary, bytes) = multipart::write(&body_value, parts)?;
            let essence = media::essence(concrete_or(&body.media_type, "multipart/form-data"));
            encoded_body(&format!("{essence}; boundary={boundary}"), bytes)
        }
        BodyKind::Xml(shape) => {
            encoded_body(concrete_or(&body.media_type, "application/xml"), xml::write(&body_value, shape)?)
        }
        BodyKind::Text => {
            let text = in_media_type(&body.media_type, &body_value.value);
            encoded_body(&with_charset(concrete_or(&body.media_type, "text/plain"), &text), text.into())
        }
        BodyKind::Bytes => {
            let file = file::read(&body_value.argument, &body_value.value)?;
            let declared = concrete_or(&body.media_type, "application/octet-stream");
            encoded_body(file.media_type.as_deref().unwrap_or(declared), file.bytes.into())
        }
    }))
}

/// Collects the value of a body. `null` is omitted if the body is optional, as for parameters.
fn body_value(body: &RequestBody, arguments: &Object) -> Result<Option<BodyValue>, ToolError> {
    match &body.content {
        BodyContent::Argument(argument) => match arguments.get(argument) {
            None if body.required => Err(invalid_argument(argument, "it is missing")),
            Some(value) if body.required || !value.is_null() => {
                let (value, argument) = (value.clone(), argument.clone());
                Ok(Some(BodyValue { value, argument, arguments: Vec::new() }))
            }
            _ => Ok(None),
        },
        BodyContent::Members { named, accepts_others: open } => {
            let members: Vec<_> = members(named, *open, arguments).collect();
            let is_there = body.required || !members.is_empty();
            let (value, argument) = (object(&members), String::new());
            Ok(is_there.then(|| BodyValue { value, argument, arguments: named.clone() }))
        }
    }
}

/// Returns the arguments that are members, with their member names.
fn members<'a>(
    named: &'a [(String, String)],
    open: bool,
    arguments: &'a Object,
) -> impl Iterator<Item = (Cow<'a, str>, &'a Json)> {
    arguments.iter().filter_map(move |(argument, value)| {
        match named.iter().find(|(name, _)| *name == argument) {
            Some((_, member)) => Some((Cow::Borrowed(&**member), value)),
            None => {
                let is_used = named.iter().any(|(_, member)| *member == argument);
                (open && !is_used).then_some((argument, value))
            }
        }
    })
}

/// Builds the object of these members, whose names are unique. [`Object::set`] searches all members and is too slow for
/// many.
fn object(members: &[(Cow<'_, str>, &Json)]) -> Json {
    let mut text = vec![b'{'];
    for (index, (name, value)) in members.iter().enumerate() {
        let before: &[u8] = if index == 0 { b"" } else { b"," };
        for piece in [before, Json::string(name).as_bytes(), b":", value.as_bytes()] {
            text.extend_from_slice(piece);
        }
    }
    text.push(b'}');
    // The pieces are valid JSON.
    Json::parse(text).unwrap_or_else(|_| Json::null())
}

/// Returns a media type; `otherwise` replaces a range such as `*/*`.
fn concrete_or<'a>(declared: &'a str, otherwise: &'a str) -> &'a str {
    media::concrete(declared).unwrap_or(otherwise)
}

/// Adds the charset to a text type: without it readers may assume Latin-1.
fn with_charset(media_type: &str, text: &str) -> String {
    let is_clear = text.is_ascii() || media_type.contains(';') || !media::is_of(media_type, "text");
    if is_clear { media_type.to_owned() } else { format!("{media_type}; charset=utf-8") }
}
