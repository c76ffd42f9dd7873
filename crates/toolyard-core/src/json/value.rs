//! From text to a typed value, for checks.

use serde_json::{Map, Number, Value};

use super::Json;

/// See [`Json::to_value`]. The text was scanned before, so that its depth is bounded.
pub(super) fn to_value(json: &Json) -> Value {
    match json.as_bytes().first() {
        Some(b'{') => object(json),
        Some(b'[') => Value::Array(json.to_items().unwrap_or_default().iter().map(to_value).collect()),
        Some(b'"') => Value::String(json.to_str().unwrap_or_default().into_owned()),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'-' | b'0'..=b'9') => number(json.as_text()),
        _ => Value::Null,
    }
}

/// Of a member that is named twice the last one counts, as in most readers.
fn object(json: &Json) -> Value {
    let mut map = Map::new();
    super::object::each_member(json.as_bytes(), |key, value| {
        let part = |range| Json(json.0.slice(range));
        map.insert(part(key).to_str().unwrap_or_default().into_owned(), to_value(&part(value)));
    });
    Value::Object(map)
}

fn number(text: &str) -> Value {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    if let Ok(number @ ..0) = text.parse::<i64>() {
        return number.into();
    }
    let number = text.parse::<f64>().unwrap_or_default().clamp(f64::MIN, f64::MAX);
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
