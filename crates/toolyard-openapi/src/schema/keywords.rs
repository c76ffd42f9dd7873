//! Converts single keywords of a schema.

use serde_json::{Map, Value, json};

use super::examples::{example_list, example_value};
use super::{FlatSchema, SchemaDialect, SchemaDirection, SchemaWriter, pattern, typed_values};
use crate::document::SpecNode;
use crate::resolve::NodeRef;

/// A converted keyword; `None` drops it.
type KeywordOutput<'k> = Option<(&'k str, Value)>;

impl<'d> SchemaWriter<'_, 'd> {
    pub(super) fn keywords(&mut self, flat: &FlatSchema<'d>, required: bool) -> Value {
        let mut out = Map::new();
        for (name, at) in &flat.keywords {
            let keyword =
                self.structure(name, *at, flat, required).or_else(|| self.constraint(name, *at, flat));
            if let Some((name, value)) = keyword {
                out.insert(name.to_owned(), value);
            }
        }
        self.properties(flat, required, &mut out);
        if self.schemas.direction == SchemaDirection::Request {
            if self.has_closed_part(flat) {
                out.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
            typed_values::fit(&mut out);
        }
        let mut out = Value::Object(out);
        let says_so = flat.keywords.iter().any(|(name, value)| is_nullable_keyword(name, value.node));
        if says_so || self.schemas.direction == SchemaDirection::Response {
            or_null(&mut out);
        }
        out
    }

    /// Converts keywords about the structure of a value, for requests and responses.
    fn structure(
        &mut self,
        name: &'d str,
        at: NodeRef<'d>,
        flat: &FlatSchema<'d>,
        required: bool,
    ) -> KeywordOutput<'d> {
        let value = match (name, at.node) {
            ("type", _) if self.schemas.direction == SchemaDirection::Response => any_scalar(types(at.node)?),
            ("type", _) => types(at.node)?,
            ("title" | "description", SpecNode::Text(text)) => text.as_ref().into(),
            ("items", SpecNode::Object(_) | SpecNode::Bool(_)) => self.schema(at, required),
            // A schema for each item, as in drafts before 2020-12.
            ("items" | "prefixItems", SpecNode::List(items)) if !items.is_empty() => {
                return Some(("prefixItems", self.all(at, required)));
            }
            ("allOf", SpecNode::List(branches)) if !branches.is_empty() => self.parts(at, required),
            ("anyOf" | "oneOf", SpecNode::List(branches)) if !branches.is_empty() => {
                return Some(self.alternatives(name, at, flat));
            }
            ("additionalProperties", SpecNode::Object(_)) => self.schema(at, false),
            ("patternProperties", SpecNode::Object(_)) => self.each_pattern(at),
            _ => return None,
        };
        Some((name, value))
    }

    /// Converts constraints, for requests only.
    pub(super) fn constraint(
        &mut self,
        name: &'d str,
        at: NodeRef<'d>,
        flat: &FlatSchema<'d>,
    ) -> KeywordOutput<'d> {
        if self.schemas.direction == SchemaDirection::Response {
            return None;
        }
        let value = match (name, at.node) {
            ("additionalProperties", SpecNode::Bool(false)) => {
                // Beside members of other parts, the author means an object that is closed around them all.
                let is_inner = !self.schemas.has_members_elsewhere(flat);
                let keyword = if is_inner { name } else { "unevaluatedProperties" };
                return Some((keyword, Value::Bool(false)));
            }
            ("pattern", SpecNode::Text(text)) => pattern::to_ecmascript(text)?.into(),
            ("format" | "contentMediaType" | "contentEncoding", SpecNode::Text(text)) => text.as_ref().into(),
            ("enum", SpecNode::List(values)) if !values.is_empty() => at.node.to_value(),
            ("default", _) => at.node.to_value(),
            ("example", _) => {
                let example = example_value(self.schemas.files, at).into_iter().collect();
                return Some(("examples", self.short_examples(example)?));
            }
            ("deprecated" | "uniqueItems", SpecNode::Bool(true)) => Value::Bool(true),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", _) => {
                return range_keyword(name, at.node, flat);
            }
            ("multipleOf", SpecNode::Number(number))
                if number.as_f64().is_some_and(|number| number > 0.0) =>
            {
                at.node.to_value()
            }
            ("minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties", _) => {
                count(at.node)?
            }
            ("not", SpecNode::Object(_)) => self.schema(at, false),
            _ if self.schemas.dialect == SchemaDialect::New => return self.keyword_2020_12(name, at),
            _ => return None,
        };
        Some((name, value))
    }

    /// Converts keywords of OpenAPI 3.1, which is JSON Schema 2020-12.
    fn keyword_2020_12(&mut self, name: &'d str, at: NodeRef<'d>) -> KeywordOutput<'d> {
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
                SpecNode::Object(_) | SpecNode::Bool(_),
            ) => self.schema(at, false),
            ("dependentSchemas", SpecNode::Object(_)) => self.each(at),
            ("dependentRequired", SpecNode::Object(_)) | ("const", _) => at.node.to_value(),
            ("examples", SpecNode::List(_)) => self.short_examples(example_list(self.schemas.files, at))?,
            ("minContains" | "maxContains", _) => count(at.node)?,
            _ => return None,
        };
        Some((name, value))
    }

    fn short_examples(&self, mut examples: Vec<Value>) -> Option<Value> {
        examples.retain(|example| example.to_string().len() <= self.schemas.example_bytes);
        (!examples.is_empty()).then_some(Value::Array(examples))
    }

    fn all(&mut self, at: NodeRef<'d>, required: bool) -> Value {
        at.items().map(|item| self.schema(item, required)).collect()
    }

    fn each(&mut self, at: NodeRef<'d>) -> Value {
        Value::Object(at.members().map(|(name, at)| (name.to_owned(), self.schema(at, false))).collect())
    }

    /// Writes the schemas of patterns, without invalid patterns.
    fn each_pattern(&mut self, at: NodeRef<'d>) -> Value {
        let each = at.members().filter_map(|(text, at)| {
            Some((pattern::to_ecmascript(text)?.into_owned(), self.schema(at, false)))
        });
        Value::Object(each.collect())
    }

    /// Writes the properties, and the list of required ones.
    fn properties(&mut self, flat: &FlatSchema<'d>, required: bool, out: &mut Map<String, Value>) {
        let names = self.schemas.required_names(flat);
        let mut properties = Map::new();
        for (name, at) in self.schemas.visible_properties(flat) {
            let value = self.property(name, at, required && names.contains(&name));
            properties.insert(name.to_owned(), value);
        }
        if !properties.is_empty() {
            out.insert("properties".to_owned(), Value::Object(properties));
        }
        if !names.is_empty() && self.schemas.direction == SchemaDirection::Request {
            out.insert("required".to_owned(), json!(names));
        }
    }

    pub(super) fn property(&mut self, name: &str, at: NodeRef<'d>, required: bool) -> Value {
        let is_nested = at.node.get("properties").is_some() || at.node.get("allOf").is_some();
        match self.schemas.hoists && is_nested && at.reference().is_none() {
            true => self.refer(at, name, required),
            false => self.schema(at, required),
        }
    }
}

