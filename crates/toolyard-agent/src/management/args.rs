//! What models send as arguments, read as leniently as it can be understood.

use serde_json::{Map, Value};
use toolyard_core::{Json, Object};
use toolyard_sdk::ToolFailure;

/// The arguments of one call.
pub(super) struct Args(Map<String, Value>);

/// How long what a model has written is shown to it again, in characters.
const LONGEST_SHOWN: usize = 64;

impl Args {
    /// What is no object, nor a text with one, counts as none at all.
    pub(super) fn of(arguments: &Object) -> Self {
        match arguments.to_json().to_value() {
            Value::Object(members) => Self(members),
            _ => Self(Map::new()),
        }
    }

    /// The first of these parameters that is there. A null is as good as nothing.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    /// The first of these parameters that says something, as text: numbers and the like as they are written.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().filter_map(|name| written(self.0.get(*name)?)).next()
    }

    /// The same, where it has to be there.
    pub(super) fn required(&self, names: &[&str]) -> Result<String, ToolFailure> {
        self.text(names).ok_or_else(|| ToolFailure::new(missing(names.first().copied().unwrap_or_default())))
    }

    /// The first parameter that is none of these.
    pub(super) fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|name| !known.contains(name))
    }
}

/// The words for a parameter that has to be there.
pub(super) fn missing(name: &str) -> String {
    format!("Missing required parameter: {name}")
}

/// A value as text, where it says something.
pub(super) fn written(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

/// A name of a server as it is compared: case does not matter.
pub(super) fn server_name(text: &str) -> String {
    text.trim().to_lowercase()
}

/// The arguments as an object: models write it as a text with JSON in it, too. `None` for what is neither.
pub(super) fn object(arguments: &Json) -> Option<Object> {
    match arguments.to_str() {
        Some(text) => Object::parse(text.trim().to_owned()).ok(),
        None => arguments.to_object().ok(),
    }
}

/// What a model has written, as far as it is shown again.
pub(super) fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().map(plain).take(LONGEST_SHOWN).collect();
    if text.chars().nth(LONGEST_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
