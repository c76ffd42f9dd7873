//! Documents as JSON, and the parts of the schemas that describe their values.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::{
    builder,
    cursor::ValueCursor,
    report::ProblemReport,
    schema,
    value::{self, StringMode},
};

/// The path to a value: names of members, and indices of items.
pub(super) type Path = [String];

/// A document as a schema sees it, without fields that are null, as in Kubernetes.
#[derive(Clone)]
pub(super) struct JsonDocument(pub(super) Value);

/// The documents of a text.
pub(super) fn documents(text: &str) -> Vec<JsonDocument> {
    let report = ProblemReport::new(&|_| None);
    let nodes = builder::documents(&super::super::source("a", text), &report);
    let read = |node| value::object(ValueCursor::document("a", node, &report), StringMode::Literal);
    let documents =
        nodes.iter().map(|node| JsonDocument(without_nulls(read(node).unwrap().into()))).collect();
    assert_eq!(report.count(), 0);
    documents
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

impl JsonDocument {
    /// Visits every value with its path.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&Path, &Value)) {
        walk(&self.0, &mut Vec::new(), visit);
    }

    /// The document with another value at a path.
    pub(super) fn with(&self, path: &Path, value: Value) -> Self {
        let mut document = self.clone();
        let place = path.iter().fold(&mut document.0, |place, step| match place {
            Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            place => &mut place[step],
        });
        *place = value;
        document
    }

    /// The document without a member.
    pub(super) fn without(&self, path: &Path) -> Option<Self> {
        let mut document = self.clone();
        let (last, parent) = path.split_last()?;
        let pointer: String = parent.iter().map(|step| format!("/{}", step.replace('/', "~1"))).collect();
        document.0.pointer_mut(&pointer)?.as_object_mut()?.shift_remove(last);
        Some(document)
    }
}

fn walk(value: &Value, path: &mut Vec<String>, visit: &mut dyn FnMut(&Path, &Value)) {
    visit(path, value);
    let mut step = |name: String, value: &Value| {
        path.push(name);
        walk(value, path, visit);
        path.pop();
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| step(name.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| step(at.to_string(), value)),
        _ => {}
    }
}

/// A schema of this crate.
pub(super) struct DocumentSchema {
    root: Value,
    validator: Validator,
}

impl DocumentSchema {
    /// The schema of a document.
    pub(super) fn of(document: &Value) -> Self {
        let text = if document["kind"] == "Toolyard" {
            schema::toolyard()
        } else {
            schema::TOOL_REGISTRY.to_owned()
        };
        let root: Value = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::draft202012::new(&root).unwrap();
        Self { root, validator }
    }

    pub(super) fn problems<'a>(&'a self, document: &'a Value) -> impl Iterator<Item = String> + 'a {
        self.validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path()))
    }

    /// All fields, each with the name of its object.
    pub(super) fn fields(&self) -> BTreeSet<String> {
        let objects = self.root["$defs"].as_object().unwrap().iter();
        let objects = objects.map(|(name, object)| (name.as_str(), object)).chain([("", &self.root)]);
        objects
            .flat_map(|(name, object)| members(object).map(move |(field, _)| self.name(name, field)))
            .collect()
    }

    /// The name of the field at a path, as in [`Self::fields`].
    pub(super) fn field_at(&self, path: &Path) -> Option<String> {
        let (last, parent) = path.split_last()?;
        let (name, object) = self.at(parent)?;
        members(object).any(|(field, _)| field == last).then(|| self.name(name, last))
    }

    pub(super) fn members_at(&self, path: &Path) -> BTreeSet<String> {
        self.at(path)
            .map(|(_, object)| members(object).map(|(name, _)| name.clone()).collect())
            .unwrap_or_default()
    }

    /// The valid keywords at a path.
    pub(super) fn keywords_at(&self, path: &Path) -> Option<BTreeSet<String>> {
        let words = self.at(path)?.1["anyOf"][0]["enum"].as_array()?;
        Some(words.iter().map(|word| word.as_str().unwrap().to_owned()).collect())
    }

    /// The defaults of the fields of an object.
    pub(super) fn defaults_at(&self, path: &Path) -> Vec<(String, Value)> {
        let fields = self.at(path).into_iter().flat_map(|(_, object)| members(object));
        fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
    }

    /// The description of a field, which editors show.
    pub(super) fn description(&self, path: &Path) -> Option<&str> {
        let (last, parent) = path.split_last()?;
        let field = &self.at(parent)?.1["properties"][last];
        let described = field.get("description").or_else(|| self.resolve(field).1.get("description"));
        described?.as_str()
    }

    fn name(&self, object: &str, field: &str) -> String {
        format!("{} {object} {field}", self.root["title"].as_str().unwrap())
    }

    /// The schema at a path, and the name of its definition.
    fn at(&self, path: &Path) -> Option<(&str, &Value)> {
        path.iter().try_fold(("", &self.root), |(_, schema), step| {
            let next = match step.parse::<usize>() {
                Ok(_) => &schema["items"],
                Err(_) => schema["properties"].get(step).unwrap_or(&schema["additionalProperties"]),
            };
            next.is_object().then(|| self.resolve(next))
        })
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> (&'a str, &'a Value) {
        match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            Some(name) => (name, &self.root["$defs"][name]),
            None => ("", schema),
        }
    }
}

fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flat_map(Map::iter)
}
