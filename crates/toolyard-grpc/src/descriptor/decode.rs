//! The bytes of a message to JSON, by the proto3 JSON mapping, without a tree of values.
//!
//! A message's fields may arrive in any order and in several parts: the last value of a single field counts, and parts
//! of a message are merged, which is the same as if their bytes stood one behind the other.

mod text;
mod well_known;

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolyard_net::budget::ByteBudget;

pub(crate) use self::text::{JsonText, TextLimit};
use super::types::{Cardinality, FieldKind, MessageField, MessageType, TypePool};
use super::wire::{WireError, WireReader, WireValue, unzigzag};

/// Maximum nesting of messages.
const MAX_NESTING: usize = 100;

/// Maximum size of a result, in bytes. A byte of a message can become a long name.
pub(crate) const MAX_JSON_BYTES: usize = 64 * 1024 * 1024;

/// A fault of a message with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// JSON pointer to the value.
    path: String,
    problem: Cow<'static, str>,
    limit: Option<TextLimit>,
}

impl DecodeError {
    const fn new(problem: &'static str) -> Self {
        Self { path: String::new(), problem: Cow::Borrowed(problem), limit: None }
    }

    fn beyond(limit: TextLimit) -> Self {
        let problem = match limit {
            TextLimit::Size(_) => "the JSON is too large".into(),
            TextLimit::Budget(error) => error.to_string().into(),
        };
        Self { path: String::new(), problem, limit: Some(limit) }
    }

    /// Returns the limit that the JSON exceeds; `None` if the message itself is at fault.
    pub(crate) const fn limit(&self) -> Option<TextLimit> {
        self.limit
    }

    fn at(mut self, step: impl std::fmt::Display) -> Self {
        if self.path.len() < 1024 {
            self.path.insert_str(0, &format!("/{step}"));
        }
        self
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let between = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{between}{}", self.path, self.problem)
    }
}

impl std::error::Error for DecodeError {}

impl From<WireError> for DecodeError {
    fn from(error: WireError) -> Self {
        Self { path: String::new(), problem: error.to_string().into(), limit: None }
    }
}

type Decoded<T> = Result<T, DecodeError>;

/// Decodes a message as JSON.
pub(super) fn decode(pool: &TypePool, message: u32, bytes: &[u8]) -> Decoded<String> {
    let mut out = JsonText::new(MAX_JSON_BYTES, ByteBudget::default());
    decode_into(pool, message, bytes, &mut out)?;
    Ok(out.into_text())
}

/// Decodes a message as JSON, which is appended to a text.
pub(super) fn decode_into(pool: &TypePool, message: u32, bytes: &[u8], out: &mut JsonText) -> Decoded<()> {
    out.allocate(2 * bytes.len() + 2);
    Decoder { pool }.message(bytes, message, 0, out)
}

struct Decoder<'p> {
    pool: &'p TypePool,
}

/// A value of a field, at its place in the message.
#[derive(Clone, Copy)]
struct Occurrence<'a> {
    /// Index of the field in the order of numbers.
    field: u32,
    value: WireValue<'a>,
}

/// The key of a map entry. Entries are sorted by key, so that equal messages have equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MapKey<'a> {
    Text(&'a str),
    Signed(i64),
    Unsigned(u64),
    Bool(bool),
}

impl<'p> Decoder<'p> {
    /// Writes a message.
    fn message(&self, bytes: &[u8], message: u32, depth: usize, out: &mut JsonText) -> Decoded<()> {
        let message = self.pool.message(message);
        if depth >= MAX_NESTING {
            return Err(DecodeError::new("nested more than 100 levels deep"));
        }
        match message.known {
            Some(known) => self.known(bytes, known, depth, out),
            None => {
                out.push("{");
                self.fields(bytes, message, depth, true, out)?;
                out.push("}");
                out.check()
            }
        }
    }

