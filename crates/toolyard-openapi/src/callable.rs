//! Arguments that no value satisfies.
//!
//! Documents contradict themselves: an operation whose schema accepts nothing is a tool that cannot be called. Only
//! contradictions that are certain are found.

use std::collections::HashMap;

use serde_json::Value;

/// Maximum nesting of the search.
const MAX_DEPTH: usize = 48;

/// Maximum number of schemas that are searched.
const MAX_SCHEMAS: usize = 20_000;

/// Returns the reason why no arguments satisfy a schema, with the argument that it is about.
pub(crate) fn contradiction(schema: &Value) -> Option<String> {
    let mut search = ContradictionSearch { root: schema, known: HashMap::new(), left: MAX_SCHEMAS };
    search.of(schema, MAX_DEPTH).map(|found| match &*found.at {
        "" => found.reason,
        at => format!("{at}: {}", found.reason),
    })
}

/// A reason, and the path of the member that it is about.
#[derive(Clone)]
struct Contradiction {
    at: String,
    reason: String,
}

struct ContradictionSearch<'s> {
    root: &'s Value,
    /// Results for definitions. A definition within itself has none.
    known: HashMap<&'s str, Option<Contradiction>>,
    left: usize,
}

impl<'s> ContradictionSearch<'s> {
    fn of(&mut self, schema: &'s Value, depth: usize) -> Option<Contradiction> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let found = |reason: &str| Some(Contradiction { at: String::new(), reason: reason.to_owned() });
        if *schema == false || schema["not"].as_object().is_some_and(serde_json::Map::is_empty) {
            return found("no value is allowed");
        }
        if !has_typed_value(schema) {
            return found("no value of `enum` or `const` has the type");
        }
        if let Some(reason) = empty_range(schema) {
            return found(reason);
        }
        self.of_parts(schema, depth).or_else(|| self.of_members(schema, depth))
    }

    fn of_parts(&mut self, schema: &'s Value, depth: usize) -> Option<Contradiction> {
        if let Some(found) = schema["$ref"].as_str().and_then(|reference| self.of_reference(reference, depth))
        {
            return Some(found);
        }
        if let Some(found) = list(&schema["allOf"]).iter().find_map(|part| self.of(part, depth)) {
            return Some(found);
        }
        for word in ["anyOf", "oneOf"] {
            let branches = list(&schema[word]);
            let first = branches.first().and_then(|branch| self.of(branch, depth));
            if first.is_some() && branches[1..].iter().all(|branch| self.of(branch, depth).is_some()) {
                return first;
            }
        }
        None
    }

    fn of_reference(&mut self, reference: &'s str, depth: usize) -> Option<Contradiction> {
        if let Some(known) = self.known.get(reference) {
            return known.clone();
        }
        self.known.insert(reference, None);
        let target = self.root.pointer(reference.strip_prefix('#')?)?;
        let found = self.of(target, depth);
        self.known.insert(reference, found.clone());
        found
    }

    /// Finds members that objects need and cannot have, and items that lists need. Other types may be allowed as well.
    fn of_members(&mut self, schema: &'s Value, depth: usize) -> Option<Contradiction> {
        if schema["type"] == "array" && schema["minItems"].as_u64().unwrap_or(0) > 0 {
            return self.of(schema.get("items")?, depth);
        }
        if schema["type"] != "object" {
            return None;
        }
        let is_closed = schema["additionalProperties"] == false && schema.get("patternProperties").is_none();
        for name in list(&schema["required"]).iter().filter_map(Value::as_str) {
            match schema["properties"].get(name) {
                Some(member) => {
                    if let Some(found) = self.of(member, depth) {
                        return Some(Contradiction { at: format!("/{name}{}", found.at), ..found });
                    }
                }
                None if is_closed => {
                    let reason =
                        format!("the closed object requires a member `{name}`, which it does not have");
                    return Some(Contradiction { at: String::new(), reason });
                }
                None => {}
            }
        }
        None
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// False if values are enumerated, and none has a declared type.
fn has_typed_value(schema: &Value) -> bool {
    let has_type = |value: &Value| match &schema["type"] {
        Value::String(kind) => is_of_type(value, kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of_type(value, kind)),
        _ => true,
    };
    let values = schema["enum"].as_array();
    match (values, schema.get("const")) {
        (Some(values), Some(value)) => values.contains(value) && has_type(value),
        (Some(values), None) => values.iter().any(has_type),
        (None, Some(value)) => has_type(value),
        (None, None) => true,
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Returns the reason if a limit of the only type is above the other one.
fn empty_range(schema: &Value) -> Option<&'static str> {
    let ranges = [
        (&["integer", "number"][..], "minimum", "maximum", "`minimum` is above `maximum`"),
        (&["string"], "minLength", "maxLength", "`minLength` is above `maxLength`"),
        (&["array"], "minItems", "maxItems", "`minItems` is above `maxItems`"),
        (&["object"], "minProperties", "maxProperties", "`minProperties` is above `maxProperties`"),
    ];
    let kind = schema["type"].as_str()?;
    let is_empty = |least: &str, most: &str| Some(schema[least].as_f64()? > schema[most].as_f64()?);
    let mut ranges = ranges.into_iter().filter(|(kinds, ..)| kinds.contains(&kind));
    ranges.find_map(|(_, least, most, reason)| (is_empty(least, most) == Some(true)).then_some(reason))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(member: Value, expected: Option<&str>) {
        let schema = json!({
            "type": "object", "properties": {"a": member}, "required": ["a"],
            "$defs": {
                "None": {"type": "integer", "enum": ["x"]},
                "Loop": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Loop"}}, "required": ["a"]},
            },
        });
        assert_eq!(contradiction(&schema).as_deref(), expected, "{schema}");
    }

    #[test]
    fn contradictions_are_found() {
        let enumerated = Some("/a: no value of `enum` or `const` has the type");
        check(json!({"type": "integer", "enum": ["1"]}), enumerated);
        check(json!({"type": ["integer", "string"], "enum": ["1"]}), None);
        check(json!({"const": 1, "enum": [2]}), enumerated);
        check(json!({"$ref": "#/$defs/None"}), enumerated);
        check(json!({"anyOf": [{"$ref": "#/$defs/None"}, {"type": "null"}]}), None);
        check(json!({"oneOf": [{"$ref": "#/$defs/None"}, {"$ref": "#/$defs/None"}]}), enumerated);
        check(json!({"allOf": [{}, {"$ref": "#/$defs/None"}]}), enumerated);
        check(json!({"type": "array", "items": {"$ref": "#/$defs/None"}}), None);
        check(json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/None"}}), enumerated);
        check(json!({"not": {}}), Some("/a: no value is allowed"));
        check(json!(false), Some("/a: no value is allowed"));
        check(
            json!({"type": "string", "minLength": 5, "maxLength": 2}),
            Some("/a: `minLength` is above `maxLength`"),
        );
        check(
            json!({"type": "object", "additionalProperties": false, "required": ["b"]}),
            Some("/a: the closed object requires a member `b`, which it does not have"),
        );
        let nested =
            json!({"type": "object", "required": ["b"], "properties": {"b": {"$ref": "#/$defs/None"}}});
        check(nested, Some("/a/b: no value of `enum` or `const` has the type"));
        // Infinite values are not searched for.
        check(json!({"$ref": "#/$defs/Loop"}), None);
    }
}
