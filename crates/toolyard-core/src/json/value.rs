//! Converts text to a typed value for validation, in one pass and without recursion.

use serde_json::{Map, Number, Value};

use super::scan::JsonLexer;
use super::{Json, MAX_DEPTH, text};

/// An object or an array that is not complete.
enum OpenValue {
    /// With the name of the member whose value is read.
    Object(Map<String, Value>, String),
    Array(Vec<Value>),
}

/// See [`Json::to_value`]. The text was validated before.
pub(super) fn to_value(json: &Json) -> Value {
    value_of(json.as_bytes())
}

/// Converts a text that was validated before.
pub(super) fn value_of(text: &[u8]) -> Value {
    read(&mut JsonLexer::new(text)).unwrap_or_default()
}

fn read(scanner: &mut JsonLexer<'_>) -> Option<Value> {
    let mut open = Vec::new();
    loop {
        let mut value = match begin(scanner, &mut open)? {
            Some(value) => value,
            None => continue,
        };
        // The value may be the last one of several.
        loop {
            match open.pop() {
                None => return Some(value),
                Some(outer) => match outer.add(value, scanner)? {
                    Ok(complete) => value = complete,
                    Err(incomplete) => {
                        open.push(incomplete);
                        break;
                    }
                },
            }
        }
    }
}

/// Reads a value, or the beginning of one with content, which becomes the last of `open`.
fn begin(scanner: &mut JsonLexer<'_>, open: &mut Vec<OpenValue>) -> Option<Option<Value>> {
    scanner.blanks();
    Some(Some(match scanner.peek()? {
        b'{' | b'[' if open.len() >= MAX_DEPTH => {
            scanner.value(0).ok()?;
            Value::Null
        }
        b'{' => {
            scanner.skip(b'{');
            if !scanner.closes(b'}') {
                open.push(OpenValue::Object(Map::new(), name(scanner)?));
                return Some(None);
            }
            Value::Object(Map::new())
        }
        b'[' => {
            scanner.skip(b'[');
            if !scanner.closes(b']') {
                open.push(OpenValue::Array(Vec::new()));
                return Some(None);
            }
            Value::Array(Vec::new())
        }
        b'"' => Value::String(string(scanner)?),
        b'-' | b'0'..=b'9' => number(scanner)?,
        word => {
            scanner.skip_word(word).ok()?;
            if word == b'n' { Value::Null } else { Value::Bool(word == b't') }
        }
    }))
}

impl OpenValue {
    /// Adds an item or the value of a member, and reads what follows. Returns the value if it is complete, or itself.
    /// Of duplicate members the last one counts, as in most readers.
    fn add(self, value: Value, scanner: &mut JsonLexer<'_>) -> Option<Result<Value, Self>> {
        match self {
            Self::Object(mut members, member) => {
                members.insert(member, value);
                if scanner.closes(b'}') {
                    return Some(Ok(Value::Object(members)));
                }
                scanner.skip(b',');
                Some(Err(Self::Object(members, name(scanner)?)))
            }
            Self::Array(mut items) => {
                items.push(value);
                if scanner.closes(b']') {
                    return Some(Ok(Value::Array(items)));
                }
                scanner.skip(b',');
                Some(Err(Self::Array(items)))
            }
        }
    }
}

/// Reads the name of a member and the colon.
fn name(scanner: &mut JsonLexer<'_>) -> Option<String> {
    scanner.blanks();
    let name = string(scanner)?;
    scanner.blanks();
    scanner.skip(b':');
    Some(name)
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