    /// Writes the members of a message.
    fn fields(
        &self,
        bytes: &[u8],
        message: &'p MessageType,
        depth: usize,
        mut is_first: bool,
        out: &mut JsonText,
    ) -> Decoded<()> {
        let mut occurrences = occurrences(bytes, message)?;
        if !occurrences.is_sorted_by_key(|occurrence| occurrence.field) {
            occurrences.sort_by_key(|occurrence| occurrence.field);
        }
        for values in occurrences.chunk_by(|one, other| one.field == other.field) {
            let Some(Occurrence { field, .. }) = values.first() else { continue };
            let field = &message.fields[message.by_number[*field as usize] as usize];
            let start = out.len();
            out.push(if is_first { "" } else { "," });
            out.name(&field.json_name);
            let is_written =
                self.field(field, values, depth, out).map_err(|error| error.at(&field.json_name))?;
            match is_written {
                true => is_first = false,
                false => out.truncate(start),
            }
        }
        Ok(())
    }

    /// Writes the value of a field; returns false if it has none.
    fn field(
        &self,
        field: &MessageField,
        values: &[Occurrence<'_>],
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<bool> {
        match field.cardinality {
            Cardinality::Single => self.single(field.kind, values, depth, out),
            Cardinality::Repeated => self.repeated(field.kind, values, depth, out),
            Cardinality::Map(key) => self.map(field.kind, key, values, depth, out),
        }
    }

    fn single(
        &self,
        kind: FieldKind,
        values: &[Occurrence<'_>],
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<bool> {
        let (Some(message), [_, _, ..]) = (kind.message(), values) else {
            return match values.last() {
                Some(last) => self.value(kind, last.value, depth, out),
                None => Ok(false),
            };
        };
        let mut merged = Vec::new();
        for occurrence in values {
            if let WireValue::Bytes(part) | WireValue::Group(part) = occurrence.value {
                merged.extend_from_slice(part);
            }
        }
        self.message(&merged, message, depth + 1, out)?;
        Ok(true)
    }

    fn repeated(
        &self,
        kind: FieldKind,
        values: &[Occurrence<'_>],
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<bool> {
        out.push("[");
        let mut count = 0usize;
        let mut write = |value: WireValue<'_>, out: &mut JsonText| {
            let start = out.len();
            out.push(if count == 0 { "" } else { "," });
            match self.value(kind, value, depth, out).map_err(|error| error.at(count))? {
                true => count += 1,
                false => out.truncate(start),
            }
            out.check()
        };
        for occurrence in values {
            match occurrence.value {
                WireValue::Bytes(packed) if kind.can_be_packed() => {
                    let mut items = WireReader::new(packed);
                    while !items.is_empty() {
                        write(packed_item(kind, &mut items)?, out)?;
                    }
                }
                value => write(value, out)?,
            }
        }
        out.push("]");
        Ok(true)
    }

    fn map(
        &self,
        kind: FieldKind,
        key: FieldKind,
        values: &[Occurrence<'_>],
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<bool> {
        let mut entries = BTreeMap::new();
        for occurrence in values {
            let WireValue::Bytes(entry) = occurrence.value else { continue };
            let (mut own_key, mut value) = (None, None);
            let mut fields = WireReader::new(entry);
            while let Some((number, field)) = fields.field()? {
                match number {
                    1 if is_of_kind(key, field) => own_key = Some(map_key(key, field)?),
                    2 if is_of_kind(kind, field) => value = Some(field),
                    _ => {}
                }
            }
            let own_key = own_key.unwrap_or_else(|| default_key(key));
            entries.insert(own_key, value.unwrap_or_else(|| default_value(kind)));
        }
        out.push("{");
        let mut is_first = true;
        for (key, value) in entries {
            let start = out.len();
            out.push(if is_first { "" } else { "," });
            match key {
                MapKey::Text(key) => out.name(key),
                MapKey::Signed(key) => out.name(&key.to_string()),
                MapKey::Unsigned(key) => out.name(&key.to_string()),
                MapKey::Bool(key) => out.name(if key { "true" } else { "false" }),
            }
            let is_written = self.value(kind, value, depth, out);
            match is_written.map_err(|error| error.at(format_args!("{key:?}")))? {
                true => is_first = false,
                false => out.truncate(start),
            }
            out.check()?;
        }
        out.push("}");
        Ok(true)
    }

    /// Writes a value; returns false for a number that is no value of a closed enum.
    fn value(
        &self,
        kind: FieldKind,
        value: WireValue<'_>,
        depth: usize,
        out: &mut JsonText,
    ) -> Decoded<bool> {
        match (kind, value) {
            (
                FieldKind::Message(message) | FieldKind::Group(message),
                WireValue::Bytes(bytes) | WireValue::Group(bytes),
            ) => {
                self.message(bytes, message, depth + 1, out)?;
            }
            (FieldKind::Enum(enumeration), WireValue::Varint(number)) => {
                let enumeration = self.pool.enumeration(enumeration);
                let number = number as i32;
                match enumeration.name(number) {
                    _ if enumeration.is_null => out.push("null"),
                    Some(name) => out.quoted(name),
                    None if enumeration.is_closed => return Ok(false),
                    None => out.display(number),
                }
            }
            (kind, value) => return scalar(kind, value, out),
        }
        Ok(true)
    }
}

/// Returns the known fields of a message. Of a oneof, only what belongs to its last field is kept.
fn occurrences<'a>(bytes: &'a [u8], message: &MessageType) -> Decoded<Vec<Occurrence<'a>>> {
    let mut all = Vec::new();
    // The current field of each oneof, and its first occurrence.
    let mut current: Vec<Option<(usize, usize)>> = vec![None; message.oneofs.len()];
    let mut is_replaced = false;
    let mut fields = WireReader::new(bytes);
    while let Some((number, value)) = fields.field()? {
        let Some(index) = message.field_numbered(number) else { continue };
        let field = &message.fields[index];
        let is_packed = field.cardinality == Cardinality::Repeated
            && field.kind.can_be_packed()
            && matches!(value, WireValue::Bytes(_));
        let is_entry =
            matches!(field.cardinality, Cardinality::Map(_)) && matches!(value, WireValue::Bytes(_));
        let is_plain = !matches!(field.cardinality, Cardinality::Map(_)) && is_of_kind(field.kind, value);
        if !is_plain && !is_packed && !is_entry {
            continue;
        }
        if let Some(current) = field.oneof.and_then(|oneof| current.get_mut(oneof as usize)) {
            match current {
                Some((other, _)) if *other == index => {}
                _ => {
                    is_replaced |= current.is_some();
                    *current = Some((index, all.len()));
                }
            }
        }
        all.push((index, value));
    }
    let is_kept = |position: usize, index: usize| {
        let oneof =
            message.fields[index].oneof.and_then(|oneof| current.get(oneof as usize).copied().flatten());
        oneof.is_none_or(|(field, since)| field == index && position >= since)
    };
    let rank = |index: usize| {
        let number = message.fields[index].number;
        let at =
            message.by_number.binary_search_by_key(&number, |other| message.fields[*other as usize].number);
        at.unwrap_or_default() as u32
    };
    let kept = all
        .into_iter()
        .enumerate()
        .filter(|(position, (index, _))| !is_replaced || is_kept(*position, *index));
    Ok(kept.map(|(_, (index, value))| Occurrence { field: rank(index), value }).collect())
}

/// Returns true if a value on the wire can be of a kind.
const fn is_of_kind(kind: FieldKind, value: WireValue<'_>) -> bool {
    match kind {
        FieldKind::Double | FieldKind::Fixed64 | FieldKind::Sfixed64 => {
            matches!(value, WireValue::Fixed64(_))
        }
        FieldKind::Float | FieldKind::Fixed32 | FieldKind::Sfixed32 => matches!(value, WireValue::Fixed32(_)),
        FieldKind::Text | FieldKind::Bytes | FieldKind::Message(_) => matches!(value, WireValue::Bytes(_)),
        FieldKind::Group(_) => matches!(value, WireValue::Group(_)),
        _ => matches!(value, WireValue::Varint(_)),
    }
}

fn packed_item<'a>(kind: FieldKind, items: &mut WireReader<'a>) -> Decoded<WireValue<'a>> {
    Ok(match kind {
        FieldKind::Double | FieldKind::Fixed64 | FieldKind::Sfixed64 => WireValue::Fixed64(items.fixed64()?),
        FieldKind::Float | FieldKind::Fixed32 | FieldKind::Sfixed32 => WireValue::Fixed32(items.fixed32()?),
        _ => WireValue::Varint(items.varint()?),
    })
}

/// Writes a value that is neither a message nor of an enum.
fn scalar(kind: FieldKind, value: WireValue<'_>, out: &mut JsonText) -> Decoded<bool> {
    match (kind, value) {
        (FieldKind::Double, WireValue::Fixed64(bits)) => out.double(f64::from_bits(bits)),
        (FieldKind::Float, WireValue::Fixed32(bits)) => out.float(f32::from_bits(bits)),
        (FieldKind::Int32, WireValue::Varint(number)) => out.display(number as i32),
        (FieldKind::Sint32, WireValue::Varint(number)) => {
            out.display(unzigzag(u64::from(number as u32)) as i32)
        }
        (FieldKind::Sfixed32, WireValue::Fixed32(number)) => out.display(number as i32),
        (FieldKind::Uint32, WireValue::Varint(number)) => out.display(number as u32),
        (FieldKind::Fixed32, WireValue::Fixed32(number)) => out.display(number),
        (FieldKind::Int64, WireValue::Varint(number)) => out.display_quoted(number as i64),
        (FieldKind::Sint64, WireValue::Varint(number)) => out.display_quoted(unzigzag(number)),
        (FieldKind::Sfixed64, WireValue::Fixed64(number)) => out.display_quoted(number as i64),
        (FieldKind::Uint64, WireValue::Varint(number)) | (FieldKind::Fixed64, WireValue::Fixed64(number)) => {
            out.display_quoted(number);
        }
        (FieldKind::Bool, WireValue::Varint(value)) => out.push(if value == 0 { "false" } else { "true" }),
        (FieldKind::Text, WireValue::Bytes(bytes)) => out.quoted(text(bytes)?),
        (FieldKind::Bytes, WireValue::Bytes(bytes)) => out.base64(bytes),
        _ => return Ok(false),
    }
    Ok(true)
}

fn text(bytes: &[u8]) -> Decoded<&str> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::new("a string is not UTF-8"))
}

fn map_key(kind: FieldKind, value: WireValue<'_>) -> Decoded<MapKey<'_>> {
    Ok(match (kind, value) {
        (FieldKind::Text, WireValue::Bytes(bytes)) => MapKey::Text(text(bytes)?),
        (FieldKind::Bool, WireValue::Varint(value)) => MapKey::Bool(value != 0),
        (FieldKind::Int32, WireValue::Varint(number)) => MapKey::Signed((number as i32).into()),
        (FieldKind::Sint32, WireValue::Varint(number)) => {
            MapKey::Signed((unzigzag(u64::from(number as u32)) as i32).into())
        }
        (FieldKind::Int64, WireValue::Varint(number)) => MapKey::Signed(number as i64),
        (FieldKind::Sint64, WireValue::Varint(number)) => MapKey::Signed(unzigzag(number)),
        (FieldKind::Sfixed32, WireValue::Fixed32(number)) => MapKey::Signed((number as i32).into()),
        (FieldKind::Sfixed64, WireValue::Fixed64(number)) => MapKey::Signed(number as i64),
        (FieldKind::Uint32, WireValue::Varint(number)) => MapKey::Unsigned((number as u32).into()),
        (FieldKind::Fixed32, WireValue::Fixed32(number)) => MapKey::Unsigned(number.into()),
        (_, WireValue::Varint(number) | WireValue::Fixed64(number)) => MapKey::Unsigned(number),
        _ => default_key(kind),
    })
}

const fn default_key(kind: FieldKind) -> MapKey<'static> {
    match kind {
        FieldKind::Text => MapKey::Text(""),
        FieldKind::Bool => MapKey::Bool(false),
        FieldKind::Uint32 | FieldKind::Uint64 | FieldKind::Fixed32 | FieldKind::Fixed64 => {
            MapKey::Unsigned(0)
        }
        _ => MapKey::Signed(0),
    }
}

const fn default_value(kind: FieldKind) -> WireValue<'static> {
    match kind {
        FieldKind::Double | FieldKind::Fixed64 | FieldKind::Sfixed64 => WireValue::Fixed64(0),
        FieldKind::Float | FieldKind::Fixed32 | FieldKind::Sfixed32 => WireValue::Fixed32(0),
        FieldKind::Text | FieldKind::Bytes | FieldKind::Message(_) => WireValue::Bytes(&[]),
        FieldKind::Group(_) => WireValue::Group(&[]),
        _ => WireValue::Varint(0),
    }
}
