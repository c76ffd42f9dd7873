//! One keyword after the other.

use serde_json::{Map, Value, json};

use super::{Dialect, Direction, Flat, Writer, discriminator};
use crate::document::Node;
use crate::resolve::At;

/// The longest example that is kept, in bytes of JSON: some are whole documents.
const LONGEST_EXAMPLE: usize = 200;

/// A keyword as 2020-12 has it.
type Keyword<'k> = Option<(&'k str, Value)>;

impl<'d> Writer<'_, 'd> {
    pub(super) fn keywords(&mut self, flat: &Flat<'d>, required: bool) -> Value {
        let mut out = Map::new();
        for (name, at) in &flat.keywords {
            let keyword =
                self.structure(name, *at, flat, required).or_else(|| self.constraint(name, *at, flat));
            if let Some((name, value)) = keyword {
                out.insert(name.to_owned(), value);
            }
        }
        self.properties(flat, required, &mut out);
        let mut out = Value::Object(out);
        let says_so = flat.keywords.iter().any(|(name, value)| is_null_word(name, value.node));
        if says_so || self.schemas.direction == Direction::Response {
            or_null(&mut out);
        }
        out
    }

    /// What a value is made of: it is said of requests and responses alike.
    fn structure(&mut self, name: &'d str, at: At<'d>, flat: &Flat<'d>, required: bool) -> Keyword<'d> {
        let value = match (name, at.node) {
            ("type", _) => types(at.node)?,
            ("title" | "description", Node::Text(text)) => text.as_ref().into(),
            ("items", Node::Object(_) | Node::Bool(_)) => self.schema(at, required),
            // A schema for each item, as drafts before 2020-12 have it.
            ("items" | "prefixItems", Node::List(items)) if !items.is_empty() => {
                return Some(("prefixItems", self.all(at, required)));
            }
            ("allOf", Node::List(branches)) if !branches.is_empty() => self.all(at, required),
            ("anyOf" | "oneOf", Node::List(branches)) if !branches.is_empty() => {
                let mut written: Vec<Value> = at.items().map(|branch| self.schema(branch, false)).collect();
                if self.schemas.direction == Direction::Response {
                    // Without what tells them apart, a value may fit several.
                    return Some(("anyOf", Value::Array(written)));
                }
                if let Some(discriminator) = flat.keyword("discriminator") {
                    discriminator::say(self.schemas.files, discriminator, at, &mut written);
                }
                Value::Array(written)
            }
            ("additionalProperties", Node::Object(_)) => self.schema(at, false),
            ("patternProperties", Node::Object(_)) => self.each(at),
            _ => return None,
        };
        Some((name, value))
    }

    /// What a caller is held to.
    fn constraint(&mut self, name: &'d str, at: At<'d>, flat: &Flat<'d>) -> Keyword<'d> {
        if self.schemas.direction == Direction::Response {
            return None;
        }
        let value = match (name, at.node) {
            ("additionalProperties", Node::Bool(false)) => Value::Bool(false),
            ("format" | "pattern" | "contentMediaType" | "contentEncoding", Node::Text(text)) => {
                text.as_ref().into()
            }
            ("enum", Node::List(values)) if !values.is_empty() => at.node.to_value(),
            ("default", _) => at.node.to_value(),
            ("example", _) => return Some(("examples", short_examples(std::slice::from_ref(at.node))?)),
            ("deprecated" | "uniqueItems", Node::Bool(true)) => Value::Bool(true),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", _) => {
                return bound(name, at.node, flat);
            }
            ("multipleOf", Node::Number(number)) if number.as_f64().is_some_and(|number| number > 0.0) => {
                at.node.to_value()
            }
            ("minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties", _) => {
                count(at.node)?
            }
            ("not", Node::Object(_)) => self.schema(at, false),
            _ if self.schemas.dialect == Dialect::New => return self.modern(name, at),
            _ => return None,
        };
        Some((name, value))
    }

    /// What OpenAPI has since it is JSON Schema itself.
    fn modern(&mut self, name: &'d str, at: At<'d>) -> Keyword<'d> {
        let value = match (name, at.node) {
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "contentSchema"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                Node::Object(_) | Node::Bool(_),
            ) => self.schema(at, false),
            ("dependentSchemas", Node::Object(_)) => self.each(at),
            ("dependentRequired", Node::Object(_)) | ("const", _) => at.node.to_value(),
            ("examples", Node::List(examples)) => short_examples(examples)?,
            ("minContains" | "maxContains", _) => count(at.node)?,
            _ => return None,
        };
        Some((name, value))
    }

    fn all(&mut self, at: At<'d>, required: bool) -> Value {
        at.items().map(|item| self.schema(item, required)).collect()
    }

    fn each(&mut self, at: At<'d>) -> Value {
        Value::Object(at.members().map(|(name, at)| (name.to_owned(), self.schema(at, false))).collect())
    }

    /// The properties, and which of them are required.
    fn properties(&mut self, flat: &Flat<'d>, required: bool, out: &mut Map<String, Value>) {
        let is_required = |name: &str| flat.required.contains(&name);
        let mut properties = Map::new();
        let mut left_out = Vec::new();
        for (name, at) in &flat.properties {
            if self.schemas.leaves_out(*at) {
                left_out.push(*name);
                continue;
            }
            let value = self.property(name, *at, required && is_required(name));
            properties.insert((*name).to_owned(), value);
        }
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        let names: Vec<&str> =
            flat.required.iter().filter(|name| !left_out.contains(name)).copied().collect();
        if !names.is_empty() && self.schemas.direction == Direction::Request {
            out.insert("required".to_owned(), json!(names));
        }
    }

    pub(super) fn property(&mut self, name: &str, at: At<'d>, required: bool) -> Value {
        let is_nested = at.node.get("properties").is_some() || at.node.get("allOf").is_some();
        match self.schemas.hoists && is_nested && at.reference().is_none() {
            true => self.refer(at, name, required),
            false => self.schema(at, required),
        }
    }
}

