#![expect(dead_code, reason = "only their schemas are looked at")]

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;

#[track_caller]
fn check<T: JsonSchema>(expect: Value) {
    let mut schema = schema_of::<T>();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
    }
    assert_eq!(schema, expect, "{schema:#}");
}

#[derive(Deserialize, JsonSchema)]
struct Plain {
    /// What to look for
    query: String,
    limit: Option<u8>,
    #[serde(default)]
    deep: bool,
    #[serde(default = "ten")]
    count: i64,
    #[serde(rename = "in")]
    place: Option<Place>,
    sizes: Option<Vec<f32>>,
}

fn ten() -> i64 {
    10
}

/// Where it is
#[derive(Deserialize, JsonSchema)]
struct Place {
    path: String,
}

#[test]
fn a_plain_struct() {
    check::<Plain>(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "limit": {"type": "integer", "minimum": 0, "maximum": 255},
            "deep": {"type": "boolean", "default": false},
            "count": {"type": "integer", "default": 10},
            "in": {"$ref": "#/$defs/Place"},
            "sizes": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["query"],
        "$defs": {
            "Place": {
                "description": "Where it is",
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        },
    }));
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Change {
    Add { text: String },
    Clear,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Deserialize, JsonSchema)]
struct Weather {
    unit: Option<Unit>,
    #[serde(flatten)]
    rest: HashMap<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(title = "A tree")]
struct Tree {
    children: Vec<Tree>,
}

#[test]
fn other_types_that_are_objects() {
    check::<Change>(json!({
        "type": "object",
        "oneOf": [
            {
                "type": "object",
                "properties": {"text": {"type": "string"}, "op": {"type": "string", "const": "add"}},
                "required": ["op", "text"],
            },
            {"type": "object", "properties": {"op": {"type": "string", "const": "clear"}}, "required": ["op"]},
        ],
    }));
    check::<Weather>(json!({
        "type": "object",
        "properties": {"unit": {"$ref": "#/$defs/Unit"}},
        "additionalProperties": true,
        "$defs": {"Unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
    }));
    check::<Tree>(json!({
        "title": "A tree",
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["children"],
    }));
    check::<HashMap<String, bool>>(json!({"type": "object", "additionalProperties": {"type": "boolean"}}));
    check::<()>(no_arguments());
}

#[test]
fn results_may_be_null() {
    #[derive(Serialize, JsonSchema)]
    struct Found {
        line: Option<u32>,
    }
    let schema = schema_of_result::<Found>();
    assert_eq!(schema["properties"]["line"]["type"], json!(["integer", "null"]));
    assert_eq!(schema["required"], json!(["line"]));
}

#[test]
fn roots_that_are_no_objects() {
    let fault = |schema: &Value| root_fault(schema).unwrap_or_default();
    assert_eq!(fault(&schema_of::<Plain>()), "");
    assert_eq!(fault(&schema_of::<Vec<u8>>()), r#"its root is of type "array""#);
    assert_eq!(fault(&schema_of::<Option<Place>>()), r#"its root does not say `"type": "object"`"#);
    assert_eq!(fault(&json!(true)), "it is true");
}
