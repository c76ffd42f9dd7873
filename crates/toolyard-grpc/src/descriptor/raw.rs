//! Reads `FileDescriptorProto`s (`google/protobuf/descriptor.proto`) without copying their texts.
//!
//! Only what tools need is read, and from the bytes themselves: options that are extensions, such as
//! `google.api.field_behavior`, and the features of editions are not part of generated types.

use super::DescriptorError;
use super::wire::{WireError, WireReader, WireValue};

/// Maximum number of types, fields, values, methods and comments of a descriptor.
const MAX_ELEMENTS: usize = 500_000;

/// Maximum nesting of types.
const MAX_NESTING: usize = 64;

/// Field number of `google.api.field_behavior` in `FieldOptions`.
const FIELD_BEHAVIOR: u32 = 1052;

#[derive(Debug, Default)]
pub(super) struct RawFile<'a> {
    pub(super) name: &'a str,
    pub(super) package: &'a str,
    pub(super) messages: Vec<RawMessage<'a>>,
    pub(super) enums: Vec<RawEnum<'a>>,
    pub(super) services: Vec<RawService<'a>>,
    pub(super) extensions: Vec<RawField<'a>>,
    pub(super) comments: Vec<RawComment<'a>>,
    pub(super) syntax: &'a str,
    /// Number of the edition; 0 for proto2 and proto3.
    pub(super) edition: u64,
    pub(super) features: RawFeatures,
}

#[derive(Debug, Default)]
pub(super) struct RawMessage<'a> {
    pub(super) name: &'a str,
    pub(super) fields: Vec<RawField<'a>>,
    pub(super) messages: Vec<Self>,
    pub(super) enums: Vec<RawEnum<'a>>,
    pub(super) extensions: Vec<RawField<'a>>,
    pub(super) oneofs: Vec<&'a str>,
    pub(super) is_map_entry: bool,
    pub(super) features: RawFeatures,
}

#[derive(Debug, Default)]
pub(super) struct RawField<'a> {
    pub(super) name: &'a str,
    pub(super) extendee: &'a str,
    pub(super) number: u64,
    pub(super) label: u64,
    pub(super) kind: u64,
    pub(super) type_name: &'a str,
    pub(super) default: Option<&'a str>,
    pub(super) oneof: Option<u64>,
    pub(super) json_name: &'a str,
    pub(super) is_proto3_optional: bool,
    pub(super) packed: Option<bool>,
    pub(super) is_deprecated: bool,
    /// Values of `google.api.FieldBehavior`.
    pub(super) behavior: Vec<u64>,
    pub(super) features: RawFeatures,
}

#[derive(Debug, Default)]
pub(super) struct RawEnum<'a> {
    pub(super) name: &'a str,
    pub(super) values: Vec<RawEnumValue<'a>>,
    pub(super) features: RawFeatures,
}

#[derive(Debug, Default)]
pub(super) struct RawEnumValue<'a> {
    pub(super) name: &'a str,
    pub(super) number: i32,
    pub(super) is_deprecated: bool,
}

#[derive(Debug, Default)]
pub(super) struct RawService<'a> {
    pub(super) name: &'a str,
    pub(super) methods: Vec<RawMethod<'a>>,
    pub(super) is_deprecated: bool,
}

#[derive(Debug, Default)]
pub(super) struct RawMethod<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a str,
    pub(super) output: &'a str,
    pub(super) is_client_streaming: bool,
    pub(super) is_server_streaming: bool,
    pub(super) is_deprecated: bool,
    /// `idempotency_level`: 1 without side effects, 2 idempotent.
    pub(super) idempotency: u64,
}

#[derive(Debug, Default)]
pub(super) struct RawComment<'a> {
    /// Field numbers and indexes from the file to the element.
    pub(super) path: Vec<i32>,
    pub(super) leading: &'a str,
    pub(super) trailing: &'a str,
}

/// The features of an edition (`FeatureSet`) that an element sets; 0 for those that it inherits.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct RawFeatures {
    pub(super) field_presence: u64,
    pub(super) enum_type: u64,
    pub(super) repeated_encoding: u64,
    pub(super) message_encoding: u64,
}

