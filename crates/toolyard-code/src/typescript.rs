//! JSON Schemas as types of TypeScript, which models read and write well.
//!
//! - `printer`: layout of types, within limits;
//! - [`crate::shapes`]: types of results that no schema describes.

mod printer;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use printer::{Member, UNKNOWN, list, literal, object, property_name, record, union};

/// Maximum nesting of a type. Below it everything is `unknown`.
const MAX_DEPTH: usize = 8;

/// Maximum number of members, alternatives and references in a type.
const MAX_PARTS: usize = 400;

/// Maximum number of literals of an enumeration.
const MAX_LITERALS: usize = 40;

/// Maximum length of a description in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Returns the type that a schema describes. The schema may be any JSON.
#[must_use]
pub fn type_of_schema(schema: &Value) -> String {
    SchemaReader { root: schema, parts: 0 }.type_of(schema, 0)
}

struct SchemaReader<'a> {
    root: &'a Value,
    /// Number of parts so far.
    parts: usize,
}

impl<'a> SchemaReader<'a> {
    fn type_of(&mut self, schema: &'a Value, depth: usize) -> String {
        self.parts += 1;
        let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH && self.parts < MAX_PARTS) else {
            return UNKNOWN.to_owned();
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or_else(|| UNKNOWN.to_owned(), |target| self.type_of(target, depth + 1));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return match values.len() {
                0..=MAX_LITERALS => union(values.iter().map(literal)),
                _ => self.type_of_names(schema, depth),
            };
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema.get(name).and_then(Value::as_array) {
                return self.alternatives(schemas, schema, depth);
            }
        }
        if let Some(schemas) = schema.get("allOf").and_then(Value::as_array) {
            let mut all: Vec<_> = schemas.iter().map(|one| self.type_of(one, depth + 1)).collect();
            if schema.contains_key("properties") {
                all.push(self.object(schema, depth));
            }
            all.retain(|one| one != UNKNOWN);
            return if all.is_empty() { UNKNOWN.to_owned() } else { all.join(" & ") };
        }
        self.type_of_names(schema, depth)
    }

    /// Returns the alternatives, unless they only say which members are required.
    fn alternatives(&mut self, schemas: &'a [Value], around: &'a Map<String, Value>, depth: usize) -> String {
        let is_type = |schema: &Value| {
            let names = ["type", "$ref", "enum", "const", "properties", "anyOf", "oneOf", "allOf"];
            names.iter().any(|name| schema.get(name).is_some())
        };
        if around.contains_key("properties") || !schemas.iter().any(is_type) {
            return self.type_of_names(around, depth);
        }
        union(schemas.iter().map(|one| self.type_of(one, depth + 1)).collect::<Vec<_>>())
    }

    /// Returns the type by the names in `type`.
    fn type_of_names(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        match schema.get("type") {
            Some(Value::String(name)) => self.type_of_name(name, schema, depth),
            Some(Value::Array(names)) => {
                let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
                union(
                    names.into_iter().map(|name| self.type_of_name(name, schema, depth)).collect::<Vec<_>>(),
                )
            }
            _ if schema.contains_key("properties") => self.object(schema, depth),
            _ if schema.contains_key("items") => self.array(schema, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn type_of_name(&mut self, name: &str, schema: &'a Map<String, Value>, depth: usize) -> String {
        match name {
            "string" => "string".to_owned(),
            "number" | "integer" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
            let items: Vec<_> = items.iter().map(|item| self.type_of(item, depth + 1)).collect();
            return format!("[{}]", items.join(", "));
        }
        match schema.get("items") {
            Some(items) => list(&self.type_of(items, depth + 1)),
            None => list(UNKNOWN),
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let required: Vec<_> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut members = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            if self.parts >= MAX_PARTS {
                break;
            }
            members.push(Member {
                name: name.clone(),
                is_optional: !required.contains(&&**name),
                type_text: self.type_of(property, depth + 1),
                comment: comment(property),
            });
        }
        members.sort_by_key(|member| member.is_optional);
        let more = schema.get("additionalProperties");
        match more.filter(|more| more.is_object()) {
            Some(more) if members.is_empty() => record(&self.type_of(more, depth + 1)),
            _ if members.is_empty() && more == Some(&Value::Bool(false)) => "{}".to_owned(),
            _ if members.is_empty() => record(UNKNOWN),
            _ => object(&members),
        }
    }
}

/// Returns the comment of a member: its description, and its default.
fn comment(schema: &Value) -> Option<String> {
    let description = schema.get("description").and_then(Value::as_str).map(one_line);
    let default =
        schema.get("default").filter(|value| !value.is_object() && !value.is_array() && !value.is_null());
    let default = default.map(|value| format!("Default: {}", literal(value)));
    let comment: Vec<_> = description.filter(|text| !text.is_empty()).into_iter().chain(default).collect();
    (!comment.is_empty()).then(|| comment.join(" "))
}

/// Returns the beginning of a text in one line that can stand in a comment.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ").replace("*/", "* /");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
