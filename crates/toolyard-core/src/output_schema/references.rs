//! References in a schema that becomes part of another one.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::{Map, Value};

use crate::json::Json;

/// The members of a schema that are moved to the root of the other one, so that references to them stay valid.
pub(super) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The keywords whose values are not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Returns a schema whose references to its root, other than to its definitions, lead to `pointer`. A schema without
/// such references is not changed; in another one numbers beyond 64 bits lose digits.
pub(super) fn moved_to(schema: &Json, pointer: &str) -> Json {
    if !has_root_references(schema) {
        return schema.clone();
    }
    let mut schema = schema.to_value();
    move_references(&mut schema, pointer);
    Json::from_value(&schema)
}

/// Returns `true` if a schema may have references to its root or parts of it, other than its definitions. References in
/// a schema with an identifier are relative to that.
pub(super) fn has_root_references(schema: &Json) -> bool {
    let text = schema.as_bytes();
    let is_definition = |rest: &[u8]| {
        DEFINITIONS.iter().any(|name| {
            let rest = rest.strip_prefix(b"/").and_then(|rest| rest.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        })
    };
    memmem::find_iter(text, b"\"#").any(|at| !is_definition(&text[at + 2..]))
}

fn move_references(schema: &mut Value, pointer: &str) {
    match schema {
        // References in a schema with an identifier are relative to that.
        Value::Object(members) if !members.get("$id").is_some_and(Value::is_string) => {
            members.iter_mut().for_each(|(keyword, value)| move_in_keyword(keyword, value, pointer));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, pointer)),
        _ => {}
    }
}

fn move_in_keyword(keyword: &str, value: &mut Value, pointer: &str) {
    match (keyword, value) {
        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
            if let Some(moved) = moved_reference(reference, pointer) {
                *reference = moved;
            }
        }
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
            Value::Object(schemas),
        ) => move_in_map(schemas, pointer),
        (keyword, value) if !DATA.contains(&keyword) => move_references(value, pointer),
        _ => {}
    }
}

/// Moves the references in schemas by names, which may be those of keywords.
fn move_in_map(schemas: &mut Map<String, Value>, pointer: &str) {
    schemas.values_mut().for_each(|schema| move_references(schema, pointer));
}

/// Returns a reference to the new place of its target; `None` if it stays valid.
fn moved_reference(reference: &str, pointer: &str) -> Option<String> {
    let path = reference.strip_prefix('#')?;
    let first = path.strip_prefix('/').map(|path| path.split('/').next().unwrap_or_default());
    match first.map(decoded) {
        Some(first) if DEFINITIONS.contains(&&*first) => None,
        Some(_) => Some(format!("{pointer}{path}")),
        None if path.is_empty() => Some(pointer.to_owned()),
        // An anchor.
        None => None,
    }
}

/// Returns a segment of a pointer without the percent-encoding of its `$`.
fn decoded(segment: &str) -> Cow<'_, str> {
    match segment.strip_prefix("%24") {
        Some(rest) => Cow::Owned(format!("${rest}")),
        None => Cow::Borrowed(segment),
    }
}
