//! `application/x-www-form-urlencoded`.

use bytes::Bytes;
use toolyard_core::{Json, ToolError};

use super::Given;
use crate::operation::Part;
use crate::wire::escape::{self, Escape};
use crate::wire::out::Out;
use crate::wire::{Opened, in_media_type, style};

/// The form of these members. A text is taken for one that is encoded already.
pub(super) fn write(given: &Given, parts: &[Part]) -> Result<Bytes, ToolError> {
    if let Some(text) = given.value.to_str() {
        return Ok(Bytes::from(escape::legal(&text).into_bytes()));
    }
    let mut out = Out::body(given.value.as_bytes().len());
    let mut pair = |name: &str, value: &str| out.pair("&", name, value);
    for (name, value) in given.members()? {
        let part = parts.iter().find(|part| part.name == name);
        match part.and_then(|part| part.styled) {
            None => {
                let media_type = part.and_then(|part| part.media_type.as_deref());
                member(&name, &value, media_type.unwrap_or_default(), &mut pair);
            }
            Some(styled) => {
                let at = given.at(&name);
                let escape = if styled.allow_reserved { Escape::Illegal } else { Escape::Reserved };
                match Opened::of(&at, &value)? {
                    Opened::Undefined => {}
                    value => style::pairs(&at, &name, &value, styled, escape, &mut pair)?,
                }
            }
        }
    }
    Ok(out.finish()?.into())
}

/// Members of which nothing is known.
pub(crate) fn members(members: &[(String, Json)], pair: &mut dyn FnMut(&str, &str)) {
    members.iter().for_each(|(name, value)| member(name, value, "", pair));
}

/// A text is itself, unless it is said to be JSON; an object is JSON, and an array is repeated. A file stays in base64: a
/// form has no bytes.
fn member(name: &str, value: &Json, media_type: &str, pair: &mut dyn FnMut(&str, &str)) {
    let name = escape::encoded(name);
    let mut write = |value: &Json| pair(&name, &escape::encoded(&in_media_type(media_type, value)));
    match value.to_items() {
        Ok(items) => items.iter().filter(|item| !item.is_null()).for_each(write),
        Err(_) => write(value),
    }
}