impl RawFeatures {
    /// Returns these features, and those of the surrounding element for the others.
    pub(super) const fn or(self, outer: Self) -> Self {
        const fn first(inner: u64, outer: u64) -> u64 {
            if inner == 0 { outer } else { inner }
        }
        Self {
            field_presence: first(self.field_presence, outer.field_presence),
            enum_type: first(self.enum_type, outer.enum_type),
            repeated_encoding: first(self.repeated_encoding, outer.repeated_encoding),
            message_encoding: first(self.message_encoding, outer.message_encoding),
        }
    }
}

/// Reads descriptors, and counts their elements.
#[derive(Debug)]
pub(super) struct RawReader {
    left: usize,
}

impl From<WireError> for DescriptorError {
    fn from(error: WireError) -> Self {
        Self::Malformed(error.0)
    }
}

type Read<T> = Result<T, DescriptorError>;

impl RawReader {
    pub(super) const fn new() -> Self {
        Self { left: MAX_ELEMENTS }
    }

    fn count(&mut self) -> Read<()> {
        self.left = self.left.checked_sub(1).ok_or(DescriptorError::TooManyElements)?;
        Ok(())
    }

    /// Returns the files of a `FileDescriptorSet` as bytes.
    pub(super) fn file_set<'a>(&mut self, set: &'a [u8]) -> Read<Vec<&'a [u8]>> {
        let mut files = Vec::new();
        each(set, |number, value| {
            if number == 1 {
                self.count()?;
                files.push(bytes(value)?);
            }
            Ok(())
        })?;
        Ok(files)
    }

    pub(super) fn file<'a>(&mut self, file: &'a [u8]) -> Read<RawFile<'a>> {
        let mut out = RawFile::default();
        each(file, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => out.package = text(value)?,
                4 => out.messages.push(self.message(bytes(value)?, 0)?),
                5 => out.enums.push(self.enumeration(bytes(value)?)?),
                6 => out.services.push(self.service(bytes(value)?)?),
                7 => out.extensions.push(self.field(bytes(value)?)?),
                8 => out.features = features(bytes(value)?, 50)?,
                9 => self.comments(bytes(value)?, &mut out.comments)?,
                12 => out.syntax = text(value)?,
                14 => out.edition = varint(value)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn message<'a>(&mut self, message: &'a [u8], depth: usize) -> Read<RawMessage<'a>> {
        if depth >= MAX_NESTING {
            return Err(DescriptorError::Malformed("types are nested too deeply"));
        }
        self.count()?;
        let mut out = RawMessage::default();
        each(message, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => out.fields.push(self.field(bytes(value)?)?),
                3 => out.messages.push(self.message(bytes(value)?, depth + 1)?),
                4 => out.enums.push(self.enumeration(bytes(value)?)?),
                6 => out.extensions.push(self.field(bytes(value)?)?),
                7 => {
                    let options = bytes(value)?;
                    out.is_map_entry |= flag(options, 7)?;
                    out.features = features(options, 12)?;
                }
                8 => {
                    self.count()?;
                    let mut name = "";
                    each(bytes(value)?, |number, value| {
                        if number == 1 {
                            name = text(value)?;
                        }
                        Ok(())
                    })?;
                    out.oneofs.push(name);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn field<'a>(&mut self, field: &'a [u8]) -> Read<RawField<'a>> {
        self.count()?;
        let mut out = RawField::default();
        each(field, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => out.extendee = text(value)?,
                3 => out.number = varint(value)?,
                4 => out.label = varint(value)?,
                5 => out.kind = varint(value)?,
                6 => out.type_name = text(value)?,
                7 => out.default = Some(text(value)?),
                8 => self.field_options(bytes(value)?, &mut out)?,
                9 => out.oneof = Some(varint(value)?),
                10 => out.json_name = text(value)?,
                17 => out.is_proto3_optional = varint(value)? != 0,
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn field_options(&mut self, options: &[u8], out: &mut RawField<'_>) -> Read<()> {
        out.features = features(options, 21)?;
        each(options, |number, value| {
            match (number, value) {
                (2, value) => out.packed = Some(varint(value)? != 0),
                (3, value) => out.is_deprecated = varint(value)? != 0,
                (FIELD_BEHAVIOR, WireValue::Varint(one)) => {
                    self.count()?;
                    out.behavior.push(one);
                }
                (FIELD_BEHAVIOR, WireValue::Bytes(packed)) => {
                    let mut all = WireReader::new(packed);
                    while !all.is_empty() {
                        self.count()?;
                        out.behavior.push(all.varint()?);
                    }
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn enumeration<'a>(&mut self, enumeration: &'a [u8]) -> Read<RawEnum<'a>> {
        self.count()?;
        let mut out = RawEnum::default();
        each(enumeration, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => {
                    self.count()?;
                    let mut one = RawEnumValue::default();
                    each(bytes(value)?, |number, value| {
                        match number {
                            1 => one.name = text(value)?,
                            2 => one.number = varint(value)? as i32,
                            3 => one.is_deprecated = flag(bytes(value)?, 1)?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    out.values.push(one);
                }
                3 => out.features = features(bytes(value)?, 7)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn service<'a>(&mut self, service: &'a [u8]) -> Read<RawService<'a>> {
        self.count()?;
        let mut out = RawService::default();
        each(service, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => out.methods.push(self.method(bytes(value)?)?),
                3 => out.is_deprecated = flag(bytes(value)?, 33)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn method<'a>(&mut self, method: &'a [u8]) -> Read<RawMethod<'a>> {
        self.count()?;
        let mut out = RawMethod::default();
        each(method, |number, value| {
            match number {
                1 => out.name = text(value)?,
                2 => out.input = text(value)?,
                3 => out.output = text(value)?,
                4 => each(bytes(value)?, |number, value| {
                    match number {
                        33 => out.is_deprecated = varint(value)? != 0,
                        34 => out.idempotency = varint(value)?,
                        _ => {}
                    }
                    Ok(())
                })?,
                5 => out.is_client_streaming = varint(value)? != 0,
                6 => out.is_server_streaming = varint(value)? != 0,
                _ => {}
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Reads the locations that have comments.
    fn comments<'a>(&mut self, info: &'a [u8], comments: &mut Vec<RawComment<'a>>) -> Read<()> {
        each(info, |number, location| {
            if number != 1 {
                return Ok(());
            }
            let mut out = RawComment::default();
            let mut path: &[u8] = &[];
            each(bytes(location)?, |number, value| {
                match (number, value) {
                    (1, WireValue::Bytes(packed)) => path = packed,
                    (3, value) => out.leading = text(value)?,
                    (4, value) => out.trailing = text(value)?,
                    _ => {}
                }
                Ok(())
            })?;
            if out.leading.is_empty() && out.trailing.is_empty() {
                return Ok(());
            }
            self.count()?;
            let mut parts = WireReader::new(path);
            while !parts.is_empty() {
                if out.path.len() > 2 * MAX_NESTING + 2 {
                    return Err(DescriptorError::Malformed("types are nested too deeply"));
                }
                out.path.push(parts.varint()? as i32);
            }
            comments.push(out);
            Ok(())
        })
    }
}

/// Reads the member `features` of options.
fn features(options: &[u8], member: u32) -> Read<RawFeatures> {
    let mut out = RawFeatures::default();
    each(options, |number, value| {
        if number != member {
            return Ok(());
        }
        each(bytes(value)?, |number, value| {
            match number {
                1 => out.field_presence = varint(value)?,
                2 => out.enum_type = varint(value)?,
                3 => out.repeated_encoding = varint(value)?,
                5 => out.message_encoding = varint(value)?,
                _ => {}
            }
            Ok(())
        })
    })?;
    Ok(out)
}

/// Reads a boolean of options.
fn flag(options: &[u8], member: u32) -> Read<bool> {
    let mut set = false;
    each(options, |number, value| {
        if number == member {
            set = varint(value)? != 0;
        }
        Ok(())
    })?;
    Ok(set)
}

fn each<'a>(message: &'a [u8], mut read: impl FnMut(u32, WireValue<'a>) -> Read<()>) -> Read<()> {
    let mut fields = WireReader::new(message);
    while let Some((number, value)) = fields.field()? {
        read(number, value)?;
    }
    Ok(())
}

const fn bytes(value: WireValue<'_>) -> Read<&[u8]> {
    match value {
        WireValue::Bytes(bytes) => Ok(bytes),
        _ => Err(DescriptorError::Malformed("a field has an unexpected wire type")),
    }
}

fn text(value: WireValue<'_>) -> Read<&str> {
    std::str::from_utf8(bytes(value)?).map_err(|_| DescriptorError::Malformed("a text is not UTF-8"))
}

const fn varint(value: WireValue<'_>) -> Read<u64> {
    match value {
        WireValue::Varint(number) => Ok(number),
        _ => Err(DescriptorError::Malformed("a field has an unexpected wire type")),
    }
}
