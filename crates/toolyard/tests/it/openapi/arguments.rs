//! Arguments that a schema allows: a plain one for each, always the same.

use serde_json::{Map, Value, json};

/// How deep optional members go. Schemas that contain themselves end there.
const DEPTH: usize = 5;

/// Which members an object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// Those that it needs.
    Required,
    /// All that are described.
    All,
}

/// Makes values of a schema.
struct Generator<'s> {
    root: &'s Value,
    members: Members,
}

/// The arguments of a call. `None` where no value of something that is required is known: this knows no patterns.
pub(super) fn arguments(schema: &Value, members: Members) -> Option<Value> {
    Generator { root: schema, members }.value(schema, 0)
}

impl<'s> Generator<'s> {
    fn value(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        if let Some(shown) = shown(schema) {
            return Some(shown.clone());
        }
        if depth > 3 * DEPTH {
            return None;
        }
        let mut value = self.own(schema, depth)?;
        let branches = schema["allOf"].as_array().into_iter().flatten();
        let first = ["oneOf", "anyOf"].into_iter().filter_map(|name| schema.get(name)?.get(0));
        let target = schema["$ref"].as_str().map(|reference| self.target(reference));
        for part in branches.chain(first).chain(target) {
            value = merge(value, self.value(part, depth)?);
        }
        Some(value)
    }

    /// A value as the schema says by itself; `null` where it does not say.
    fn own(&self, schema: &'s Value, depth: usize) -> Option<Value> {
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
            if !is_required && (self.members == Members::Required || depth >= DEPTH) {
                continue;
            }
            match self.value(member, depth + 1) {
                Some(value) => object.insert(name.clone(), something(value)),
                None if is_required => return None,
                None => None,
            };
        }
        let others = &schema["additionalProperties"];
        let is_empty = object.is_empty() && schema.get("properties").is_none();
        if is_empty && (self.members == Members::All || schema["minProperties"].as_u64() > Some(0)) {
            let value = self.value(others, depth + 1).map_or(json!("text"), something);
            if others != &Value::Bool(false) && depth < DEPTH {
                object.insert("key".to_owned(), value);
            }
        }
        Some(Value::Object(object))
    }

    /// The names of members that an object needs, and of those that these need.
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
        let wanted = if is_unique || depth >= DEPTH { 1 } else { 2 };
        let count = wanted.max(fewest).min(most);
        let item = match self.value(&schema["items"], depth + 1) {
            Some(item) => something(item),
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

/// A value that the schema shows: it is right for reasons that a schema does not say, or that this does not know, such
/// as a pattern. Examples with a format are wrong too often.
fn shown(schema: &Value) -> Option<&Value> {
    let fits = |value: &&Value| is_plain(value, &schema["type"]);
    let listed = |name: &str| schema[name].as_array().into_iter().flatten().find(fits);
    let fixed = schema.get("const").or_else(|| listed("enum"));
    let is_free = schema.get("format").is_none();
    let example = || ["example", "default"].into_iter().filter_map(|name| schema.get(name)).find(fits);
    fixed.or_else(|| example().or_else(|| listed("examples")).filter(|_| is_free))
}

/// Whether a value is one of a type, as far as no others stand in it. Examples are wrong now and then.
fn is_plain(value: &Value, wanted: &Value) -> bool {
    let kind = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Null | Value::Array(_) | Value::Object(_) => return false,
    };
    let fits = |one: &Value| one == kind || (one == "number" && kind == "integer");
    match wanted {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(fits),
        kind => fits(kind),
    }
}

/// A value where anything may stand.
fn something(value: Value) -> Value {
    if value.is_null() { json!("text") } else { value }
}

/// What two schemas say of one value.
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
        // What has to be escaped somewhere, and is no delimiter of a style.
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
