//! Deterministic arguments that match a schema.

use serde_json::{Map, Value, json};

/// Depth limit of optional members, which ends recursive schemas.
const DEPTH: usize = 5;

/// The members of generated objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberSelection {
    /// Only required members.
    Required,
    /// All described members.
    All,
}

/// Generates values of a schema.
struct ArgumentGenerator<'s> {
    root: &'s Value,
    members: MemberSelection,
}

/// Returns the arguments of a call, or `None` if a required value has a pattern, which is not supported.
pub(super) fn arguments(schema: &Value, members: MemberSelection) -> Option<Value> {
    ArgumentGenerator { root: schema, members }.value(schema, 0)
}

impl<'s> ArgumentGenerator<'s> {
    fn value(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        if let Some(example) = example(schema) {
            return Some(example.clone());
        }
        if depth > 3 * DEPTH {
            return None;
        }
        let mut value = self.explicit_value(schema, depth)?;
        let branches = schema["allOf"].as_array().into_iter().flatten();
        let first = ["oneOf", "anyOf"].into_iter().filter_map(|name| schema.get(name)?.get(0));
        let target = schema["$ref"].as_str().map(|reference| self.target(reference));
        for part in branches.chain(first).chain(target) {
            value = merge(value, self.value(part, depth)?);
        }
        Some(value)
    }

    /// Returns a value from the keywords of the schema itself, or `null` if it has none.
    fn explicit_value(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find_map(Value::as_str),
            kind => kind.as_str(),
        };
        let is_object = schema.get("properties").is_some() || schema.get("required").is_some();
        Some(match kind.or(is_object.then_some("object")) {
            Some("object") => self.object(schema, depth)?,
            Some("array") => self.array(schema, depth)?,
            Some("string") => text(schema)?,
            Some("integer" | "number") => number(schema),
            Some("boolean") => json!(true),
            _ => Value::Null,
        })
    }

    fn object(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        let required = self.required(schema);
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            if !is_required && (self.members == MemberSelection::Required || depth >= DEPTH) {
                continue;
            }
            match self.value(member, depth + 1) {
                Some(value) => object.insert(name.clone(), any_value(value)),
                None if is_required => return None,
                None => None,
            };
        }
        let others = &schema["additionalProperties"];
        let is_empty = object.is_empty() && schema.get("properties").is_none();
        if is_empty && (self.members == MemberSelection::All || schema["minProperties"].as_u64() > Some(0)) {
            let value = self.value(others, depth + 1).map_or(json!("text"), any_value);
            if others != &Value::Bool(false) && depth < DEPTH {
                object.insert("key".to_owned(), value);
            }
        }
        Some(Value::Object(object))
    }

    /// Returns the names of the required members and of their dependencies.
    fn required(&self, schema: &'s Value) -> Vec<&'s str> {
        let names = |list: &'s Value| list.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut required: Vec<&str> = names(&schema["required"]).collect();
        let mut at = 0;
        while let Some(name) = required.get(at).copied() {
            let further = names(&schema["dependentRequired"][name]);
            let further: Vec<_> = further.filter(|name| !required.contains(name)).collect();
            required.extend(further);
            at += 1;
        }
        required
    }

    fn array(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let fewest = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        let is_unique = schema["uniqueItems"] == json!(true);
        let length = if is_unique || depth >= DEPTH { 1 } else { 2 };
        let count = length.max(fewest).min(most);
        let item = match self.value(&schema["items"], depth + 1) {
            Some(item) => any_value(item),
            None if fewest == 0 => return Some(json!([])),
            None => return None,
        };
        Some(json!(vec![item; usize::try_from(count).ok()?]))
    }

    #[track_caller]
    fn target(&self, reference: &str) -> &'s Value {
        let pointer = reference.strip_prefix('#').unwrap();
        let target = self.root.pointer(pointer);
        target.unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }
}

/// Returns an example, default or enumerated value of the schema, which may satisfy constraints that are not supported
/// here, such as a pattern. Examples with a format are often wrong.
fn example(schema: &Value) -> Option<&Value> {
    let fits = |value: &&Value| is_plain(value, &schema["type"]);
    let first_listed = |name: &str| schema[name].as_array().into_iter().flatten().find(fits);
    let fixed = schema.get("const").or_else(|| first_listed("enum"));
    // Beside a reference, a document may say "Current time".
    let is_free = schema.get("format").or_else(|| schema.get("$ref")).is_none();
    let example = || ["example", "default"].into_iter().filter_map(|name| schema.get(name)).find(fits);
    fixed.or_else(|| example().or_else(|| first_listed("examples")).filter(|_| is_free))
}

/// True if a value is a scalar or empty value of the type. Examples are sometimes wrong.
fn is_plain(value: &Value, expected: &Value) -> bool {
    let kind = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Null | Value::Array(_) | Value::Object(_) => return false,
    };
    let fits = |one: &Value| one == kind || (one == "number" && kind == "integer");
    match expected {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(fits),
        kind => fits(kind),
    }
}

/// Returns the value for a schema without constraints.
fn any_value(value: Value) -> Value {
    if value.is_null() { json!("text") } else { value }
}

/// Merges two schemas of one value.
fn merge(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, Value::Null) => one,
        (Value::Null, other) => other,
        (one, _) => one,
    }
}

fn text(schema: &Value) -> Option<Value> {
    if schema.get("pattern").is_some() {
        return None;
    }
    let text = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "duration" => "P1D",
        "uuid" => "6f1d3a52-0c53-4b0e-9c3e-0c3b6a3f9d10",
        "uri" | "url" | "uri-reference" => "https://example.com/a?b=c",
        "email" => "ann@example.com",
        "ipv4" | "ip" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "example.com",
        "byte" | "binary" => "aGVsbG8=",
        _ if schema["contentEncoding"] == json!("base64") => "aGVsbG8=",
        // Contains characters that need escaping and no delimiter of a style.
        _ => "a b/ü&c=d",
    };
    let fewest = schema["minLength"].as_u64().map_or(0, |length| length as usize);
    let most = schema["maxLength"].as_u64().map_or(usize::MAX, |length| length as usize);
    let letters = text.chars().chain(std::iter::repeat('x'));
    Some(letters.take(text.chars().count().max(fewest).min(most)).collect::<String>().into())
}

fn number(schema: &Value) -> Value {
    let step = schema["multipleOf"].as_f64().unwrap_or(1.0);
    let above = schema["exclusiveMinimum"].as_f64().map(|limit| limit + step);
    let below = schema["exclusiveMaximum"].as_f64().map(|limit| limit - step);
    let fewest = schema["minimum"].as_f64().or(above).unwrap_or(f64::MIN);
    let most = schema["maximum"].as_f64().or(below).unwrap_or(f64::MAX);
    let number = step.max(fewest).min(most);
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}
