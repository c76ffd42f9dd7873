//! Structural schemas of Kubernetes, from JSON Schemas (2020-12) of manifests.
//!
//! A structural schema has one type for each value. References become copies, and conditions (`if`) become alternatives.
//! Defaults are left out, because a server would write them into resources; descriptions mention them. Unknown members
//! are preserved, so that the validation of manifests refuses them with a suggestion instead of their silent removal.

use serde_json::{Map, Value, json};

/// Maximum depth of references. No schema of a manifest has recursive ones.
const MAX_DEPTH: usize = 32;

/// Keywords that mean the same in both dialects and restrict values only.
const RESTRICTIONS: [&str; 12] = [
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "required",
];

/// The document that references are resolved in.
pub struct SchemaSource<'a> {
    root: &'a Value,
}

impl<'a> SchemaSource<'a> {
    /// Uses the definitions of a schema.
    #[must_use]
    pub const fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// Returns the structural schema of a definition.
    #[must_use]
    pub fn definition(&self, name: &str) -> Value {
        self.value(&self.root["$defs"][name], 0)
    }

    /// Converts the schema of a value.
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema, depth);
        let mut converted = Map::new();
        if let Some(description) = description(&schema) {
            converted.insert("description".to_owned(), description.into());
        }
        match kind(&schema) {
            ValueKind::Any => {
                converted.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
            }
            ValueKind::IntegerOrText => {
                converted.insert("x-kubernetes-int-or-string".to_owned(), true.into());
                for form in schema["anyOf"].as_array().into_iter().flatten() {
                    let form = self.resolved(form, depth + 1);
                    copy(&form, &["minimum", "maximum", "pattern"], &mut converted);
                }
            }
            ValueKind::Typed(kind) => {
                converted.insert("type".to_owned(), kind.into());
                self.restrict(&schema, depth, &mut converted);
                match kind {
                    "object" => self.object(&schema, depth, &mut converted),
                    "array" => {
                        converted.insert("items".to_owned(), self.value(&schema["items"], depth + 1));
                    }
                    _ => {}
                }
            }
        }
        Value::Object(converted)
    }

    fn object(&self, schema: &Value, depth: usize, converted: &mut Map<String, Value>) {
        let properties = schema["properties"].as_object();
        match (properties, &schema["additionalProperties"]) {
            (None, values @ Value::Object(_)) => {
                converted.insert("additionalProperties".to_owned(), self.value(values, depth + 1));
            }
            (properties, _) => {
                converted.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
                let properties = properties.into_iter().flatten();
                let properties: Map<_, _> =
                    properties.map(|(name, schema)| (name.clone(), self.value(schema, depth + 1))).collect();
                if !properties.is_empty() {
                    converted.insert("properties".to_owned(), properties.into());
                }
            }
        }
    }

    /// Adds what restricts values of a schema to `converted`, without types.
    fn restrict(&self, schema: &Value, depth: usize, converted: &mut Map<String, Value>) {
        copy(schema, &RESTRICTIONS, converted);
        if let Some(constant) = schema.get("const") {
            converted.insert("enum".to_owned(), json!([constant]));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(alternatives) = schema[keyword].as_array() {
                let alternatives = alternatives.iter().map(|schema| self.restriction(schema, depth + 1));
                converted.insert(keyword.to_owned(), alternatives.collect());
            }
        }
        if schema["not"].is_object() {
            converted.insert("not".to_owned(), self.restriction(&schema["not"], depth + 1));
        }
        let all = schema["allOf"].as_array().into_iter().flatten();
        let mut all: Vec<_> = all.map(|schema| self.restriction(schema, depth + 1)).collect();
        all.extend(self.condition(schema, depth));
        for (name, others) in schema["dependentRequired"].as_object().into_iter().flatten() {
            all.push(json!({"anyOf": [{"not": {"required": [name]}}, {"required": others}]}));
        }
        all.retain(|restriction| restriction.as_object().is_some_and(|members| !members.is_empty()));
        if !all.is_empty() {
            converted.insert("allOf".to_owned(), all.into());
        }
    }

    /// Converts a schema inside of `allOf`, `anyOf`, `oneOf` or `not`, where types are not allowed.
    fn restriction(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema, depth);
        let mut converted = Map::new();
        self.restrict(&schema, depth, &mut converted);
        let mut properties = Map::new();
        let mut refused = Vec::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if *schema == Value::Bool(false) {
                refused.push(json!({"required": [name]}));
                continue;
            }
            let restriction = self.restriction(schema, depth + 1);
            if restriction.as_object().is_some_and(|members| !members.is_empty()) {
                properties.insert(name.clone(), restriction);
            }
        }
        if !properties.is_empty() {
            converted.insert("properties".to_owned(), properties.into());
        }
        if !refused.is_empty() {
            let refused = json!({"anyOf": refused});
            match converted.remove("not") {
                Some(not) => converted.insert("not".to_owned(), json!({"anyOf": [not, refused]})),
                None => converted.insert("not".to_owned(), refused),
            };
        }
        Value::Object(converted)
    }

    /// Converts `if`, `then` and `else` into alternatives.
    fn condition(&self, schema: &Value, depth: usize) -> Vec<Value> {
        if !schema["if"].is_object() {
            return Vec::new();
        }
        let condition = self.restriction(&schema["if"], depth + 1);
        let is_met = json!({ "not": condition });
        let mut restrictions = Vec::new();
        for (branch, escape) in [("then", &is_met), ("else", &condition)] {
            if schema[branch].is_object() {
                let branch = self.restriction(&schema[branch], depth + 1);
                restrictions.push(json!({"anyOf": [escape, branch]}));
            }
        }
        restrictions
    }

    /// Returns a schema with the members of its reference, where its own take precedence.
    fn resolved(&self, schema: &Value, depth: usize) -> Value {
        let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        let Some(name) = name.filter(|_| depth < MAX_DEPTH) else { return schema.clone() };
        let mut resolved = self.resolved(&self.root["$defs"][name], depth + 1);
        if let (Some(resolved), Some(own)) = (resolved.as_object_mut(), schema.as_object()) {
            let own = own.iter().filter(|(name, _)| *name != "$ref");
            resolved.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        resolved
    }
}

