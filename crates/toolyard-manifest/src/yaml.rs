//! Writes a document as YAML in the style of a person.

use saphyr_parser::ScalarStyle;
use serde_json::Value;

use crate::{scalar, tree::NodeContent};

/// Maximum width of a list on one line.
const MAX_LINE_WIDTH: usize = 80;

/// Formats an object as YAML, with a final line end.
#[must_use]
pub fn to_yaml(document: &Value) -> String {
    let mut text = String::new();
    block(document, 0, &mut text);
    text
}

/// Writes a value below the line with its name.
fn block(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                indent(depth, text);
                text.push_str(&string(name));
                text.push(':');
                member_value(value, depth, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, depth + 1, &mut inner);
                indent(depth, text);
                text.push_str("- ");
                text.push_str(inner.trim_start());
            }
        }
        value => {
            indent(depth, text);
            text.push_str(&inline(value));
            text.push('\n');
        }
    }
}

/// Writes a value after its name: on the same line if it is short.
fn member_value(value: &Value, depth: usize, text: &mut String) {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    let line = match value {
        Value::Object(members) if !members.is_empty() => None,
        Value::Array(items) if !items.iter().all(is_plain) => None,
        value => Some(inline(value)).filter(|line| !value.is_array() || line.len() <= MAX_LINE_WIDTH),
    };
    match line {
        Some(line) => text.extend([" ", &line, "\n"]),
        None => {
            text.push('\n');
            block(value, depth + 1, text);
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Formats a string, in quotes unless every YAML parser reads it as a string anyway.
fn string(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_./:@+-".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(inner)
        && !text.ends_with(':')
        // Booleans of YAML 1.1, which Kubernetes accepts.
        && !["y", "n", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str())
        && matches!(scalar::resolve_scalar(text, ScalarStyle::Plain), NodeContent::Text(_));
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}
