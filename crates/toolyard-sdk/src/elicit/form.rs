//! Schemas of forms: the few that MCP allows (client/elicitation, requested schema).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use toolyard_core::Json;

use crate::rounds::BadAnswer;

/// The formats of texts that clients know.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The form of a type.
pub(crate) fn of<T: JsonSchema>() -> Result<Value, String> {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    flat(&settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// A schema with what MCP knows of it. What is wrong with it continues "because".
pub(super) fn flat(schema: &Value) -> Result<Value, String> {
    if schema["type"] != "object" {
        return Err("it is no object with fields".to_owned());
    }
    let mut properties = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let property = without_null(property);
        let field = field(&property).ok_or_else(|| format!("`{name}` is {}", what(&property)))?;
        properties.insert(name.clone(), field);
    }
    let mut form = json!({ "type": "object", "properties": properties });
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// Holds what was entered to the form: clients should have, and may not (client/elicitation, security). A field that
/// was left empty may come as `null`.
pub(crate) fn check(form: &Value, answer: &Json) -> Result<(), BadAnswer> {
    let answer = answer.to_value();
    let Some(Value::Object(entered)) = answer.get("content").filter(|_| answer["action"] == "accept") else {
        return Ok(());
    };
    let entered = entered.iter().filter(|(_, value)| !value.is_null());
    let entered = Value::Object(entered.map(|(name, value)| (name.clone(), value.clone())).collect());
    // A form that does not compile was shown as it is; what its fields hold is then for the handler to judge.
    let Ok(form) = jsonschema::validator_for(form) else { return Ok(()) };
    form.validate(&entered).map_err(|error| {
        let place = error.instance_path().to_string();
        BadAnswer(format!("{place}{}{}", if place.is_empty() { "" } else { ": " }, error.masked()))
    })
}

/// What somebody tried to ask for.
fn what(property: &Value) -> &'static str {
    match kind(property) {
        Some("object") => "an object",
        Some("array") => "a list of something else than choices",
        _ => "something else",
    }
}

/// One field; `None` where MCP knows none like it.
fn field(property: &Value) -> Option<Value> {
    let mut field = match (kind(property), choices(property)) {
        (Some("string") | None, Some(choices)) => choices.single(),
        (Some("string"), None) => text(property),
        (Some(kind @ ("integer" | "number")), None) => number(kind, property),
        (Some("boolean"), None) => Map::from_iter([("type".to_owned(), json!("boolean"))]),
        (Some("array"), None) => several(property)?,
        _ => return None,
    };
    keep(&mut field, property, &["title", "description"]);
    if let Some(default) = property.get("default").filter(|default| !default.is_null()) {
        field.insert("default".to_owned(), default.clone());
    }
    Some(Value::Object(field))
}

fn text(property: &Value) -> Map<String, Value> {
    let mut field = Map::from_iter([("type".to_owned(), json!("string"))]);
    keep(&mut field, property, &["minLength", "maxLength"]);
    if property["format"].as_str().is_some_and(|format| FORMATS.contains(&format)) {
        keep(&mut field, property, &["format"]);
    }
    field
}

fn number(kind: &str, property: &Value) -> Map<String, Value> {
    let mut field = Map::from_iter([("type".to_owned(), json!(kind))]);
    keep(&mut field, property, &["minimum", "maximum"]);
    field
}

/// A field that takes several choices.
fn several(property: &Value) -> Option<Map<String, Value>> {
    let items = property.get("items")?;
    let mut field = Map::from_iter([("type".to_owned(), json!("array"))]);
    keep(&mut field, property, &["minItems", "maxItems"]);
    field.insert("items".to_owned(), Value::Object(choices(items)?.items()));
    Some(field)
}

fn keep(field: &mut Map<String, Value>, property: &Value, names: &[&str]) {
    for name in names {
        if let Some(value) = property.get(*name) {
            field.insert((*name).to_owned(), value.clone());
        }
    }
}

/// The type, where there is one only.
fn kind(property: &Value) -> Option<&str> {
    property["type"].as_str()
}

/// What can be left out may be `null` for serde; in a form it is just left out.
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
            // What is said of the field counts more than what is said of its type.
            for (name, value) in only {
                object.entry(name).or_insert(value);
            }
        }
    }
    property
}

/// Values to choose from, each with what is shown for it.
struct Choices(Vec<(String, Option<String>)>);

/// The choices of an enum, in one of the ways in which they are written.
fn choices(schema: &Value) -> Option<Choices> {
    if let Some(values) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array();
        let shown = |at: usize| Some(names?.get(at)?.as_str()?.to_owned());
        let choice = |(at, value): (usize, &Value)| Some((value.as_str()?.to_owned(), shown(at)));
        return Some(Choices(values.iter().enumerate().map(choice).collect::<Option<_>>()?));
    }
    if let Some(value) = schema.get("const") {
        return Some(Choices(vec![(value.as_str()?.to_owned(), shown(schema))]));
    }
    let schemas = ["oneOf", "anyOf"].into_iter().find_map(|name| schema[name].as_array())?;
    let mut all = Vec::new();
    for schema in schemas {
        // Variants without a comment come together, as one `enum`.
        all.extend(choices(schema)?.0);
    }
    Some(Choices(all))
}

/// What is shown for a choice.
fn shown(schema: &Value) -> Option<String> {
    ["title", "description"].into_iter().find_map(|name| Some(schema[name].as_str()?.to_owned()))
}

impl Choices {
    fn single(self) -> Map<String, Value> {
        self.written("oneOf", true)
    }

    fn items(self) -> Map<String, Value> {
        self.written("anyOf", false)
    }

    /// Plain values where nothing else is to be shown.
    fn written(self, titled: &str, single: bool) -> Map<String, Value> {
        let kind = ("type".to_owned(), json!("string"));
        if self.0.iter().all(|(_, shown)| shown.is_none()) {
            let values: Vec<_> = self.0.into_iter().map(|(value, _)| value).collect();
            return Map::from_iter([kind, ("enum".to_owned(), json!(values))]);
        }
        let choice = |(value, shown): (String, Option<String>)| {
            let title = shown.unwrap_or_else(|| value.clone());
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
