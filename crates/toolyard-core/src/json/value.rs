//! Converts text to a typed value for validation, in one pass.

use serde_json::{Map, Number, Value};

use super::scan::JsonLexer;
use super::{Json, text};

/// See [`Json::to_value`]. The text was validated before: its nesting is bounded.
pub(super) fn to_value(json: &Json) -> Value {
    read(&mut JsonLexer::new(json.as_bytes())).unwrap_or_default()
}

fn read(scanner: &mut JsonLexer<'_>) -> Option<Value> {
    scanner.blanks();
    match scanner.peek()? {
        b'{' => object(scanner),
        b'[' => array(scanner),
        b'"' => string(scanner).map(Value::String),
        b'-' | b'0'..=b'9' => number(scanner),
        word => {
            scanner.skip_word(word).ok()?;
            Some(if word == b'n' { Value::Null } else { Value::Bool(word == b't') })
        }
    }
}

/// Reads an object. Of duplicate members the last one counts, as in most readers.
fn object(scanner: &mut JsonLexer<'_>) -> Option<Value> {
    let mut members = Map::new();
    scanner.skip(b'{');
    while !scanner.closes(b'}') {
        scanner.skip(b',');
        scanner.blanks();
        let name = string(scanner)?;
        scanner.blanks();
        scanner.skip(b':');
        members.insert(name, read(scanner)?);
    }
    Some(Value::Object(members))
}

fn array(scanner: &mut JsonLexer<'_>) -> Option<Value> {
    let mut items = Vec::new();
    scanner.skip(b'[');
    while !scanner.closes(b']') {
        scanner.skip(b',');
        items.push(read(scanner)?);
    }
    Some(Value::Array(items))
}

fn string(scanner: &mut JsonLexer<'_>) -> Option<String> {
    let quoted = scanner.text_of(JsonLexer::string).ok()?;
    text::unquote(quoted).map(std::borrow::Cow::into_owned)
}

fn number(scanner: &mut JsonLexer<'_>) -> Option<Value> {
    let text = std::str::from_utf8(scanner.text_of(JsonLexer::number).ok()?).ok()?;
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    if let Ok(number @ ..0) = text.parse::<i64>() {
        return Some(number.into());
    }
    let number = text.parse::<f64>().unwrap_or_default().clamp(f64::MIN, f64::MAX);
    Number::from_f64(number).map(Value::Number)
}