pub(super) fn is_nullable(node: &SpecNode<'_>) -> bool {
    node.members().iter().any(|(name, value)| is_nullable_keyword(name, value))
}

fn is_nullable_keyword(name: &str, value: &SpecNode<'_>) -> bool {
    matches!(name, "nullable" | "x-nullable") && *value == SpecNode::Bool(true)
}

/// Allows `null` in addition.
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
    // These keywords reject `null` even if `type` allows it.
    if ["$ref", "allOf", "anyOf", "oneOf", "const"].iter().any(|name| keywords.contains_key(*name)) {
        let mut words = Map::new();
        for word in ["title", "description", "default", "examples", "deprecated"] {
            words.extend(keywords.remove(word).map(|value| (word.to_owned(), value)));
        }
        words.insert("anyOf".to_owned(), json!([Value::Object(std::mem::take(keywords)), {"type": "null"}]));
        *keywords = words;
    }
}

/// Converts types to those of JSON Schema; documents contain many other names. `None`: any type.
pub(crate) fn types(node: &SpecNode<'_>) -> Option<Value> {
    let json_type = |node: &SpecNode<'_>| {
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
        SpecNode::List(types) => {
            let mut all: Vec<&str> = Vec::new();
            for kind in types {
                let kind = json_type(kind)?;
                if !all.contains(&kind) {
                    all.push(kind);
                }
            }
            (!all.is_empty()).then(|| json!(all))
        }
        one => json_type(one).map(Value::from),
    }
}

/// Converts a range. Older dialects split it into two keywords.
fn range_keyword<'k>(name: &'k str, node: &SpecNode<'_>, flat: &FlatSchema<'_>) -> KeywordOutput<'k> {
    let exclusive = match name {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        _ => name,
    };
    let is_exclusive = flat.keyword(exclusive).is_some_and(|value| *value.node == SpecNode::Bool(true));
    matches!(node, SpecNode::Number(_))
        .then(|| (if is_exclusive { exclusive } else { name }, node.to_value()))
}

/// Converts a count.
pub(crate) fn count(node: &SpecNode<'_>) -> Option<Value> {
    let SpecNode::Number(number) = node else { return None };
    let whole = number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
    number.as_u64().or(whole.map(|number| number as u64)).map(Value::from)
}

/// Allows any scalar where a scalar is declared, which stays the first: services send numbers for strings and the
/// reverse, and clients discard a whole result for that.
fn any_scalar(types: Value) -> Value {
    const SCALARS: [&str; 3] = ["string", "number", "boolean"];
    let mut all = match types {
        Value::Array(types) => types,
        one => vec![one],
    };
    let is_scalar = |kind: &Value| kind == "integer" || SCALARS.iter().any(|scalar| kind == scalar);
    if all.iter().any(is_scalar) {
        for scalar in SCALARS {
            if !all.contains(&scalar.into()) {
                all.push(scalar.into());
            }
        }
    }
    if let [_] = &*all { all.remove(0) } else { Value::Array(all) }
}
