//! Values of the well-known types.

use std::collections::BTreeMap;

use super::text::JsonText;
use super::{DecodeError, Decoded, Decoder, MAX_NESTING, default_value, is_of_kind, scalar, text};
use crate::descriptor::any::type_name;
use crate::descriptor::time;
use crate::descriptor::types::{FieldKind, WellKnown};
use crate::descriptor::wire::{WireReader, WireValue};

impl Decoder<'_> {
    /// Writes a well-known message.
    pub(super) fn known(
        &self,
        bytes: &[u8],
        known: WellKnown,
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<()> {
        match known {
            WellKnown::Any => self.any(bytes, depth, out)?,
            WellKnown::Timestamp => {
                let (seconds, nanos) = time_parts(bytes)?;
                let text = time::format_timestamp(seconds, nanos);
                out.quoted(&text.ok_or(DecodeError::new("a timestamp is out of range"))?);
            }
            WellKnown::Duration => {
                let (seconds, nanos) = time_parts(bytes)?;
                let text = time::format_duration(seconds, nanos);
                out.quoted(&text.ok_or(DecodeError::new("a duration is out of range"))?);
            }
            WellKnown::FieldMask => field_mask(bytes, out)?,
            WellKnown::Struct => structure(bytes, depth, out)?,
            WellKnown::ListValue => list(bytes, depth, out)?,
            WellKnown::Value => value(bytes, depth, out)?,
            WellKnown::Wrapper(kind) => {
                let value = last(bytes, 1, |value| is_of_kind(kind, value))?;
                scalar(kind, value.unwrap_or_else(|| default_value(kind)), out)?;
            }
            WellKnown::Empty => {
                WireReader::new(bytes).check()?;
                out.push("{}");
            }
        }
        out.check()
    }

    /// Writes an `Any`. Its bytes, in base64, are its value if the descriptors do not have its type: an error would hide
    /// the rest of the result.
    fn any(&self, bytes: &[u8], depth: usize, out: &mut JsonText) -> Decoded<()> {
        let is_bytes = |value: WireValue<'_>| matches!(value, WireValue::Bytes(_));
        let member = |number| match last(bytes, number, is_bytes)? {
            Some(WireValue::Bytes(bytes)) => Ok::<_, DecodeError>(bytes),
            _ => Ok(&[][..]),
        };
        let (url, value) = (text(member(1)?)?, member(2)?);
        if url.is_empty() && value.is_empty() {
            out.push("{}");
            return Ok(());
        }
        if depth + 1 >= MAX_NESTING {
            return Err(DecodeError::new("nested more than 100 levels deep"));
        }
        out.push("{\"@type\":");
        out.quoted(url);
        match type_name(url).and_then(|name| self.pool.message_named(name)) {
            Some(message) => {
                let message = self.pool.message(message);
                match message.known {
                    None => self.fields(value, message, depth + 1, false, out)?,
                    Some(WellKnown::Empty) => {}
                    Some(known) => {
                        out.push(",\"value\":");
                        self.known(value, known, depth + 1, out).map_err(|error| error.at("value"))?;
                    }
                }
            }
            None => {
                out.push(",\"value\":");
                out.base64(value);
            }
        }
        out.push("}");
        Ok(())
    }
}

