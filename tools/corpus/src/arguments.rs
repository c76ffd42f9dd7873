//! Arguments that a tool's own schema accepts.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use toolyard_core::schema::{CompiledSchema, ValidationBudget};

/// Maximum depth of generated values, which ends recursive schemas.
const MAX_DEPTH: usize = 14;

/// Depth down to which optional members are generated.
const OPTIONAL_DEPTH: usize = 3;

/// Number of branches of each `oneOf` and `anyOf` that are tried, and of values of each `enum`.
const CHOICES: usize = 6;

/// Number of attempts to find a text that matches a pattern and has the right length.
const PATTERN_ATTEMPTS: usize = 60;

/// Placeholder for a value without constraints, until another schema constrains it.
const ANY: &str = "\u{0}";

/// Generates values of a schema.
#[derive(Clone, Copy)]
struct ArgumentGenerator<'s> {
    root: &'s Value,
    with_optional: bool,
    with_examples: bool,
    choice: usize,
}

/// Returns arguments that the schema accepts and that can be sent.
///
/// # Errors
/// The reason why the last attempt failed.
pub(super) fn accepted_arguments(
    schema: &Value,
    send: impl Fn(&Value) -> Result<(), String>,
) -> Result<Value, String> {
    let compiled = CompiledSchema::compile(schema).map_err(|error| error.to_string())?;
    let mut problem = "no value was found".to_owned();
    for (with_examples, with_optional) in [(true, false), (true, true), (false, false), (false, true)] {
        for choice in 0..CHOICES {
            let generator = ArgumentGenerator { root: schema, with_optional, with_examples, choice };
            let Some(value) = generator.value(schema, 0).map(without_any) else { continue };
            let budget = ValidationBudget::of(value.to_string().len());
            let checked = compiled.check(&value, &budget).map_err(|mismatch| mismatch.to_string());
            match checked.and_then(|()| send(&value)) {
                Ok(()) => return Ok(value),
                Err(why) => problem = why,
            }
        }
    }
    Err(problem)
}

impl<'s> ArgumentGenerator<'s> {
    /// Returns a value of a schema, with [`ANY`] in it; `None` if none is found.
    fn value(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(value) = self.given_value(schema) {
            return Some(value);
        }
        let mut value: Value = ANY.into();
        for branch in list(&schema["allOf"]) {
            value = merge(value, self.value(branch, depth + 1)?);
        }
        for keyword in ["oneOf", "anyOf"] {
            let branches = list(&schema[keyword]);
            let mut chosen =
                (0..branches.len()).map(|index| &branches[(index + self.choice) % branches.len()]);
            if !branches.is_empty() {
                value = merge(value, chosen.find_map(|branch| self.value(branch, depth + 1))?);
            }
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            value = merge(value, self.value(target, depth + 1)?);
        }
        // Branches are more specific: they may allow one value of the type only.
        let mut value = merge(value, self.typed_value(schema, depth)?);
        // A branch may require a member that only the schema around it describes.
        for (name, member) in value.as_object_mut().into_iter().flatten() {
            let described = schema["properties"].get(name).filter(|_| *member == ANY);
            if let Some(inside) = described.and_then(|described| self.value(described, depth + 1)) {
                *member = inside;
            }
        }
        Some(value)
    }

    /// Returns a value that the schema contains.
    fn given_value(&self, schema: &Value) -> Option<Value> {
        let listed: Vec<&Value> = list(&schema["enum"]).iter().filter(|value| fits(value, schema)).collect();
        let listed = listed.get(self.choice % listed.len().max(1)).copied();
        let example = schema["examples"].get(0).or(schema.get("default"));
        let example = example.filter(|value| self.with_examples && !value.is_null() && fits(value, schema));
        schema.get("const").or(listed).or(example).cloned()
    }

