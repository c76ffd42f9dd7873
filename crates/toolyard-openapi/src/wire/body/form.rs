//! `application/x-www-form-urlencoded`.

use bytes::Bytes;
use toolyard_core::{Json, ToolError};

use super::BodyValue;
use crate::operation::FormPart;
use crate::wire::escape::{self, PercentEscape};
use crate::wire::out::BoundedText;
use crate::wire::{OpenedValue, in_media_type, style};

/// Encodes a form. A string value is an already encoded form.
pub(super) fn write(body: &BodyValue, parts: &[FormPart]) -> Result<Bytes, ToolError> {
    if let Some(text) = body.value.to_str() {
        return Ok(Bytes::from(escape::encode_illegal(&text).into_bytes()));
    }
    let mut out = BoundedText::body(body.value.as_bytes().len());
    let mut pair = |name: &str, value: &str| out.pair("&", name, value);
    for (name, value) in body.members()? {
        let part = parts.iter().find(|part| part.name == name);
        match part.and_then(|part| part.styled) {
            None => {
                let media_type = part.and_then(|part| part.media_type.as_deref());
                member(&name, &value, media_type.unwrap_or_default(), &mut pair);
            }
            Some(styled) => {
                let at = body.at(&name);
                let escape =
                    if styled.allow_reserved { PercentEscape::Illegal } else { PercentEscape::Reserved };
                match OpenedValue::of(&at, &value)? {
                    OpenedValue::Undefined => {}
                    value => style::pairs(&at, &name, &value, styled, escape, &mut pair)?,
                }
            }
        }
    }
    Ok(out.finish()?.into())
}

/// Encodes members without a description.
pub(crate) fn members(members: &[(String, Json)], pair: &mut dyn FnMut(&str, &str)) {
    members.iter().for_each(|(name, value)| member(name, value, "", pair));
}

/// Encodes a member: as plain text, or as JSON if it is an object or has a JSON media type; an array is repeated. A
/// file stays in base64, because a form has no bytes.
fn member(name: &str, value: &Json, media_type: &str, pair: &mut dyn FnMut(&str, &str)) {
    let name = escape::percent_encoded(name);
    let mut write = |value: &Json| pair(&name, &escape::percent_encoded(&in_media_type(media_type, value)));
    match value.to_items() {
        Ok(items) => items.iter().filter(|item| !item.is_null()).for_each(write),
        Err(_) => write(value),
    }
}
