//! The keywords that contain or reference other schemas, of all drafts together.

use serde_json::Value;

const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const BELOW: [&str; 8] = [
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const BELOW_LISTS: [&str; 2] = ["items", "prefixItems"];
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const UNEVALUATED: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];
pub(super) const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

pub(super) fn is_about_unevaluated(schema: &Value) -> bool {
    UNEVALUATED.iter().any(|name| schema.get(name).is_some())
}

/// Returns `true` for references to meta-schemas, which validators know.
pub(super) fn is_meta_schema(reference: &str) -> bool {
    reference.split("//").nth(1).is_some_and(|rest| rest.starts_with("json-schema.org/"))
}

pub(super) fn texts<'s>(
    schema: &'s Value,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'s str> {
    keywords.iter().filter_map(|keyword| schema.get(keyword)?.as_str())
}

pub(super) fn references(schema: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    REFERENCES.iter().filter_map(|keyword| Some((*keyword, schema.get(keyword)?.as_str()?)))
}

/// Returns the last segment of a URI, which is the same in its relative and absolute forms.
pub(super) fn last_segment(uri: &str) -> Option<&str> {
    let uri = uri.split('#').next().unwrap_or_default();
    let path = match uri.split_once("//") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => uri,
    };
    let segment = path.rsplit(['/', ':']).next()?;
    (!["", ".", ".."].contains(&segment) && !segment.contains('%')).then_some(segment)
}

/// Returns the schemas in some keywords: a single one, a list, or a map.
fn schemas_in_lists<'s>(
    schema: &'s Value,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'s Value> {
    keywords.iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten()
}

fn schemas_in_maps<'s>(
    schema: &'s Value,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = (&'s str, &'s Value)> {
    let maps = keywords.iter().filter_map(|keyword| schema.get(keyword)?.as_object());
    maps.flatten().map(|(name, schema)| (name.as_str(), schema))
}

fn single_schemas<'s>(
    schema: &'s Value,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'s Value> {
    keywords.iter().filter_map(|keyword| schema.get(keyword)).filter(|inner| !inner.is_array())
}

/// Returns the schemas that apply to the same value, without references.
pub(super) fn in_place(schema: &Value) -> impl Iterator<Item = &Value> {
    let mapped = schemas_in_maps(schema, &IN_PLACE_MAPS).map(|(_, schema)| schema);
    single_schemas(schema, &IN_PLACE).chain(schemas_in_lists(schema, &IN_PLACE_LISTS)).chain(mapped)
}

/// Returns the schemas of members and items without a name in the schema.
pub(super) fn below(schema: &Value) -> impl Iterator<Item = &Value> {
    single_schemas(schema, &BELOW).chain(schemas_in_lists(schema, &BELOW_LISTS))
}

/// Returns all schemas inside of a schema.
pub(super) fn inner(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let unnamed = in_place(schema).chain(below(schema)).map(|schema| ("", schema));
    unnamed.chain(schemas_in_maps(schema, &NAMED))
}
