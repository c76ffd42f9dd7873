//! Values of the well-known types.

use super::scalar::{self, Scalar, put_delimited};
use super::{
    ArgumentError, Encoded, Encoder, MAX_NESTING, VALUE, expect, shortened, too_deep, unknown_field,
};
use crate::descriptor::any::type_name;
use crate::descriptor::json_cursor::{JsonCursor, JsonKind};
use crate::descriptor::time;
use crate::descriptor::types::{FieldKind, WellKnown};
use crate::descriptor::wire::{WireType, begin_delimited, end_delimited, put_tag};

/// The member of an `Any` with its type.
const TYPE: &str = "@type";

/// Members of `google.protobuf.Value`.
const NULL_VALUE: u32 = 1;
const NUMBER_VALUE: u32 = 2;
const STRING_VALUE: u32 = 3;
const BOOL_VALUE: u32 = 4;
const STRUCT_VALUE: u32 = 5;
const LIST_VALUE: u32 = 6;

impl Encoder<'_> {
    /// Writes a well-known message without its tag and length.
    pub(super) fn known(
        &self,
        cursor: &mut JsonCursor<'_>,
        known: WellKnown,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        match known {
            WellKnown::Any => self.any(cursor, depth, out),
            WellKnown::Timestamp => {
                let expected = "a time of the years 1 to 9999 such as `2026-01-31T12:00:00Z`";
                put_time(text_of(cursor, expected, time::parse_timestamp)?, out);
                Ok(())
            }
            WellKnown::Duration => {
                put_time(text_of(cursor, "a duration in seconds such as `1.5s`", time::parse_duration)?, out);
                Ok(())
            }
            WellKnown::FieldMask => {
                let expected = "paths of fields in lowerCamelCase, separated by commas";
                for path in text_of(cursor, expected, paths)? {
                    put_tag(out, 1, WireType::Bytes);
                    put_delimited(out, path.as_bytes());
                }
                Ok(())
            }
            WellKnown::Struct => structure(cursor, depth, out),
            WellKnown::ListValue => list(cursor, depth, out),
            WellKnown::Value => value(cursor, depth, out),
            WellKnown::Wrapper(kind) => {
                let value = scalar::read(cursor, kind)?;
                if !value.is_default() {
                    put_tag(out, 1, value.wire_type());
                    value.put(out);
                }
                Ok(())
            }
            WellKnown::Empty => {
                expect(cursor, JsonKind::Object)?;
                cursor.open();
                match cursor.member() {
                    Some(name) => Err(unknown_field(&name?, [])),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes an `Any`: `@type` may be any of its members, so it is looked for first.
    fn any(&self, cursor: &mut JsonCursor<'_>, depth: usize, out: &mut Vec<u8>) -> Encoded<()> {
        expect(cursor, JsonKind::Object)?;
        let mut search = cursor.clone();
        search.open();
        let (mut url, mut is_empty) = (None, true);
        while let Some(name) = search.member() {
            is_empty = false;
            if name? == TYPE {
                if search.kind() != JsonKind::Text {
                    return Err(ArgumentError::expected("a string", search.kind()).at(TYPE));
                }
                let text = search.text().map_err(|error| ArgumentError::from(error).at(TYPE))?;
                if url.replace(text).is_some() {
                    return Err(ArgumentError::new("the field is present twice").at(TYPE));
                }
            } else {
                search.skip_value();
            }
        }
        let Some(url) = url else {
            if is_empty {
                *cursor = search;
                return Ok(());
            }
            return Err(ArgumentError::new("the required field `@type` is missing"));
        };
        let Some(name) = type_name(&url) else {
            let problem = "expected a type such as `type.googleapis.com/package.Message`";
            return Err(ArgumentError::new(problem).at(TYPE));
        };
        put_tag(out, 1, WireType::Bytes);
        put_delimited(out, url.as_bytes());
        put_tag(out, 2, WireType::Bytes);
        let start = begin_delimited(out);
        self.any_value(cursor, name, depth, out)?;
        end_delimited(out, start);
        Ok(())
    }

    fn any_value(
        &self,
        cursor: &mut JsonCursor<'_>,
        name: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Encoded<()> {
        if depth + 1 >= MAX_NESTING {
            return Err(too_deep());
        }
        let Some(message) = self.pool.message_named(name) else {
            // The form in which results have values of unknown types.
            return self.any_member(cursor, |cursor| {
                if cursor.kind() != JsonKind::Text {
                    let problem =
                        format!("the type `{}` is unknown: expected its bytes in base64", shortened(name));
                    return Err(ArgumentError::new(problem));
                }
                if let Scalar::Bytes(bytes) = scalar::read(cursor, FieldKind::Bytes)? {
                    out.extend_from_slice(&bytes);
                }
                Ok(())
            });
        };
        let message = self.pool.message(message);
        match message.known {
            None => self.fields(cursor, message, depth + 1, Some(TYPE), out),
            Some(known) => self.any_member(cursor, |cursor| self.known(cursor, known, depth + 1, out)),
        }
    }

    /// Reads the member `value`, beside which there is `@type` only.
    fn any_member<'j>(
        &self,
        cursor: &mut JsonCursor<'j>,
        mut read: impl FnMut(&mut JsonCursor<'j>) -> Encoded<()>,
    ) -> Encoded<()> {
        cursor.open();
        let mut is_read = false;
        while let Some(name) = cursor.member() {
            let name = name?;
            if name == TYPE {
                cursor.skip_value();
            } else if name != VALUE {
                return Err(unknown_field(&name, [TYPE, VALUE]));
            } else if std::mem::replace(&mut is_read, true) {
                return Err(ArgumentError::new("the field is present twice").at(VALUE));
            } else {
                read(cursor).map_err(|error| error.at(VALUE))?;
            }
        }
        Ok(())
    }
}

/// Reads a string in a form.
fn text_of<T>(cursor: &mut JsonCursor<'_>, expected: &str, parse: fn(&str) -> Option<T>) -> Encoded<T> {
    if cursor.kind() != JsonKind::Text {
        return Err(ArgumentError::expected(expected, cursor.kind()));
    }
    parse(&cursor.text()?)
        .ok_or_else(|| ArgumentError::new(format!("expected {expected}, found another text")))
}

/// Writes a `Timestamp` or `Duration`.
fn put_time((seconds, nanos): (i64, i32), out: &mut Vec<u8>) {
    for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
        if value != 0 {
            put_tag(out, number, WireType::Varint);
            Scalar::Varint(value as u64).put(out);
        }
    }
}

/// Returns the paths of a field mask, in snake case.
fn paths(text: &str) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    for path in text.split(',').filter(|_| !text.is_empty()) {
        let mut out = String::with_capacity(path.len() + 4);
        for c in path.chars() {
            match c {
                'A'..='Z' => out.extend(['_', c.to_ascii_lowercase()]),
                '_' => return None,
                _ => out.push(c),
            }
        }
        paths.push(out);
    }
    Some(paths)
}

fn structure(cursor: &mut JsonCursor<'_>, depth: usize, out: &mut Vec<u8>) -> Encoded<()> {
    expect(cursor, JsonKind::Object)?;
    cursor.open();
    while let Some(name) = cursor.member() {
        let name = name?;
        put_tag(out, 1, WireType::Bytes);
        let entry = begin_delimited(out);
        put_tag(out, 1, WireType::Bytes);
        put_delimited(out, name.as_bytes());
        put_tag(out, 2, WireType::Bytes);
        let start = begin_delimited(out);
        value(cursor, depth + 1, out).map_err(|error| error.at(&name))?;
        end_delimited(out, start);
        end_delimited(out, entry);
    }
    Ok(())
}

fn list(cursor: &mut JsonCursor<'_>, depth: usize, out: &mut Vec<u8>) -> Encoded<()> {
    expect(cursor, JsonKind::Array)?;
    cursor.open();
    let mut index = 0usize;
    while cursor.item().is_some() {
        put_tag(out, 1, WireType::Bytes);
        let start = begin_delimited(out);
        value(cursor, depth + 1, out).map_err(|error| error.at(index))?;
        end_delimited(out, start);
        index += 1;
    }
    Ok(())
}

fn value(cursor: &mut JsonCursor<'_>, depth: usize, out: &mut Vec<u8>) -> Encoded<()> {
    if depth >= MAX_NESTING {
        return Err(too_deep());
    }
    let (number, scalar) = match cursor.kind() {
        JsonKind::Null => {
            cursor.skip_value();
            (NULL_VALUE, Scalar::Varint(0))
        }
        JsonKind::Number => (NUMBER_VALUE, scalar::read(cursor, FieldKind::Double)?),
        JsonKind::Text => (STRING_VALUE, Scalar::Text(cursor.text()?)),
        JsonKind::Boolean => (BOOL_VALUE, Scalar::Varint(cursor.boolean().into())),
        kind => {
            let is_object = kind == JsonKind::Object;
            put_tag(out, if is_object { STRUCT_VALUE } else { LIST_VALUE }, WireType::Bytes);
            let start = begin_delimited(out);
            match is_object {
                true => structure(cursor, depth, out)?,
                false => list(cursor, depth, out)?,
            }
            end_delimited(out, start);
            return Ok(());
        }
    };
    put_tag(out, number, scalar.wire_type());
    scalar.put(out);
    Ok(())
}