pub(super) fn is_nullable(node: &Node<'_>) -> bool {
    node.members().iter().any(|(name, value)| is_null_word(name, value))
}

fn is_null_word(name: &str, value: &Node<'_>) -> bool {
    matches!(name, "nullable" | "x-nullable") && *value == Node::Bool(true)
}

/// Allows `null` as well.
pub(super) fn or_null(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    if let Some(Value::Array(values)) = keywords.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match keywords.get_mut("type") {
        Some(Value::Array(types)) if !types.contains(&"null".into()) => types.push("null".into()),
        Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.take(), "null"]),
        _ => {}
    }
    // None of these lets it through by itself.
    if ["$ref", "allOf", "anyOf", "oneOf", "const"].iter().any(|name| keywords.contains_key(*name)) {
        let mut words = Map::new();
        for word in ["title", "description", "default", "examples", "deprecated"] {
            words.extend(keywords.remove(word).map(|value| (word.to_owned(), value)));
        }
        words.insert("anyOf".to_owned(), json!([Value::Object(std::mem::take(keywords)), {"type": "null"}]));
        *keywords = words;
    }
}

/// The types, in the words of JSON Schema; documents have many others. `None`: any.
fn types(node: &Node<'_>) -> Option<Value> {
    let known = |node: &Node<'_>| {
        Some(match node.as_str()?.to_ascii_lowercase().as_str() {
            "string" | "file" | "date" | "datetime" | "date-time" | "uuid" => "string",
            "integer" | "int" | "int32" | "int64" | "long" => "integer",
            "number" | "float" | "double" | "decimal" => "number",
            "boolean" | "bool" => "boolean",
            "array" => "array",
            "object" => "object",
            "null" => "null",
            _ => return None,
        })
    };
    match node {
        Node::List(types) => {
            let mut all: Vec<&str> = Vec::new();
            for kind in types {
                let kind = known(kind)?;
                if !all.contains(&kind) {
                    all.push(kind);
                }
            }
            (!all.is_empty()).then(|| json!(all))
        }
        one => known(one).map(Value::from),
    }
}

/// A bound, which older dialects have in two keywords.
fn bound<'k>(name: &'k str, node: &Node<'_>, flat: &Flat<'_>) -> Keyword<'k> {
    let exclusive = match name {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        _ => name,
    };
    let is_exclusive = flat.keyword(exclusive).is_some_and(|value| *value.node == Node::Bool(true));
    matches!(node, Node::Number(_)).then(|| (if is_exclusive { exclusive } else { name }, node.to_value()))
}

/// A number of things.
fn count(node: &Node<'_>) -> Option<Value> {
    let Node::Number(number) = node else { return None };
    let whole = number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    number.as_u64().or(whole.map(|number| number as u64)).map(Value::from)
}

fn short_examples(examples: &[Node<'_>]) -> Option<Value> {
    let examples = examples.iter().map(Node::to_value);
    let short: Vec<Value> = examples.filter(|example| example.to_string().len() <= LONGEST_EXAMPLE).collect();
    (!short.is_empty()).then_some(Value::Array(short))
}
