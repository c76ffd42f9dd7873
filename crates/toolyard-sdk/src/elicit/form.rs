//! Schemas of forms, restricted to the subset that MCP allows (client/elicitation, requested schema).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use toolyard_core::Json;
use toolyard_core::schema::{CompiledSchema, ValidationBudget};

use crate::input_required::BadAnswer;

/// The string formats that clients support.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The form of a type.
pub(crate) fn of<T: JsonSchema>() -> Result<Value, String> {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    flat(&settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// Reduces a schema to the keywords that forms support. An error completes a sentence after "because".
pub(super) fn flat(schema: &Value) -> Result<Value, String> {
    if schema["type"] != "object" {
        return Err("it is not an object with fields".to_owned());
    }
    let mut properties = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let property = without_null(property);
        let field = field(&property).ok_or_else(|| format!("`{name}` is {}", property_kind(&property)))?;
        properties.insert(name.clone(), field);
    }
    let mut form = json!({ "type": "object", "properties": properties });
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// Validates entered values against the form: clients should have, but may not (client/elicitation, security). An empty
/// field may be `null`.
pub(crate) fn check(form: &Value, answer: &Json) -> Result<(), BadAnswer> {
    let budget = ValidationBudget::of(answer.as_bytes().len());
    let answer = answer.to_value();
    let Some(Value::Object(entered)) = answer.get("content").filter(|_| answer["action"] == "accept") else {
        return Ok(());
    };
    let entered = entered.iter().filter(|(_, value)| !value.is_null());
    let entered = Value::Object(entered.map(|(name, value)| (name.clone(), value.clone())).collect());
    // A form that does not compile was sent unchanged; the handler has to judge the values.
    let Ok(form) = CompiledSchema::compile(form) else { return Ok(()) };
    form.check(&entered, &budget).map_err(|mismatch| BadAnswer(mismatch.to_string()))
}

/// Describes an unsupported field for an error.
fn property_kind(property: &Value) -> &'static str {
    match kind(property) {
        Some("object") => "an object",
        Some("array") => "a list of something other than choices",
        _ => "something else",
    }
}

/// The schema of one field; `None` if forms do not support it.
fn field(property: &Value) -> Option<Value> {
    let mut field = match (kind(property), choices(property)) {
        (Some("string") | None, Some(choices)) => choices.single(),
        (Some("string"), None) => text(property),
        (Some(kind @ ("integer" | "number")), None) => number(kind, property),
        (Some("boolean"), None) => Map::from_iter([("type".to_owned(), json!("boolean"))]),
        (Some("array"), None) => multiple_choice(property)?,
        _ => return None,
    };
    copy_keywords(&mut field, property, &["title", "description"]);
    if let Some(default) = property.get("default").filter(|default| !default.is_null()) {
        field.insert("default".to_owned(), default.clone());
    }
    Some(Value::Object(field))
}

fn text(property: &Value) -> Map<String, Value> {
    let mut field = Map::from_iter([("type".to_owned(), json!("string"))]);
    copy_keywords(&mut field, property, &["minLength", "maxLength"]);
    if property["format"].as_str().is_some_and(|format| FORMATS.contains(&format)) {
        copy_keywords(&mut field, property, &["format"]);
    }
    field
}

fn number(kind: &str, property: &Value) -> Map<String, Value> {
    let mut field = Map::from_iter([("type".to_owned(), json!(kind))]);
    copy_keywords(&mut field, property, &["minimum", "maximum"]);
    field
}

/// A field that takes several choices.
fn multiple_choice(property: &Value) -> Option<Map<String, Value>> {
    let items = property.get("items")?;
    let mut field = Map::from_iter([("type".to_owned(), json!("array"))]);
    copy_keywords(&mut field, property, &["minItems", "maxItems"]);
    field.insert("items".to_owned(), Value::Object(choices(items)?.items()));
    Some(field)
}

fn copy_keywords(field: &mut Map<String, Value>, property: &Value, names: &[&str]) {
    for name in names {
        if let Some(value) = property.get(*name) {
            field.insert((*name).to_owned(), value.clone());
        }
    }
}

/// The type, if it is a single one.
fn kind(property: &Value) -> Option<&str> {
    property["type"].as_str()
}

/// Removes `null`, which serde accepts for an optional property: in a form the field is left out instead.
fn without_null(property: &Value) -> Value {
    let mut property = property.clone();
    let Some(object) = property.as_object_mut() else { return property };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(schemas)) = object.get_mut("anyOf") {
        schemas.retain(|schema| schema["type"] != "null");
        if let [Value::Object(only)] = schemas.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            // Annotations of the field take precedence over those of its type.
            for (name, value) in only {
                object.entry(name).or_insert(value);
            }
        }
    }
    property
}

/// The values to choose from, each with an optional title.
struct EnumChoices(Vec<(String, Option<String>)>);

/// The choices of an enum, in any of the forms that schemas use.
fn choices(schema: &Value) -> Option<EnumChoices> {
    if let Some(values) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array();
        let title = |at: usize| Some(names?.get(at)?.as_str()?.to_owned());
        let choice = |(at, value): (usize, &Value)| Some((value.as_str()?.to_owned(), title(at)));
        return Some(EnumChoices(values.iter().enumerate().map(choice).collect::<Option<_>>()?));
    }
    if let Some(value) = schema.get("const") {
        return Some(EnumChoices(vec![(value.as_str()?.to_owned(), choice_title(schema))]));
    }
    let schemas = ["oneOf", "anyOf"].into_iter().find_map(|name| schema[name].as_array())?;
    let mut all = Vec::new();
    for schema in schemas {
        // Variants without a comment are grouped in one `enum`.
        all.extend(choices(schema)?.0);
    }
    Some(EnumChoices(all))
}

/// The title of a choice.
fn choice_title(schema: &Value) -> Option<String> {
    ["title", "description"].into_iter().find_map(|name| Some(schema[name].as_str()?.to_owned()))
}

impl EnumChoices {
    fn single(self) -> Map<String, Value> {
        self.into_schema("oneOf", true)
    }

    fn items(self) -> Map<String, Value> {
        self.into_schema("anyOf", false)
    }

    /// Writes an `enum` if no choice has a title, else a list under the keyword `titled`.
    fn into_schema(self, titled: &str, single: bool) -> Map<String, Value> {
        let kind = ("type".to_owned(), json!("string"));
        if self.0.iter().all(|(_, title)| title.is_none()) {
            let values: Vec<_> = self.0.into_iter().map(|(value, _)| value).collect();
            return Map::from_iter([kind, ("enum".to_owned(), json!(values))]);
        }
        let choice = |(value, title): (String, Option<String>)| {
            let title = title.unwrap_or_else(|| value.clone());
            json!({ "const": value, "title": title })
        };
        let choices: Vec<_> = self.0.into_iter().map(choice).collect();
        let mut schema = Map::new();
        if single {
            schema.extend([kind]);
        }
        schema.insert(titled.to_owned(), json!(choices));
        schema
    }
}
