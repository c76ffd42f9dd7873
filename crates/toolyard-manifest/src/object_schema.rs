//! JSON Schemas (2020-12) of objects, assembled from the declarations of their fields.

use serde_json::{Map, Value, json};

use crate::field_type::{FieldType, WritableField};

/// The definitions (`$defs`) of a schema, in the order in which they are first referred to.
#[derive(Default)]
pub(crate) struct SchemaDefinitions {
    objects: Map<String, Value>,
    values: Map<String, Value>,
}

impl SchemaDefinitions {
    /// Defines an object, if it is new, and returns a reference to it.
    pub(crate) fn object(&mut self, name: &str, describe: impl FnOnce(&mut ObjectSchema<'_>)) -> Value {
        if !self.objects.contains_key(name) {
            // The place is taken first: an object precedes those in its fields.
            self.objects.insert(name.to_owned(), Value::Null);
            let mut object = ObjectSchema::new(self);
            describe(&mut object);
            let schema = object.into_schema();
            self.objects.insert(name.to_owned(), schema);
        }
        reference(name)
    }

    /// Defines a value that many fields have, and returns a reference to it. These definitions follow the objects.
    pub(crate) fn value(&mut self, name: &str, schema: Value) -> Value {
        self.values.insert(name.to_owned(), schema);
        reference(name)
    }

    /// Returns a reference to the definition of `${...}`.
    pub(crate) fn expandable(&mut self) -> Value {
        let description = "`${NAME}`, an environment variable, or `${file:PATH}`, the content of a file.";
        self.value("reference", json!({"description": description, "type": "string", "pattern": r"\$\{"}))
    }

    pub(crate) fn into_schema(self) -> Value {
        Value::Object(self.objects.into_iter().chain(self.values).collect())
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The schema of an object with fixed fields.
pub(crate) struct ObjectSchema<'a> {
    definitions: &'a mut SchemaDefinitions,
    constraints: Map<String, Value>,
    required: Vec<&'static str>,
    properties: Map<String, Value>,
}

impl<'a> ObjectSchema<'a> {
    fn new(definitions: &'a mut SchemaDefinitions) -> Self {
        Self { definitions, constraints: Map::new(), required: Vec::new(), properties: Map::new() }
    }

    /// Adds a field. The first paragraph of its doc comment is the description.
    pub(crate) fn field(&mut self, name: &str, docs: &[&str], kind: &impl FieldType) {
        self.describe(name, docs, None, kind);
    }

    pub(crate) fn field_with_default<F: WritableField>(
        &mut self,
        name: &str,
        docs: &[&str],
        kind: &F,
        default: &F::Value,
    ) {
        self.describe(name, docs, Some(kind.write(default)), kind);
    }

    pub(crate) fn required_field(&mut self, name: &'static str, docs: &[&str], kind: &impl FieldType) {
        self.require(name);
        self.field(name, docs, kind);
    }

    /// Makes a field required.
    pub(crate) fn require(&mut self, name: &'static str) {
        self.required.push(name);
    }

    fn describe(&mut self, name: &str, docs: &[&str], default: Option<Value>, kind: &impl FieldType) {
        let mut property = Map::from_iter([("description".to_owned(), Value::String(description(docs)))]);
        property.extend(default.map(|default| ("default".to_owned(), default)));
        if let Value::Object(schema) = kind.schema(self.definitions) {
            property.extend(schema);
        }
        self.property(name, Value::Object(property));
    }

    /// Adds a field with its whole schema.
    pub(crate) fn property(&mut self, name: &str, schema: Value) {
        self.properties.insert(name.to_owned(), schema);
    }

    /// Adds a keyword that concerns several fields, such as `oneOf`.
    pub(crate) fn constrain(&mut self, keyword: &str, value: Value) {
        self.constraints.insert(keyword.to_owned(), value);
    }

    fn into_schema(self) -> Value {
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        schema.extend(self.constraints);
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        Value::Object(schema)
    }
}

/// The first paragraph of a doc comment.
fn description(docs: &[&str]) -> String {
    let lines = docs.iter().map(|line| line.trim()).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}
