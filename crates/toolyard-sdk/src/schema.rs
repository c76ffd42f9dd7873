//! Schemas from types: JSON Schema 2020-12, without what only costs a model's attention.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
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
    let settings = settings.with_transform(RecursiveTransform(without_rust_formats));
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
