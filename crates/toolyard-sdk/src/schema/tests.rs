#![expect(dead_code, reason = "only their schemas are used")]

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
    /// Text to look for
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

/// Location of the file
#[derive(Deserialize, JsonSchema)]
struct Place {
    path: String,
}

#[test]
fn only_schemas_with_all_properties_at_their_root_are_closed() {
    let check = |schema: Value, is_closed: bool| {
        let closed = closed(schema.clone());
        assert_eq!(closed["additionalProperties"] == false && schema != closed, is_closed, "{schema}");
    };
    check(json!({"type": "object", "properties": {"a": {}}}), true);
    check(json!({"type": "object", "properties": {}, "required": ["a"], "$defs": {}}), true);
    check(json!({"type": "object"}), false);
    check(json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}), false);
    check(json!({"type": "object", "properties": {}, "allOf": [{"properties": {"b": {}}}]}), false);
    check(json!({"$ref": "#/$defs/a", "properties": {}}), false);
    check(json!(true), false);
}

#[test]
fn struct_becomes_an_object() {
    check::<Plain>(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Text to look for"},
            "limit": {"type": "integer", "minimum": 0, "maximum": 255},
            "deep": {"type": "boolean", "default": false},
            "count": {"type": "integer", "default": 10},
            "in": {"$ref": "#/$defs/Place"},
            "sizes": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["query"],
        "$defs": {
            "Place": {
                "description": "Location of the file",
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
fn other_types_become_objects() {
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

/// State of the file
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Lost,
    /// It is there.
    Found,
    /// It was there.
    Gone,
}

#[derive(Deserialize, JsonSchema)]
struct Filter {
    state: Option<State>,
}

/// With comments, but not only texts
#[derive(Deserialize, JsonSchema)]
enum Mixed {
    /// Nothing.
    None,
    /// So many.
    Some(u8),
}

#[test]
fn enum_with_comments_is_one_list() {
    let state = json!({
        "description": "State of the file\nfound: It is there.\ngone: It was there.",
        "type": "string",
        "enum": ["lost", "found", "gone"],
    });
    check::<State>(state.clone());
    assert_eq!(accepted_schema_of::<Filter>()["$defs"]["State"], state);
    assert_eq!(schema_of::<Filter>()["$defs"]["State"], state);
    assert_eq!(schema_of_result::<Vec<State>>()["$defs"]["State"], state);
    assert_eq!(schema_of::<Mixed>()["oneOf"][0]["const"], "None", "{:#}", schema_of::<Mixed>());
}

#[derive(Serialize, JsonSchema)]
enum Expression {
    Number(i32),
    Not(Box<Expression>),
    Nothing,
}

#[track_caller]
fn check_result<T: JsonSchema>(wraps: bool, expect: Option<Value>) {
    let mut published = published_schema(Some(schema_of_result::<T>()));
    let dialect = published.schema.as_mut().and_then(|schema| schema.as_object_mut()?.remove("$schema"));
    assert_eq!(dialect.is_some(), published.schema.is_some());
    assert_eq!((published.wraps, published.schema), (wraps, expect));
}

#[test]
fn result_that_is_not_an_object_is_wrapped() {
    let in_object =
        |result: Value| json!({"type": "object", "properties": {"result": result}, "required": ["result"]});
    check_result::<i32>(true, Some(in_object(json!({"type": "integer"}))));
    check_result::<String>(true, Some(in_object(json!({"type": "string"}))));
    check_result::<Unit>(true, Some(in_object(json!({"type": "string", "enum": ["celsius", "fahrenheit"]}))));
    let mut places = in_object(json!({"type": "array", "items": {"$ref": "#/$defs/Place"}}));
    places["$defs"] = schema_of_result::<Vec<Place>>()["$defs"].clone();
    assert!(places["$defs"]["Place"].is_object());
    check_result::<Vec<Place>>(true, Some(places));
    let mut place = in_object(json!({"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}));
    place["$defs"] = schema_of_result::<Vec<Place>>()["$defs"].clone();
    check_result::<Option<Place>>(true, Some(place));
    check_result::<Value>(false, None);
    assert!(published_schema(Some(json!(true))).schema.is_none());
    let expression = published_schema(Some(schema_of_result::<Expression>())).schema.unwrap();
    assert_eq!(
        expression["properties"]["result"]["oneOf"][2]["properties"]["Not"],
        json!({"$ref": "#/properties/result"}),
        "{expression:#}"
    );
    let plain = published_schema(Some(schema_of_result::<Tree>()));
    assert_eq!((plain.wraps, plain.schema), (false, Some(schema_of_result::<Tree>())));
}

#[test]
fn optional_result_may_be_null() {
    #[derive(Serialize, JsonSchema)]
    struct LineResult {
        line: Option<u32>,
    }
    let schema = schema_of_result::<LineResult>();
    assert_eq!(schema["properties"]["line"]["type"], json!(["integer", "null"]));
    assert_eq!(schema["required"], json!(["line"]));
}

#[test]
fn root_that_is_not_an_object_is_a_fault() {
    let fault = |schema: &Value| root_fault(schema).unwrap_or_default();
    assert_eq!(fault(&schema_of::<Plain>()), "");
    assert_eq!(fault(&schema_of::<Vec<u8>>()), r#"its root has the type "array""#);
    assert_eq!(fault(&schema_of::<Option<Place>>()), r#"its root lacks `"type": "object"`"#);
    assert_eq!(fault(&json!(true)), "it is true");
}
