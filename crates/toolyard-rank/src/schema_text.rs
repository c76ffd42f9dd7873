//! The searchable texts of a tool's parameters, as its input schema has them.

use serde_json::{Map, Value};

/// Maximum depth of indexed parameters.
const MAX_DEPTH: usize = 3;
/// Maximum number of schemas that are read for one tool.
const MAX_SCHEMAS: usize = 1000;
/// Maximum number of values of one parameter.
const MAX_VALUES: usize = 64;
/// Maximum length of a value, in bytes. A longer one is a text of its own.
const MAX_VALUE_BYTES: usize = 64;

/// Returns the parameters of an input schema (JSON Schema 2020-12) by name, each with its description and the texts
/// among its possible values: `enum`, `const`, `default`, `example` and `examples`.
pub fn schema_parameters(schema: &Value) -> Vec<(String, String)> {
    let mut reader = SchemaReader { root: schema, parameters: Vec::new(), remaining: MAX_SCHEMAS };
    reader.properties(schema, 0);
    reader.parameters
}

struct SchemaReader<'s> {
    root: &'s Value,
    parameters: Vec<(String, String)>,
    /// Number of schemas that may still be read.
    remaining: usize,
}

impl<'s> SchemaReader<'s> {
    fn properties(&mut self, schema: &'s Value, depth: usize) {
        for (name, schema) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
            let at = self.parameters.len();
            self.parameters.push((name.clone(), String::new()));
            self.parameter(schema, at, depth);
        }
    }

    /// Adds the texts of a schema to the parameter `at`, and the parameters within it.
    fn parameter(&mut self, schema: &'s Value, at: usize, depth: usize) {
        let Some(remaining) = self.remaining.checked_sub(1) else { return };
        self.remaining = remaining;
        add(&mut self.parameters[at].1, schema["description"].as_str());
        values(schema).take(MAX_VALUES).for_each(|value| add(&mut self.parameters[at].1, Some(value)));
        if depth == MAX_DEPTH {
            return;
        }
        self.properties(schema, depth + 1);
        let alternatives = ["anyOf", "oneOf", "allOf"].map(|key| schema[key].as_array());
        let referenced = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let referenced = referenced.and_then(|pointer| self.root.pointer(pointer));
        let parts = schema.get("items").into_iter().chain(referenced);
        for part in parts.chain(alternatives.into_iter().flatten().flatten()) {
            self.parameter(part, at, depth + 1);
        }
    }
}

/// The short texts among the values that a schema names.
fn values(schema: &Value) -> impl Iterator<Item = &str> {
    let lists = ["enum", "examples"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let single = ["const", "default", "example"].into_iter().map(|key| &schema[key]);
    lists.chain(single).filter_map(Value::as_str).filter(|value| {
        value.len() <= MAX_VALUE_BYTES && !["null", "none"].iter().any(|no| value.eq_ignore_ascii_case(no))
    })
}

fn add(text: &mut String, more: Option<&str>) {
    let Some(more) = more.filter(|more| !more.is_empty()) else { return };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &[(&str, &str)]) {
        let parameters = schema_parameters(schema);
        let parameters: Vec<_> =
            parameters.iter().map(|(name, text)| (name.as_str(), text.replace('\n', " | "))).collect();
        let expected: Vec<_> = expected.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        assert_eq!(parameters, expected);
    }

    #[test]
    fn descriptions_and_named_values_are_texts() {
        check(
            &json!({"properties": {
                "genre": {"description": "A genre", "enum": ["Pop", "Rock", 3, null], "default": "Pop"},
                "page": {"type": "integer", "default": 1, "examples": ["first"]},
                "unit": {"default": "null", "const": "x".repeat(65)},
            }}),
            &[("genre", "A genre | Pop | Rock | Pop"), ("page", "first"), ("unit", "")],
        );
    }

    #[test]
    fn items_alternatives_and_references_are_read() {
        check(
            &json!({
                "$defs": {"Unit": {"enum": ["metric"]}},
                "properties": {
                    "unit": {"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}]},
                    "points": {"items": {"properties": {"lat": {"description": "Latitude"}}}},
                },
            }),
            &[("unit", "metric"), ("points", ""), ("lat", "Latitude")],
        );
    }

    #[test]
    fn recursive_and_odd_schemas_are_bounded() {
        let many: Vec<_> = (0..50).map(|_| json!({"$ref": "#/properties/tree"})).collect();
        let tree = json!({"properties": {"tree": {"description": "t", "anyOf": many}}});
        let parameters = schema_parameters(&tree);
        assert!(parameters.len() == 1 && parameters[0].1.len() <= 2 * MAX_SCHEMAS);
        for odd in [json!(null), json!([]), json!({"properties": [1]}), json!({"properties": {"a": true}})] {
            assert!(schema_parameters(&odd).len() <= 1);
        }
    }
}
