//! The body of a request.

mod file;
pub(crate) mod form;
mod multipart;
mod xml;

use std::borrow::Cow;

use bytes::Bytes;
use toolyard_core::{Json, Object, ToolError};

use super::{in_media_type, invalid, media};
use crate::operation::{Body, BodyKind, Content};

/// A body, and what it says it is.
pub(crate) struct Written {
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

/// What a body is made of.
struct Given {
    value: Json,
    /// The argument that it is; empty where each member is one.
    argument: String,
    /// Members that are arguments of another name, and these.
    arguments: Vec<(String, String)>,
}

impl Given {
    /// Where a member is among the arguments.
    fn at(&self, member: &str) -> String {
        match self.arguments.iter().find(|(_, of)| of == member) {
            Some((argument, _)) => argument.clone(),
            None if self.argument.is_empty() => member.to_owned(),
            None => format!("{}/{member}", self.argument),
        }
    }

    /// Its members, of which none is `null`.
    fn members(&self) -> Result<Vec<(String, Json)>, ToolError> {
        let object = self.value.to_object().map_err(|error| invalid(&self.argument, error))?;
        let there = object.iter().filter(|(_, value)| !value.is_null());
        Ok(there.map(|(name, value)| (name.into_owned(), value.clone())).collect())
    }
}

/// The body that is made of these arguments, which parameters have left.
pub(crate) fn write(body: &Body, arguments: &Object) -> Result<Option<Written>, ToolError> {
    let Some(given) = given(body, arguments)? else { return Ok(None) };
    let written = |media_type: &str, bytes: Bytes| Written { media_type: media_type.to_owned(), bytes };
    Ok(Some(match &body.kind {
        BodyKind::Json => written(one(&body.media_type, "application/json"), given.value.bytes()),
        BodyKind::Form(parts) => {
            let declared = one(&body.media_type, "application/x-www-form-urlencoded");
            written(declared, form::write(&given, parts)?)
        }
        BodyKind::Multipart(parts) => {
            let (boundary, bytes) = multipart::write(&given, parts)?;
            let essence = media::essence(one(&body.media_type, "multipart/form-data"));
            written(&format!("{essence}; boundary={boundary}"), bytes)
        }
        BodyKind::Xml(shape) => written(one(&body.media_type, "application/xml"), xml::write(&given, shape)?),
        BodyKind::Text => {
            let text = in_media_type(&body.media_type, &given.value);
            written(&named(one(&body.media_type, "text/plain"), &text), text.into())
        }
        BodyKind::Bytes => {
            let file = file::read(&given.argument, &given.value)?;
            let declared = one(&body.media_type, "application/octet-stream");
            written(file.media_type.as_deref().unwrap_or(declared), file.bytes.into())
        }
    }))
}

/// What `null` is depends on whether there has to be a body, as with parameters.
fn given(body: &Body, arguments: &Object) -> Result<Option<Given>, ToolError> {
    match &body.content {
        Content::Argument(argument) => match arguments.get(argument) {
            None if body.required => Err(invalid(argument, "it is missing")),
            Some(value) if body.required || !value.is_null() => {
                let (value, argument) = (value.clone(), argument.clone());
                Ok(Some(Given { value, argument, arguments: Vec::new() }))
            }
            _ => Ok(None),
        },
        Content::Members { named, open } => {
            let members: Vec<_> = members(named, *open, arguments).collect();
            let is_there = body.required || !members.is_empty();
            let (value, argument) = (object(&members), String::new());
            Ok(is_there.then(|| Given { value, argument, arguments: named.clone() }))
        }
    }
}

/// The arguments that are members, with the names that they have as such.
fn members<'a>(
    named: &'a [(String, String)],
    open: bool,
    arguments: &'a Object,
) -> impl Iterator<Item = (Cow<'a, str>, &'a Json)> {
    arguments.iter().filter_map(move |(argument, value)| {
        match named.iter().find(|(name, _)| *name == argument) {
            Some((_, member)) => Some((Cow::Borrowed(&**member), value)),
            None => {
                let is_taken = named.iter().any(|(_, member)| *member == argument);
                (open && !is_taken).then_some((argument, value))
            }
        }
    })
}

/// The object of these members, of which no two share a name. There may be more of them than [`Object::set`], which looks
/// for each among all others, is made for.
fn object(members: &[(Cow<'_, str>, &Json)]) -> Json {
    let mut text = vec![b'{'];
    for (index, (name, value)) in members.iter().enumerate() {
        let before: &[u8] = if index == 0 { b"" } else { b"," };
        for piece in [before, Json::string(name).as_bytes(), b":", value.as_bytes()] {
            text.extend_from_slice(piece);
        }
    }
    text.push(b'}');
    // Its pieces were read before.
    Json::parse(text).unwrap_or_else(|_| Json::null())
}

/// A media type; where the document has a range, such as `*/*`, the one that is meant.
fn one<'a>(declared: &'a str, otherwise: &'a str) -> &'a str {
    media::concrete(declared).unwrap_or(otherwise)
}

/// The type of a text. What reads one that does not say its charset may take it for Latin-1.
fn named(media_type: &str, text: &str) -> String {
    let is_clear = text.is_ascii() || media_type.contains(';') || !media::is_of(media_type, "text");
    if is_clear { media_type.to_owned() } else { format!("{media_type}; charset=utf-8") }
}
