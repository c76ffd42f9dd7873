//! Lenient parsing of the arguments that models send.

use serde_json::{Map, Value};
use toolyard_core::{Json, Object};
use toolyard_sdk::ToolFailure;

/// Arguments of one call.
pub(super) struct ManagementArgs(Map<String, Value>);

/// Maximum length in characters of an argument that an error message repeats.
const MAX_EXCERPT_LENGTH: usize = 64;

impl ManagementArgs {
    /// Reads the arguments. A value that is not an object, or a text with one, counts as no arguments.
    pub(super) fn of(arguments: &Object) -> Self {
        match arguments.to_json().to_value() {
            Value::Object(members) => Self(members),
            _ => Self(Map::new()),
        }
    }

    /// Returns the first of these parameters that is present and not null.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    /// Returns the first of these parameters that is not blank, as text. Numbers and other values are written as JSON.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().filter_map(|name| scalar_text(self.0.get(*name)?)).next()
    }

    /// Returns the first of these parameters that is not blank, or an error that names the first one.
    pub(super) fn required(&self, names: &[&str]) -> Result<String, ToolFailure> {
        self.text(names)
            .ok_or_else(|| ToolFailure::new(missing_parameter(names.first().copied().unwrap_or_default())))
    }

    /// Refuses a parameter that is not in this list.
    pub(super) fn refuse_unknown(&self, known: &[&str]) -> Result<(), ToolFailure> {
        let unknown = self.0.keys().find(|name| !known.contains(&name.as_str()));
        unknown.map_or(Ok(()), |name| Err(ToolFailure::new(format!("Unknown parameter: {}", excerpt(name)))))
    }
}

/// Returns the message for a missing parameter.
pub(super) fn missing_parameter(name: &str) -> String {
    format!("Missing required parameter: {name}")
}

/// Returns a value as text; `None` if it is null or blank.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

/// Normalizes the name of a server: case does not matter.
pub(super) fn server_name(text: &str) -> String {
    text.trim().to_lowercase()
}

/// Returns arguments as an object. Models also write a text with JSON. `None` if it is neither.
pub(super) fn arguments_object(arguments: &Json) -> Option<Object> {
    match arguments.to_str() {
        Some(text) => Object::parse(text.trim().to_owned()).ok(),
        None => arguments.to_object().ok(),
    }
}

/// Shortens an argument for an error message.
pub(super) fn excerpt(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut excerpt: String = text.chars().map(plain).take(MAX_EXCERPT_LENGTH).collect();
    if text.chars().nth(MAX_EXCERPT_LENGTH).is_some() {
        excerpt.push('…');
    }
    excerpt
}
