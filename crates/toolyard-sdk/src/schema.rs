//! JSON Schema 2020-12 from types, without keywords that are useless to a model.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of arguments of type `T`, as published by [`Server::tool`](crate::Server::tool).
///
/// Descriptions come from doc comments, names and defaults from serde's attributes. A field is required unless it is an
/// `Option` or has `#[serde(default)]`. The type `()` stands for no arguments.
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
    let schema = generate_schema::<T>(settings.with_transform(RecursiveTransform(remove_optional_nulls)));
    if schema.get("type").is_some_and(|kind| kind == "null") { no_arguments() } else { schema }
}

/// The schema that validates arguments of type `T`. It accepts `null` for an optional field, because some models send
/// it.
pub(crate) fn accepted_schema_of<T: JsonSchema + ?Sized>() -> Value {
    let schema = generate_schema::<T>(SchemaSettings::draft2020_12().for_deserialize());
    if schema.get("type").is_some_and(|kind| kind == "null") { no_arguments() } else { schema }
}

/// The member that wraps a result which is not an object, named as in FastMCP and the Python SDK.
pub(crate) const RESULT_MEMBER: &str = "result";

/// The published schema of a result.
pub(crate) struct PublishedSchema {
    pub(crate) schema: Option<Value>,
    /// True if results are the member `result` of the object that the schema describes.
    pub(crate) wraps: bool,
}

/// Returns the schema to publish for results of this schema.
pub(crate) fn published_schema(schema: Option<Value>) -> PublishedSchema {
    match schema {
        Some(schema) if accepts_anything(&schema) => PublishedSchema { schema: None, wraps: false },
        Some(schema) if root_fault(&schema).is_some() => {
            PublishedSchema { schema: Some(wrap_result(schema)), wraps: true }
        }
        schema => PublishedSchema { schema, wraps: false },
    }
}

/// True if every value is valid.
fn accepts_anything(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.keys().all(|name| name == "$schema"),
        schema => *schema == true,
    }
}

/// The schema of an object with a `result` of this schema. Definitions stay at the root.
fn wrap_result(schema: Value) -> Value {
    let Value::Object(mut result) = schema else { return object_with(schema) };
    let mut root = Map::new();
    let (dialect, definitions) = (result.shift_remove("$schema"), result.shift_remove("$defs"));
    root.extend(dialect.map(|dialect| ("$schema".to_owned(), dialect)));
    if let Value::Object(members) = object_with(Value::Object(result)) {
        root.extend(members);
    }
    root.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    let mut root = Schema::from(root);
    RecursiveTransform(point_to_result).transform(&mut root);
    root.to_value()
}

fn object_with(result: Value) -> Value {
    json!({"type": "object", "properties": {RESULT_MEMBER: result}, "required": [RESULT_MEMBER]})
}

/// Adjusts references to the former root, which has moved.
fn point_to_result(schema: &mut Schema) {
    let reference = schema.as_object_mut().and_then(|schema| schema.get_mut("$ref"));
    if let Some(reference) = reference.filter(|reference| *reference == "#") {
        *reference = json!(format!("#/properties/{RESULT_MEMBER}"));
    }
}

/// The schema of results of type `T`.
pub(crate) fn schema_of_result<T: JsonSchema + ?Sized>() -> Value {
    generate_schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// The schema of a tool without arguments. Some model providers require `properties`.
pub(crate) fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// Members of a schema that may describe further properties.
const OPEN_MEMBERS: [&str; 8] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "if",
    "oneOf",
    "patternProperties",
    "unevaluatedProperties",
];

