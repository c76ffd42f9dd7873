//! Writes a document as a person would.

use saphyr_parser::ScalarStyle;
use serde_json::Value;

use crate::{scalar, tree::Content};

/// The widest list on one line.
const WIDEST: usize = 80;

/// The text of an object, with the end of its last line.
pub(crate) fn written(document: &Value) -> String {
    let mut text = String::new();
    block(document, 0, &mut text);
    text
}

/// A value below the line that names it.
fn block(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                indent(depth, text);
                text.push_str(&string(name));
                text.push(':');
                behind(value, depth, text);
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

/// A value behind its name: on the same line if it is short.
fn behind(value: &Value, depth: usize, text: &mut String) {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    let line = match value {
        Value::Object(members) if !members.is_empty() => None,
        Value::Array(items) if !items.iter().all(is_plain) => None,
        value => Some(inline(value)).filter(|line| !value.is_array() || line.len() <= WIDEST),
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

/// A string, in quotes unless every reader of YAML takes it for a string anyway.
fn string(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_./:@+-".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(inner)
        && !text.ends_with(':')
        // Booleans of YAML 1.1, which Kubernetes reads.
        && !["y", "n", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str())
        && matches!(scalar::resolve(text, ScalarStyle::Plain), Content::Text(_));
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}