    /// Returns a value from the type of the schema.
    fn typed_value(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            kind => kind.as_str(),
        };
        let is_object = schema.get("properties").is_some() || schema.get("required").is_some();
        match kind.or(is_object.then_some("object")) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => text(schema),
            Some("integer" | "number") => Some(number(schema)),
            Some("boolean") => Some(true.into()),
            _ => Some(ANY.into()),
        }
    }

    fn object(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        let required: Vec<&str> = list(&schema["required"]).iter().filter_map(Value::as_str).collect();
        let fewest = schema["minProperties"].as_u64().unwrap_or(0) as usize;
        let has_optional = self.with_optional && depth < OPTIONAL_DEPTH;
        let others = &schema["additionalProperties"];
        let properties = || schema["properties"].as_object().into_iter().flatten();
        for (name, member) in properties() {
            let is_required = required.contains(&name.as_str());
            if is_required || has_optional {
                match self.value(member, depth + 1) {
                    Some(value) => drop(object.insert(name.clone(), value)),
                    None if is_required => return None,
                    None => {}
                }
            }
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(others, depth + 1).unwrap_or_else(|| ANY.into()));
            }
        }
        for (name, member) in properties() {
            if object.len() < fewest && !object.contains_key(name) {
                object.extend(self.value(member, depth + 1).map(|value| (name.clone(), value)));
            }
        }
        for number in object.len()..fewest.min(CHOICES) {
            object
                .insert(format!("key{number}"), self.value(others, depth + 1).unwrap_or_else(|| ANY.into()));
        }
        Some(Value::Object(object))
    }

    fn array(&self, schema: &'s Value, depth: usize) -> Option<Value> {
        let fewest = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        let mut items: Vec<Value> = Vec::new();
        for index in 0..fewest.max(self.with_optional.into()).min(most) as usize {
            let of_item = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
            let other = Self { choice: self.choice + index, ..*self };
            match other.value(of_item, depth + 1) {
                Some(item) if schema["uniqueItems"] == true && items.contains(&item) => {
                    items.push(distinct(item, index));
                }
                Some(item) => items.push(item),
                None if fewest == 0 => break,
                None => return None,
            }
        }
        Some(items.into())
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Replaces [`ANY`] by a text.
fn without_any(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, without_any(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.into_iter().map(without_any).collect(),
        value if value == ANY => "text".into(),
        value => value,
    }
}

fn distinct(item: Value, index: usize) -> Value {
    match item {
        Value::String(text) => format!("{text}{index}").into(),
        Value::Number(number) => {
            number.as_i64().map_or(number.into(), |number| (number + index as i64).into())
        }
        item => item,
    }
}

/// True if a value has the type of a schema. Examples and enumerations are sometimes wrong.
fn fits(value: &Value, schema: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    }
}

/// Merges two values of one place. A value with content takes precedence over one without.
fn merge(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (name, value) in other {
                let before = one.remove(&name).unwrap_or_else(|| ANY.into());
                one.insert(name, merge(before, value));
            }
            Value::Object(one)
        }
        (one, other) if one == ANY => other,
        (one, _) => one,
    }
}

fn text(schema: &Value) -> Option<Value> {
    let fewest = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxLength"].as_u64().map_or(usize::MAX, |length| length as usize);
    if let Some(pattern) = schema["pattern"].as_str() {
        return matching_text(pattern, fewest, most).map(Value::from);
    }
    let text = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "uuid" => "6f1d3a52-0c53-4b0e-9c3e-0c3b6a3f9d10",
        "uri" | "url" => "https://example.com/a",
        "email" => "ann@example.com",
        "ipv4" => "192.0.2.1",
        "byte" | "binary" => "aGVsbG8=",
        _ if schema["contentEncoding"] == "base64" => "aGVsbG8=",
        _ => "abc",
    };
    let letters = text.chars().chain(std::iter::repeat('x'));
    Some(letters.take(text.len().max(fewest).min(most)).collect::<String>().into())
}

/// Returns a text for a regular expression. The generator knows no anchors.
fn matching_text(pattern: &str, fewest: usize, most: usize) -> Option<String> {
    // In ECMAScript these are ASCII.
    let mut pattern = pattern.replace("\\/", "/").replace("\\d", "[0-9]").replace("\\w", "[0-9A-Za-z_]");
    for (anchored, free) in [("|^", "|"), ("$|", "|"), ("(^", "("), ("$)", ")")] {
        pattern = pattern.replace(anchored, free);
    }
    let texts = proptest::string::string_regex(pattern.trim_start_matches('^').trim_end_matches('$')).ok()?;
    let mut runner = TestRunner::deterministic();
    let mut found: Vec<String> = Vec::new();
    for _ in 0..PATTERN_ATTEMPTS {
        let text = texts.new_tree(&mut runner).ok()?.current();
        if (fewest..=most).contains(&text.chars().count()) {
            return Some(text);
        }
        found.push(text);
    }
    found.into_iter().next()
}

fn number(schema: &Value) -> Value {
    let step = schema["multipleOf"].as_f64();
    let distance = step.unwrap_or(1.0);
    let limit = |own: &str, exclusive: &str, distance: f64| {
        let exclusive = schema[exclusive].as_f64().map(|limit| limit + distance);
        schema[own].as_f64().or(exclusive)
    };
    let least = limit("minimum", "exclusiveMinimum", distance).unwrap_or(f64::MIN);
    let most = limit("maximum", "exclusiveMaximum", -distance.min(0.0001)).unwrap_or(f64::MAX);
    let mut number = 1.0_f64.max(least).min(most);
    if let Some(step) = step {
        number = (number / step).ceil() * step;
        if number > most {
            number = (most / step).floor() * step;
        }
    }
    if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_arguments_are_accepted() {
        let check = |property: Value| {
            let schema = json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
            assert_eq!(accepted_arguments(&schema, |_| Ok(())).map(drop), Ok(()), "{schema}");
        };
        check(json!({"type": "string", "pattern": "^\\d+\\.\\d+$"}));
        check(json!({"type": "string", "pattern": "^[\\w-]{3}$"}));
        check(json!({
            "type": "object",
            "properties": {"kind": {"type": "string"}, "id": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["kind"],
            "oneOf": [{"required": ["id"]}, {"required": ["name"]}],
        }));
    }
}
