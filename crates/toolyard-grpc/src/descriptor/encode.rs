//! Arguments in JSON to the bytes of a message, by the proto3 JSON mapping, from text to bytes in one pass.

mod scalar;
mod seen;
mod well_known;

use bytes::Bytes;
use toolyard_core::nearest::{did_you_mean, nearest_names};
use toolyard_core::{ErrorCode, ToolError};

use self::scalar::Scalar;
use self::seen::SeenFields;
use super::json_cursor::{InvalidText, JsonCursor, JsonKind};
use super::number;
use super::types::{Cardinality, FieldKind, MessageField, MessageType, TypePool, WellKnown};
use super::wire::{WireType, begin_delimited, end_delimited, put_tag};

/// Maximum nesting of messages: what implementations of protocol buffers read by default.
pub(super) const MAX_NESTING: usize = 100;

/// Maximum length of a name in a message about it, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Maximum number of missing fields in a message.
const MAX_MISSING: usize = 5;

/// The member of arguments that is the whole message, if JSON does not represent its type as an object.
const VALUE: &str = "value";

/// A fault of arguments with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    /// JSON pointer to the value.
    path: String,
    problem: String,
}

impl ArgumentError {
    fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    fn expected(what: &str, found: JsonKind) -> Self {
        Self::new(format!("expected {what}, found {found}"))
    }

    /// Returns the same fault in a member or item of the value.
    fn at(mut self, step: impl std::fmt::Display) -> Self {
        let step = shortened(&step.to_string()).replace('~', "~0").replace('/', "~1");
        self.path.insert_str(0, &format!("/{step}"));
        self
    }
}

impl std::fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let between = if self.path.is_empty() { "" } else { ": " };
        write!(f, "Invalid arguments: {}{between}{}", self.path, self.problem)
    }
}

impl std::error::Error for ArgumentError {}

impl From<ArgumentError> for ToolError {
    fn from(error: ArgumentError) -> Self {
        Self::new(ErrorCode::InvalidArguments, error.to_string())
    }
}

impl From<InvalidText> for ArgumentError {
    fn from(_: InvalidText) -> Self {
        Self::new("expected Unicode text, found half of a surrogate pair")
    }
}

type Encoded<T> = Result<T, ArgumentError>;

/// Encodes the arguments of a call as a message.
pub(super) fn encode(pool: &TypePool, message: u32, text: &str) -> Encoded<Bytes> {
    let mut out = Vec::with_capacity(text.len());
    let encoder = Encoder { pool };
    let mut cursor = JsonCursor::new(text);
    match pool.message(message).known {
        Some(known) if !known.is_object() => encoder.value_member(&mut cursor, known, &mut out)?,
        _ => encoder.message(&mut cursor, message, 0, &mut out)?,
    }
    Ok(out.into())
}

struct Encoder<'p> {
    pool: &'p TypePool,
}

impl<'p> Encoder<'p> {
    /// Writes the member `value` of arguments.
    fn value_member(&self, cursor: &mut JsonCursor<'_>, known: WellKnown, out: &mut Vec<u8>) -> Encoded<()> {
        expect(cursor, JsonKind::Object)?;
        cursor.open();
        while let Some(name) = cursor.member() {
            let name = name?;
            if name != VALUE {
                return Err(unknown_field(&name, [VALUE]));
            }
            let is_null = cursor.kind() == JsonKind::Null && known != WellKnown::Value;
            match is_null {
                true => _ = cursor.skip_value(),
                false => self.known(cursor, known, 0, out).map_err(|error| error.at(VALUE))?,
            }
        }
        Ok(())
    }

    /// Writes a message without its tag and length.
    fn message(
        &self,
        cursor: &mut JsonCursor<'_>,
        message: u32,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        let message = self.pool.message(message);
        if depth >= MAX_NESTING {
            return Err(too_deep());
        }
        match message.known {
            None | Some(WellKnown::Empty) => self.fields(cursor, message, depth, None, out),
            Some(known) => self.known(cursor, known, depth, out),
        }
    }