/// Returns the last value of a field.
fn last(
    bytes: &[u8],
    number: u32,
    is_valid: impl Fn(WireValue<'_>) -> bool,
) -> Decoded<Option<WireValue<'_>>> {
    let mut found = None;
    let mut fields = WireReader::new(bytes);
    while let Some((other, value)) = fields.field()? {
        if other == number && is_valid(value) {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Returns the seconds and nanoseconds of a `Timestamp` or `Duration`.
fn time_parts(bytes: &[u8]) -> Decoded<(i64, i64)> {
    let part = |number| match last(bytes, number, |value| matches!(value, WireValue::Varint(_)))? {
        Some(WireValue::Varint(value)) => Ok::<_, DecodeError>(value as i64),
        _ => Ok(0),
    };
    Ok((part(1)?, i64::from(part(2)? as i32)))
}

fn field_mask(bytes: &[u8], out: &mut JsonText) -> Decoded<()> {
    let mut paths = String::new();
    let mut fields = WireReader::new(bytes);
    while let Some((number, value)) = fields.field()? {
        let (1, WireValue::Bytes(path)) = (number, value) else { continue };
        if !paths.is_empty() {
            paths.push(',');
        }
        let camel = camel_case(text(path)?);
        paths.push_str(&camel.ok_or(DecodeError::new("a path of a field mask is not in snake_case"))?);
    }
    out.quoted(&paths);
    Ok(())
}

/// Returns a path in lowerCamelCase; `None` if the way back would lead to another one.
fn camel_case(path: &str) -> Option<String> {
    let mut out = String::with_capacity(path.len());
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            'A'..='Z' => return None,
            '_' => out.push(chars.next().filter(char::is_ascii_lowercase)?.to_ascii_uppercase()),
            _ => out.push(c),
        }
    }
    Some(out)
}

fn structure(bytes: &[u8], depth: usize, out: &mut JsonText) -> Decoded<()> {
    let mut members = BTreeMap::new();
    let mut fields = WireReader::new(bytes);
    while let Some((number, entry)) = fields.field()? {
        let (1, WireValue::Bytes(entry)) = (number, entry) else { continue };
        let (mut key, mut value): (&str, &[u8]) = ("", &[]);
        let mut fields = WireReader::new(entry);
        while let Some((number, field)) = fields.field()? {
            match (number, field) {
                (1, WireValue::Bytes(bytes)) => key = text(bytes)?,
                (2, WireValue::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        members.insert(key, value);
    }
    out.push("{");
    let mut is_first = true;
    for (name, member) in members {
        out.push(if std::mem::take(&mut is_first) { "" } else { "," });
        out.name(name);
        value(member, depth + 1, out)?;
    }
    out.push("}");
    out.check()
}

fn list(bytes: &[u8], depth: usize, out: &mut JsonText) -> Decoded<()> {
    out.push("[");
    let mut is_first = true;
    let mut fields = WireReader::new(bytes);
    while let Some((number, item)) = fields.field()? {
        let (1, WireValue::Bytes(item)) = (number, item) else { continue };
        out.push(if std::mem::take(&mut is_first) { "" } else { "," });
        value(item, depth + 1, out)?;
        out.check()?;
    }
    out.push("]");
    Ok(())
}

/// Writes a `Value`; `null` for one without a value.
fn value(bytes: &[u8], depth: usize, out: &mut JsonText) -> Decoded<()> {
    if depth >= MAX_NESTING {
        return Err(DecodeError::new("nested more than 100 levels deep"));
    }
    let mut found = None;
    let mut fields = WireReader::new(bytes);
    while let Some((number, value)) = fields.field()? {
        let kind = match number {
            1 | 4 => FieldKind::Bool,
            2 => FieldKind::Double,
            3 | 5 | 6 => FieldKind::Bytes,
            _ => continue,
        };
        if is_of_kind(kind, value) {
            found = Some((number, value));
        }
    }
    match found {
        Some((2, WireValue::Fixed64(bits))) => match f64::from_bits(bits) {
            number if number.is_finite() => out.double(number),
            _ => return Err(DecodeError::new("a number of a value is not finite")),
        },
        Some((3, WireValue::Bytes(bytes))) => out.quoted(text(bytes)?),
        Some((4, WireValue::Varint(value))) => out.push(if value == 0 { "false" } else { "true" }),
        Some((5, WireValue::Bytes(bytes))) => structure(bytes, depth, out)?,
        Some((6, WireValue::Bytes(bytes))) => list(bytes, depth, out)?,
        _ => out.push("null"),
    }
    out.check()
}
