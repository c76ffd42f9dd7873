//! Schemas from types: JSON Schema 2020-12, without what only costs a model's attention.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of arguments of type `T`, as [`Server::tool`](crate::Server::tool) publishes it.
///
/// Descriptions come from doc comments, names and defaults from serde's attributes. A field is required unless
/// it is an `Option` or has `#[serde(default)]`. The type `()` stands for no arguments at all.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use toolyard_sdk::schema_of;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct MultiplyArgs {
///     /// Multiplicand
///     x: f64,
///     /// Multiplier
///     y: Option<f64>,
/// }
///
/// assert_eq!(
///     schema_of::<MultiplyArgs>(),
///     json!({
///         "$schema": "https://json-schema.org/draft/2020-12/schema",
///         "type": "object",
///         "properties": {
///             "x": {"type": "number", "description": "Multiplicand"},
///             "y": {"type": "number", "description": "Multiplier"},
///         },
///         "required": ["x"],
///     })
/// );
/// ```
#[must_use]
pub fn schema_of<T: JsonSchema + ?Sized>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let schema = finished::<T>(settings.with_transform(RecursiveTransform(without_optional_nulls)));
    if schema.get("type").is_some_and(|kind| kind == "null") { no_arguments() } else { schema }
}

/// What arguments of type `T` are held to. A model that writes `null` for what it could leave out means the same.
pub(crate) fn accepted_of<T: JsonSchema + ?Sized>() -> Value {
    let schema = finished::<T>(SchemaSettings::draft2020_12().for_deserialize());
    if schema.get("type").is_some_and(|kind| kind == "null") { no_arguments() } else { schema }
}

/// The member that holds a result which is no object, as FastMCP and the Python SDK name it.
pub(crate) const RESULT: &str = "result";

/// What is published of a result.
pub(crate) struct Published {
    pub(crate) schema: Option<Value>,
    /// Whether results are the member `result` of the object that the schema is of.
    pub(crate) wraps: bool,
}

/// What is published of results of this schema.
pub(crate) fn published(schema: Option<Value>) -> Published {
    match schema {
        Some(schema) if says_nothing(&schema) => Published { schema: None, wraps: false },
        Some(schema) if root_fault(&schema).is_some() => {
            Published { schema: Some(wrapped(schema)), wraps: true }
        }
        schema => Published { schema, wraps: false },
    }
}

/// Whether everything fits a schema.
fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.keys().all(|name| name == "$schema"),
        schema => *schema == true,
    }
}

/// The schema of an object with a `result` of this schema. What it refers to stays where it is.
fn wrapped(schema: Value) -> Value {
    let Value::Object(mut result) = schema else { return object_with(schema) };
    let mut root = Map::new();
    let (dialect, definitions) = (result.shift_remove("$schema"), result.shift_remove("$defs"));
    root.extend(dialect.map(|dialect| ("$schema".to_owned(), dialect)));
    if let Value::Object(members) = object_with(Value::Object(result)) {
        root.extend(members);
    }
    root.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    let mut root = Schema::from(root);
    RecursiveTransform(towards_the_result).transform(&mut root);
    root.to_value()
}

fn object_with(result: Value) -> Value {
    json!({"type": "object", "properties": {RESULT: result}, "required": [RESULT]})
}

/// What was the root of the schema has moved.
fn towards_the_result(schema: &mut Schema) {
    let reference = schema.as_object_mut().and_then(|schema| schema.get_mut("$ref"));
    if let Some(reference) = reference.filter(|reference| *reference == "#") {
        *reference = json!(format!("#/properties/{RESULT}"));
    }
}