    /// Writes the fields of a message; `skipped` is a member that is not one of them.
    fn fields(
        &self,
        cursor: &mut JsonCursor<'_>,
        message: &'p MessageType,
        depth: usize,
        skipped: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        expect(cursor, JsonKind::Object)?;
        let mut seen = SeenFields::new(message.fields.len());
        let mut sent = SeenFields::new(message.fields.len());
        let mut oneofs = SeenFields::new(message.oneofs.len());
        cursor.open();
        while let Some(name) = cursor.member() {
            let name = name?;
            if skipped.is_some_and(|skipped| name == skipped) {
                cursor.skip_value();
                continue;
            }
            let Some(index) = message.field_named(&name) else {
                let names = message.fields.iter().map(|field| &*field.json_name);
                return Err(unknown_field(&name, names));
            };
            let field = &message.fields[index];
            if !seen.insert(index) {
                return Err(ArgumentError::new("the field is present twice").at(&name));
            }
            if cursor.kind() == JsonKind::Null && !self.accepts_null(field) {
                cursor.skip_value();
                continue;
            }
            sent.insert(index);
            if let Some(oneof) = field.oneof
                && !oneofs.insert(oneof as usize)
            {
                return Err(several_of(message, oneof, &sent));
            }
            self.field(cursor, field, depth, out).map_err(|error| error.at(&name))?;
        }
        if message.has_required {
            check_required(message, &sent, depth)?;
        }
        Ok(())
    }

    fn field(
        &self,
        cursor: &mut JsonCursor<'_>,
        field: &MessageField,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        match field.cardinality {
            Cardinality::Single => self.single(cursor, field, depth, out),
            Cardinality::Repeated => self.repeated(cursor, field, depth, out),
            Cardinality::Map(key) => self.map(cursor, field, key, depth, out),
        }
    }

    fn single(
        &self,
        cursor: &mut JsonCursor<'_>,
        field: &MessageField,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        if field.kind.message().is_some() {
            return self.nested(cursor, field.kind, field.number, depth, out);
        }
        let value = self.scalar(cursor, field.kind)?;
        if field.has_presence || !value.is_default() {
            put_tag(out, field.number, value.wire_type());
            value.put(out);
        }
        Ok(())
    }

    /// Writes a message with its tags or its length.
    fn nested(
        &self,
        cursor: &mut JsonCursor<'_>,
        kind: FieldKind,
        number: u32,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        match kind {
            FieldKind::Group(message) => {
                put_tag(out, number, WireType::GroupStart);
                self.message(cursor, message, depth + 1, out)?;
                put_tag(out, number, WireType::GroupEnd);
            }
            _ => {
                put_tag(out, number, WireType::Bytes);
                let start = begin_delimited(out);
                if let Some(message) = kind.message() {
                    self.message(cursor, message, depth + 1, out)?;
                }
                end_delimited(out, start);
            }
        }
        Ok(())
    }

    fn repeated(
        &self,
        cursor: &mut JsonCursor<'_>,
        field: &MessageField,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        expect(cursor, JsonKind::Array)?;
        cursor.open();
        let begin = out.len();
        let packed = field.is_packed.then(|| {
            put_tag(out, field.number, WireType::Bytes);
            begin_delimited(out)
        });
        let mut index = 0usize;
        while cursor.item().is_some() {
            let item = match packed {
                Some(_) => self.scalar(cursor, field.kind).map(|value| value.put(out)),
                None if field.kind.message().is_some() => {
                    self.nested(cursor, field.kind, field.number, depth, out)
                }
                None => self.scalar(cursor, field.kind).map(|value| {
                    put_tag(out, field.number, value.wire_type());
                    value.put(out);
                }),
            };
            item.map_err(|error| error.at(index))?;
            index += 1;
        }
        match packed {
            Some(_) if index == 0 => out.truncate(begin),
            Some(start) => end_delimited(out, start),
            None => {}
        }
        Ok(())
    }

    fn map(
        &self,
        cursor: &mut JsonCursor<'_>,
        field: &MessageField,
        key: FieldKind,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        expect(cursor, JsonKind::Object)?;
        cursor.open();
        while let Some(name) = cursor.member() {
            let name = name?;
            put_tag(out, field.number, WireType::Bytes);
            let start = begin_delimited(out);
            let written = self.map_entry(cursor, field, key, &name, depth, out);
            written.map_err(|error| error.at(&name))?;
            end_delimited(out, start);
        }
        Ok(())
    }

    fn map_entry(
        &self,
        cursor: &mut JsonCursor<'_>,
        field: &MessageField,
        key: FieldKind,
        name: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        let key = scalar::map_key(key, name)?;
        put_tag(out, 1, key.wire_type());
        key.put(out);
        if field.kind.message().is_some() {
            return self.nested(cursor, field.kind, 2, depth, out);
        }
        let value = self.scalar(cursor, field.kind)?;
        put_tag(out, 2, value.wire_type());
        value.put(out);
        Ok(())
    }