/// Refuses other properties than those of a schema, which has all of them at its root.
pub(crate) fn closed(mut schema: Value) -> Value {
    if let Value::Object(members) = &mut schema
        && members.contains_key("properties")
        && !OPEN_MEMBERS.iter().any(|name| members.contains_key(*name))
    {
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// The schema of a tool with any arguments.
pub(crate) fn any_arguments() -> Value {
    json!({"type": "object"})
}

fn generate_schema<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let mut settings = settings.with_transform(RecursiveTransform(remove_rust_formats));
    // First, because the other transforms read its output.
    settings.transforms.insert(0, Box::new(RecursiveTransform(merge_enum_variants)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        // The name of a Rust type is not a title.
        if root.get("title").is_some_and(|title| *title == *T::schema_name()) {
            root.shift_remove("title");
        }
        declare_object_type(root);
        if let Some(dialect) = root.shift_remove("$schema") {
            root.shift_insert(0, "$schema".to_owned(), dialect);
        }
    }
    schema
}

/// Merges the variants of an enum with doc comments into one list of values, with the comments in the description: this
/// is shorter, and a validation error lists the valid values.
fn merge_enum_variants(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(choices) = object.get("oneOf").and_then(Value::as_array) else { return };
    let Some(choices) = choices.iter().map(enum_variants).collect::<Option<Vec<_>>>() else { return };
    let Some(kind) = choices.first().map(|choice| choice.kind.clone()) else { return };
    if choices.iter().any(|choice| *choice.kind != kind)
        || ["type", "enum"].iter().any(|name| object.contains_key(*name))
    {
        return;
    }
    let own = object.get("description").and_then(Value::as_str).map(str::to_owned);
    let description: Vec<_> = own.into_iter().chain(choices.iter().filter_map(EnumVariants::line)).collect();
    let values: Vec<_> = choices.iter().flat_map(|choice| choice.values).cloned().collect();
    object.shift_remove("oneOf");
    if !description.is_empty() {
        object.insert("description".to_owned(), json!(description.join("\n")));
    }
    object.insert("type".to_owned(), kind);
    object.insert("enum".to_owned(), json!(values));
}

/// A variant of an enum, or several variants of one type without comments.
struct EnumVariants<'a> {
    kind: &'a Value,
    values: &'a [Value],
    description: Option<&'a str>,
}

fn enum_variants(choice: &Value) -> Option<EnumVariants<'_>> {
    let choice = choice.as_object()?;
    let supported = ["type", "const", "enum", "description"];
    if choice.keys().any(|name| !supported.contains(&&**name)) {
        return None;
    }
    let description = choice.get("description").and_then(Value::as_str);
    let values = match choice.get("const") {
        Some(value) => std::slice::from_ref(value),
        None => choice.get("enum")?.as_array()?,
    };
    Some(EnumVariants { kind: choice.get("type")?, values, description })
}

impl EnumVariants<'_> {
    /// The value and its comment in one line.
    fn line(&self) -> Option<String> {
        let ([value], Some(description)) = (self.values, self.description) else { return None };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words: Vec<_> = description.split_whitespace().collect();
        Some(format!("{value}: {}", words.join(" ")))
    }
}

/// Removes the formats for the widths of Rust's numbers, which JSON Schema does not define.
fn remove_rust_formats(schema: &mut Schema) {
    let is_number = |kind: &Value| ["integer", "number"].iter().any(|number| type_includes(kind, number));
    if let Some(object) = schema.as_object_mut().filter(|object| object.get("type").is_some_and(is_number)) {
        object.shift_remove("format");
    }
}

/// Removes `null` from optional properties: they can be left out instead, and some model providers reject a list of
/// types.
fn remove_optional_nulls(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    let optional = properties.iter_mut().filter(|(name, _)| !required.iter().any(|other| *other == **name));
    for property in optional.filter_map(|(_, property)| property.as_object_mut()) {
        remove_null(property);
    }
}

fn remove_null(property: &mut Map<String, Value>) {
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

/// Sets `type: object` at the root, which MCP requires and schemars leaves out for an enum of objects.
fn declare_object_type(root: &mut Map<String, Value>) {
    if root.contains_key("type") || root.contains_key("$ref") {
        return;
    }
    let choices = ["oneOf", "anyOf"].iter().find_map(|name| root.get(*name)?.as_array());
    let is_object = |choice: &Value| choice.get("type").is_some_and(|kind| kind == "object");
    if choices.is_some_and(|choices| !choices.is_empty() && choices.iter().all(is_object)) {
        root.insert("type".to_owned(), json!("object"));
    }
}

/// True if the value of `type` includes this type.
fn type_includes(kind: &Value, name: &str) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    }
}

/// The fault of a schema's root, if any.
pub(crate) fn root_fault(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => match members.get("type") {
            Some(kind) if kind == "object" => None,
            Some(kind) => Some(format!("its root has the type {kind}")),
            None => Some("its root lacks `\"type\": \"object\"`".to_owned()),
        },
        other => Some(format!("it is {other}")),
    }
}

#[cfg(test)]
mod tests;
