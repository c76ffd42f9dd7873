//! Scalar values.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{ArgumentError, Encoded};
use crate::descriptor::json_cursor::{JsonCursor, JsonKind};
use crate::descriptor::number::{self, NumberFault};
use crate::descriptor::types::FieldKind;
use crate::descriptor::wire::{WireType, begin_delimited, end_delimited, put_varint, zigzag};

/// Padding is optional, and both alphabets are accepted.
const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);

/// A scalar value in the form of the wire.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar<'j> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Text(Cow<'j, str>),
    Bytes(Vec<u8>),
}

impl Scalar<'_> {
    /// Returns true for the value that a field without presence omits. Negative zero is another value.
    pub(super) fn is_default(&self) -> bool {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => *value == 0,
            Self::Fixed32(value) => *value == 0,
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    pub(super) const fn wire_type(&self) -> WireType {
        match self {
            Self::Varint(_) => WireType::Varint,
            Self::Fixed32(_) => WireType::Fixed32,
            Self::Fixed64(_) => WireType::Fixed64,
            Self::Text(_) | Self::Bytes(_) => WireType::Bytes,
        }
    }

    /// Writes the value without a tag.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Varint(value) => put_varint(out, *value),
            Self::Fixed32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Fixed64(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Text(text) => put_delimited(out, text.as_bytes()),
            Self::Bytes(bytes) => put_delimited(out, bytes),
        }
    }
}

pub(super) fn put_delimited(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = begin_delimited(out);
    if bytes.len() < 0x80 {
        out.extend_from_slice(bytes);
        return end_delimited(out, start);
    }
    // The length is known: nothing is moved.
    out.pop();
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a value of a kind other than enums and messages.
pub(super) fn read<'j>(cursor: &mut JsonCursor<'j>, kind: FieldKind) -> Encoded<Scalar<'j>> {
    let found = cursor.kind();
    match kind {
        FieldKind::Text if found == JsonKind::Text => Ok(Scalar::Text(cursor.text()?)),
        FieldKind::Text => Err(ArgumentError::expected("a string", found)),
        FieldKind::Bool if found == JsonKind::Boolean => Ok(Scalar::Varint(cursor.boolean().into())),
        FieldKind::Bool => Err(ArgumentError::expected("a boolean", found)),
        FieldKind::Bytes if found == JsonKind::Text => bytes(&cursor.text()?),
        FieldKind::Bytes => Err(ArgumentError::expected("a string with base64", found)),
        FieldKind::Double | FieldKind::Float => float(cursor, kind, found),
        _ => {
            let number = match found {
                JsonKind::Number => Cow::Borrowed(cursor.skip_value()),
                JsonKind::Text => cursor.text()?,
                found => return Err(ArgumentError::expected(integer_name(kind), found)),
            };
            integer(kind, &number)
        }
    }
}

/// Reads the key of a map entry.
pub(super) fn map_key(kind: FieldKind, name: &str) -> Encoded<Scalar<'_>> {
    match (kind, name) {
        (FieldKind::Text, name) => Ok(Scalar::Text(name.into())),
        (FieldKind::Bool, "true") => Ok(Scalar::Varint(1)),
        (FieldKind::Bool, "false") => Ok(Scalar::Varint(0)),
        (FieldKind::Bool, _) => Err(ArgumentError::new("expected the key `true` or `false`")),
        (kind, name) => integer(kind, name),
    }
}

fn bytes(text: &str) -> Encoded<Scalar<'static>> {
    let engine = if text.contains(['-', '_']) { &BASE64_URL } else { &BASE64 };
    let bytes = engine.decode(text).map_err(|_| ArgumentError::new("expected base64, found another text"))?;
    Ok(Scalar::Bytes(bytes))
}

fn float(cursor: &mut JsonCursor<'_>, kind: FieldKind, found: JsonKind) -> Encoded<Scalar<'static>> {
    let text = match found {
        JsonKind::Number => Cow::Borrowed(cursor.skip_value()),
        JsonKind::Text => cursor.text()?,
        found => return Err(ArgumentError::expected("a number", found)),
    };
    let special = match (&*text, found) {
        ("NaN", JsonKind::Text) => Some(f64::NAN),
        ("Infinity", JsonKind::Text) => Some(f64::INFINITY),
        ("-Infinity", JsonKind::Text) => Some(f64::NEG_INFINITY),
        (text, _) if number::is_number(text) => None,
        _ => {
            let problem = "expected a number, `NaN`, `Infinity` or `-Infinity`, found another text";
            return Err(ArgumentError::new(problem));
        }
    };
    let out_of_range = || ArgumentError::new(format!("out of range of {}", float_name(kind)));
    if kind == FieldKind::Float {
        // Directly from the text: a number is rounded once.
        let value =
            special.map_or_else(|| text.parse::<f32>().unwrap_or(f32::INFINITY), |special| special as f32);
        return match value.is_infinite() && special.is_none() {
            true => Err(out_of_range()),
            false => Ok(Scalar::Fixed32(value.to_bits())),
        };
    }
    let value = special.unwrap_or_else(|| text.parse::<f64>().unwrap_or(f64::INFINITY));
    match value.is_infinite() && special.is_none() {
        true => Err(out_of_range()),
        false => Ok(Scalar::Fixed64(value.to_bits())),
    }
}

fn integer(kind: FieldKind, text: &str) -> Encoded<Scalar<'static>> {
    let out_of_range = || ArgumentError::new(format!("out of range of {}", integer_name(kind)));
    let number = number::integer(text).map_err(|fault| match fault {
        NumberFault::NotANumber => {
            ArgumentError::new(format!("expected {}, found another text", integer_name(kind)))
        }
        NumberFault::Fraction => {
            ArgumentError::new(format!("expected {}, found a fraction", integer_name(kind)))
        }
        NumberFault::OutOfRange => out_of_range(),
    })?;
    let value = match kind {
        FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => {
            i32::try_from(number).ok().map(|number| match kind {
                FieldKind::Int32 => Scalar::Varint(i64::from(number) as u64),
                FieldKind::Sint32 => Scalar::Varint(zigzag(number.into())),
                _ => Scalar::Fixed32(number as u32),
            })
        }
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => {
            i64::try_from(number).ok().map(|number| match kind {
                FieldKind::Int64 => Scalar::Varint(number as u64),
                FieldKind::Sint64 => Scalar::Varint(zigzag(number)),
                _ => Scalar::Fixed64(number as u64),
            })
        }
        FieldKind::Uint32 => u32::try_from(number).ok().map(|number| Scalar::Varint(number.into())),
        FieldKind::Fixed32 => u32::try_from(number).ok().map(Scalar::Fixed32),
        FieldKind::Fixed64 => u64::try_from(number).ok().map(Scalar::Fixed64),
        _ => u64::try_from(number).ok().map(Scalar::Varint),
    };
    value.ok_or_else(out_of_range)
}

const fn float_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Float => "a float of 32 bits",
        _ => "a float of 64 bits",
    }
}

const fn integer_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => "an integer of 32 bits",
        FieldKind::Uint32 | FieldKind::Fixed32 => "an unsigned integer of 32 bits",
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => "an integer of 64 bits",
        _ => "an unsigned integer of 64 bits",
    }
}