/// The type of a value.
enum ValueKind {
    /// One type.
    Typed(&'static str),
    /// A whole number or a text, such as a size.
    IntegerOrText,
    /// Any value.
    Any,
}

fn kind(schema: &Value) -> ValueKind {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if let Some(name) = schema["type"].as_str() {
        return TYPES
            .iter()
            .find(|known| **known == name)
            .map_or(ValueKind::Any, |known| ValueKind::Typed(known));
    }
    if schema["const"].is_string() {
        return ValueKind::Typed("string");
    }
    let types: Vec<_> = schema["anyOf"].as_array().into_iter().flatten().map(|form| &form["type"]).collect();
    match &schema["anyOf"][0] {
        // Keywords, or a reference to a variable.
        first if first["enum"].is_array() => ValueKind::Typed("string"),
        _ if types == [&json!("integer"), &json!("string")] => ValueKind::IntegerOrText,
        _ => ValueKind::Any,
    }
}

fn copy(from: &Value, names: &[&str], to: &mut Map<String, Value>) {
    for name in names {
        if let Some(value) = from.get(*name) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Returns the description of a schema, with its default.
fn description(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?;
    Some(match schema.get("default") {
        Some(Value::String(default)) => format!("{text} Default: {default}."),
        Some(default) => format!("{text} Default: {default}."),
        None => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        let root = json!({"$defs": {
            "a": schema,
            "text": {"type": "string", "pattern": "^a$"},
            "object": {"required": ["x"], "properties": {"x": {"enum": ["y"]}}},
        }});
        assert_eq!(SchemaSource::new(&root).definition("a"), expected);
    }

    #[test]
    fn types_and_references() {
        check(
            json!({"type": "integer", "minimum": 1, "default": 3}),
            json!({"type": "integer", "minimum": 1}),
        );
        check(
            json!({"$ref": "#/$defs/text", "description": "A text.", "default": "a"}),
            json!({"description": "A text. Default: a.", "type": "string", "pattern": "^a$"}),
        );
        let any = json!({"x-kubernetes-preserve-unknown-fields": true});
        check(json!({}), any.clone());
        check(json!({"type": ["object", "string"]}), any);
        check(
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9]+$"}]}),
            json!({"x-kubernetes-int-or-string": true, "minimum": 1, "pattern": "^[0-9]+$"}),
        );
        check(
            json!({"description": "A.", "const": "b"}),
            json!({"description": "A.", "type": "string", "enum": ["b"]}),
        );
        check(
            json!({"anyOf": [{"enum": ["b"]}, {"$ref": "#/$defs/text"}]}),
            json!({"type": "string", "anyOf": [{"enum": ["b"]}, {"pattern": "^a$"}]}),
        );
    }

    #[test]
    fn objects_are_maps_or_have_properties() {
        check(
            json!({"type": "object", "propertyNames": {"minLength": 1}, "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        );
        check(
            json!({"type": "object", "additionalProperties": false, "properties": {"b": {"$ref": "#/$defs/text"}}}),
            json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"b": {"type": "string", "pattern": "^a$"}},
            }),
        );
        check(
            json!({"type": "object"}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        );
        check(
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string"}}),
        );
    }

    #[test]
    fn conditions_become_alternatives_without_types() {
        check(
            json!({
                "type": "object",
                "if": {"required": ["b"], "properties": {"b": {"const": "c"}}},
                "then": {"required": ["d"], "properties": {"e": false, "f": {"properties": {"g": false}}}},
                "else": {"$ref": "#/$defs/object"},
            }),
            json!({
                "type": "object",
                "allOf": [
                    {"anyOf": [
                        {"not": {"required": ["b"], "properties": {"b": {"enum": ["c"]}}}},
                        {
                            "required": ["d"],
                            "properties": {"f": {"not": {"anyOf": [{"required": ["g"]}]}}},
                            "not": {"anyOf": [{"required": ["e"]}]},
                        },
                    ]},
                    {"anyOf": [
                        {"required": ["b"], "properties": {"b": {"enum": ["c"]}}},
                        {"required": ["x"], "properties": {"x": {"enum": ["y"]}}},
                    ]},
                ],
                "x-kubernetes-preserve-unknown-fields": true,
            }),
        );
        check(
            json!({"type": "object", "dependentRequired": {"b": ["c"]}, "not": {"required": ["d", "e"]}}),
            json!({
                "type": "object", "not": {"required": ["d", "e"]},
                "allOf": [{"anyOf": [{"not": {"required": ["b"]}}, {"required": ["c"]}]}],
                "x-kubernetes-preserve-unknown-fields": true,
            }),
        );
    }
}