/// The schema of results of type `T`.
pub(crate) fn schema_of_result<T: JsonSchema + ?Sized>() -> Value {
    finished::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// The schema of a tool that takes no arguments. Some models' providers want `properties` to be there.
pub(crate) fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// The schema of a tool that takes what comes.
pub(crate) fn any_arguments() -> Value {
    json!({"type": "object"})
}

fn finished<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let mut settings = settings.with_transform(RecursiveTransform(without_rust_formats));
    // First of all: the others look for its outcome.
    settings.transforms.insert(0, Box::new(RecursiveTransform(as_one_enum)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        // The name of a Rust type is no title.
        if root.get("title").is_some_and(|title| *title == *T::schema_name()) {
            root.shift_remove("title");
        }
        say_that_it_is_an_object(root);
        if let Some(dialect) = root.shift_remove("$schema") {
            root.shift_insert(0, "$schema".to_owned(), dialect);
        }
    }
    schema
}

/// An enum whose variants have doc comments, as one list of values with the comments in its description: shorter, and
/// what does not fit is answered with the values that do.
fn as_one_enum(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(choices) = object.get("oneOf").and_then(Value::as_array) else { return };
    let Some(choices) = choices.iter().map(values_of).collect::<Option<Vec<_>>>() else { return };
    let Some(kind) = choices.first().map(|choice| choice.kind.clone()) else { return };
    if choices.iter().any(|choice| *choice.kind != kind)
        || ["type", "enum"].iter().any(|name| object.contains_key(*name))
    {
        return;
    }
    let own = object.get("description").and_then(Value::as_str).map(str::to_owned);
    let description: Vec<_> = own.into_iter().chain(choices.iter().filter_map(Choice::line)).collect();
    let values: Vec<_> = choices.iter().flat_map(|choice| choice.values).cloned().collect();
    object.shift_remove("oneOf");
    if !description.is_empty() {
        object.insert("description".to_owned(), json!(description.join("\n")));
    }
    object.insert("type".to_owned(), kind);
    object.insert("enum".to_owned(), json!(values));
}

/// One of several variants, or several of one kind without comments.
struct Choice<'a> {
    kind: &'a Value,
    values: &'a [Value],
    description: Option<&'a str>,
}

fn values_of(choice: &Value) -> Option<Choice<'_>> {
    let choice = choice.as_object()?;
    let known = ["type", "const", "enum", "description"];
    if choice.keys().any(|name| !known.contains(&&**name)) {
        return None;
    }
    let description = choice.get("description").and_then(Value::as_str);
    let values = match choice.get("const") {
        Some(value) => std::slice::from_ref(value),
        None => choice.get("enum")?.as_array()?,
    };
    Some(Choice { kind: choice.get("type")?, values, description })
}

impl Choice<'_> {
    /// What the comment says of the value, in one line.
    fn line(&self) -> Option<String> {
        let ([value], Some(description)) = (self.values, self.description) else { return None };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words: Vec<_> = description.split_whitespace().collect();
        Some(format!("{value}: {}", words.join(" ")))
    }
}

/// Takes out the formats that are widths of Rust's numbers: JSON Schema knows none of them.
fn without_rust_formats(schema: &mut Schema) {
    let is_number = |kind: &Value| ["integer", "number"].iter().any(|number| names(kind, number));
    if let Some(object) = schema.as_object_mut().filter(|object| object.get("type").is_some_and(is_number)) {
        object.shift_remove("format");
    }
}

/// A property that may be left out need not be `null` as well, and some models' providers refuse a list of types.
fn without_optional_nulls(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    let optional = properties.iter_mut().filter(|(name, _)| !required.iter().any(|other| *other == **name));
    for property in optional.filter_map(|(_, property)| property.as_object_mut()) {
        without_null(property);
    }
}

fn without_null(property: &mut Map<String, Value>) {
    if property.get("default").is_some_and(Value::is_null) {
        property.shift_remove("default");
    }
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            property.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = property.get_mut("anyOf") else { return };
    choices.retain(|choice| *choice != json!({"type": "null"}));
    let [Value::Object(only)] = choices.as_slice() else { return };
    let only = only.clone();
    if only.keys().all(|name| !property.contains_key(name)) {
        property.shift_remove("anyOf");
        property.extend(only);
    }
}

/// MCP wants `type: object` at the root, where schemars leaves it out for an enum of objects.
fn say_that_it_is_an_object(root: &mut Map<String, Value>) {
    if root.contains_key("type") || root.contains_key("$ref") {
        return;
    }
    let choices = ["oneOf", "anyOf"].iter().find_map(|name| root.get(*name)?.as_array());
    let is_object = |choice: &Value| choice.get("type").is_some_and(|kind| kind == "object");
    if choices.is_some_and(|choices| !choices.is_empty() && choices.iter().all(is_object)) {
        root.insert("type".to_owned(), json!("object"));
    }
}

/// Whether the value of `type` names this type.
fn names(kind: &Value, name: &str) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    }
}

/// What is wrong with the root of a schema, if anything.
pub(crate) fn root_fault(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => match members.get("type") {
            Some(kind) if kind == "object" => None,
            Some(kind) => Some(format!("its root is of type {kind}")),
            None => Some("its root does not say `\"type\": \"object\"`".to_owned()),
        },
        other => Some(format!("it is {other}")),
    }
}

#[cfg(test)]
mod tests;
