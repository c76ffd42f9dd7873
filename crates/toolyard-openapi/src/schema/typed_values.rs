//! Values of a schema in its declared type: many documents quote numbers and booleans, or give a list's values to the
//! list itself. No value would satisfy both `type` and `enum`.

use serde_json::{Map, Value, json};

/// Fits `enum`, `const`, `default` and `examples` to `type`. An `enum` whose values have no such form widens the type:
/// values are more specific than types. Examples that do not fit are removed.
pub(crate) fn fit(keywords: &mut Map<String, Value>) {
    move_to_items(keywords);
    let Some(types) = declared_types(keywords) else { return };
    let item_types = keywords.get("items").and_then(Value::as_object).and_then(declared_types);
    let fit = |value: &mut Value| fit_value(value, &types, item_types.as_deref());
    let mut widened: Vec<String> = Vec::new();
    let mut fits_any = false;
    let mut widen = |value: &mut Value| match fit(value) {
        true => fits_any = true,
        false if value.is_null() => {}
        false => {
            let kind = type_of(value);
            if !widened.iter().any(|known| known == kind) {
                widened.push(kind.to_owned());
            }
        }
    };
    keywords.get_mut("enum").and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut widen);
    keywords.get_mut("const").into_iter().for_each(&mut widen);
    if let Some(Value::Array(examples)) = keywords.get_mut("examples") {
        examples.retain_mut(&fit);
        if examples.is_empty() {
            keywords.remove("examples");
        }
    }
    if let Some(default) = keywords.get_mut("default") {
        fit(default);
    }
    if !widened.is_empty() {
        let declared = if fits_any { types } else { Vec::new() };
        let all: Vec<String> = declared.into_iter().chain(widened).collect();
        let kind = if let [one] = &*all { json!(one) } else { json!(all) };
        keywords.insert("type".to_owned(), kind);
    }
}

/// Fits `default` and `examples` beside a reference to the types of its target, as [`fit`] does.
pub(crate) fn fit_annotations(keywords: &mut Map<String, Value>, types: Value) {
    let mut typed = Map::from_iter([("type".to_owned(), types)]);
    for name in ["default", "examples"] {
        typed.extend(keywords.get_mut(name).map(|value| (name.to_owned(), value.take())));
    }
    fit(&mut typed);
    for name in ["default", "examples"] {
        match (keywords.get_mut(name), typed.remove(name)) {
            (Some(value), Some(fitted)) => *value = fitted,
            _ => drop(keywords.remove(name)),
        }
    }
}

/// Moves the values of an array that are meant for its items.
fn move_to_items(keywords: &mut Map<String, Value>) {
    let is_list = declared_types(keywords).is_some_and(|types| types.iter().all(|kind| kind == "array"));
    let is_of_items = |values: &Vec<Value>| !values.is_empty() && !values.iter().any(Value::is_array);
    if !is_list || !keywords.get("enum").and_then(Value::as_array).is_some_and(is_of_items) {
        return;
    }
    let values = keywords.remove("enum").unwrap_or_default();
    let items = keywords.entry("items").or_insert_with(|| json!({}));
    if let Value::Object(items) = items {
        items.entry("enum").or_insert(values);
        fit(items);
    }
}

/// Returns the declared types, without `null`; `None` if any type is allowed.
fn declared_types(keywords: &Map<String, Value>) -> Option<Vec<String>> {
    let names = match keywords.get("type")? {
        Value::String(name) => vec![name.clone()],
        names => names.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    (!names.is_empty()).then_some(names)
}

/// Converts a value to one of the types if it has a form in it. Returns false if it has none.
fn fit_value(value: &mut Value, types: &[String], item_types: Option<&[String]>) -> bool {
    let is_of = |value: &Value| types.iter().any(|kind| is_of_type(value, kind));
    if !is_of(value) {
        let converted = types.iter().find_map(|kind| convert(value, kind)).filter(is_of);
        let Some(converted) = converted else { return false };
        *value = converted;
    }
    if let (Value::Array(items), Some(item_types)) = (value, item_types) {
        for item in items {
            fit_value(item, item_types, None);
        }
    }
    true
}

fn convert(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("string", Value::Number(number)) => Some(number.to_string().into()),
        ("string", Value::Bool(value)) => Some(value.to_string().into()),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(true.into()),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") => Some(false.into()),
        ("integer" | "number" | "object", Value::String(text)) => serde_json::from_str(text.trim()).ok(),
        ("array", Value::String(text)) => {
            let list = serde_json::from_str(text.trim()).ok().filter(Value::is_array);
            Some(list.unwrap_or_else(|| text.split(',').map(|item| Value::from(item.trim())).collect()))
        }
        ("array", Value::Number(_) | Value::Bool(_)) => Some(json!([value])),
        _ => None,
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        kind => kind == type_of(value),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