    /// Returns true if `null` is a value of a field, instead of none.
    fn accepts_null(&self, field: &MessageField) -> bool {
        field.cardinality == Cardinality::Single
            && match field.kind {
                FieldKind::Message(message) | FieldKind::Group(message) => {
                    self.pool.message(message).known == Some(WellKnown::Value)
                }
                FieldKind::Enum(enumeration) => self.pool.enumeration(enumeration).is_null,
                _ => false,
            }
    }

    fn scalar<'j>(&self, cursor: &mut JsonCursor<'j>, kind: FieldKind) -> Encoded<Scalar<'j>> {
        match kind {
            FieldKind::Enum(enumeration) => self.enumeration(cursor, enumeration),
            kind => scalar::read(cursor, kind),
        }
    }

    fn enumeration(&self, cursor: &mut JsonCursor<'_>, enumeration: u32) -> Encoded<Scalar<'static>> {
        let enumeration = self.pool.enumeration(enumeration);
        let number = match cursor.kind() {
            JsonKind::Null if enumeration.is_null => {
                cursor.skip_value();
                0
            }
            JsonKind::Text => {
                let name = cursor.text()?;
                let is_null = enumeration.is_null && name == "NULL_VALUE";
                match enumeration.number(&name) {
                    Some(number) => number,
                    None if is_null => 0,
                    None => {
                        let names = enumeration.values.iter().map(|value| &*value.name);
                        let near = suggestion(&name, names);
                        let (name, of) = (shortened(&name), &enumeration.full_name);
                        return Err(ArgumentError::new(format!(
                            "`{name}` is no value of the enum `{of}`{near}"
                        )));
                    }
                }
            }
            JsonKind::Number => {
                let number =
                    number::integer(cursor.skip_value()).ok().and_then(|number| i32::try_from(number).ok());
                let number = number.ok_or_else(|| {
                    ArgumentError::new("expected a number of 32 bits, or the name of a value")
                })?;
                if enumeration.is_closed && enumeration.name(number).is_none() {
                    let of = &enumeration.full_name;
                    return Err(ArgumentError::new(format!("{number} is no value of the enum `{of}`")));
                }
                number
            }
            kind => return Err(ArgumentError::expected("the name of an enum value", kind)),
        };
        Ok(Scalar::Varint(i64::from(number) as u64))
    }
}

fn expect(cursor: &JsonCursor<'_>, expected: JsonKind) -> Encoded<()> {
    match cursor.kind() {
        kind if kind == expected => Ok(()),
        kind => Err(ArgumentError::expected(&expected.to_string(), kind)),
    }
}

fn too_deep() -> ArgumentError {
    ArgumentError::new(format!("nested more than {MAX_NESTING} levels deep"))
}

fn unknown_field<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> ArgumentError {
    let name = shortened(name);
    ArgumentError::new(format!("unknown field `{name}`{}", suggestion(&name, names)))
}

/// Returns the question for the most similar names, as a sentence of its own.
fn suggestion<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match did_you_mean(&nearest_names(&shortened(name), names)) {
        near if near.is_empty() => near,
        near => format!(".{near}"),
    }
}

fn several_of(message: &MessageType, oneof: u32, sent: &SeenFields) -> ArgumentError {
    let oneof = &message.oneofs[oneof as usize];
    let fields = oneof.fields.iter().filter(|field| sent.contains(**field as usize));
    let names: Vec<_> =
        fields.map(|field| format!("`{}`", message.fields[*field as usize].json_name)).collect();
    ArgumentError::new(format!("{} exclude each other (oneof `{}`)", names.join(" and "), oneof.name))
}

/// Refuses a message without a required field: of proto2 on every level, of `google.api.field_behavior` in the request
/// itself only. In nested messages the annotation concerns their creation, and updates contain parts of them.
fn check_required(message: &MessageType, sent: &SeenFields, depth: usize) -> Encoded<()> {
    let is_required = |field: &MessageField| field.is_required || (field.must_be_sent && depth == 0);
    let fields = message.fields.iter().enumerate().filter(|(_, field)| is_required(field));
    let missing = fields.filter(|(index, _)| !sent.contains(*index));
    let names: Vec<_> =
        missing.take(MAX_MISSING).map(|(_, field)| format!("`{}`", field.json_name)).collect();
    match names.as_slice() {
        [] => Ok(()),
        [one] => Err(ArgumentError::new(format!("the required field {one} is missing"))),
        several => Err(ArgumentError::new(format!("the required fields {} are missing", several.join(", ")))),
    }
}

/// Returns the beginning of a name.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
