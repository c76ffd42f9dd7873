//! JSON Schemas (2020-12) of the documents, for authors whose editors show them. Tests compare them with the readers.
//!
//! The schema of `ToolRegistry` documents is written by hand; that of `Toolyard` documents comes from the declarations
//! of their sections.

use serde_json::{Map, Value};

use crate::process;

/// The schema of a `ToolRegistry` document.
pub const TOOL_REGISTRY: &str = include_str!("../../../schema/toolregistry.json");

/// Returns the schema of a `Toolyard` document. `schema/toolyard.json` is a copy, which `cargo xtask reference` writes.
#[must_use]
pub fn toolyard() -> String {
    layout(&process::schema(), 0) + "\n"
}

/// Formats a schema. An object with properties has one line for each, everything else is on one line.
fn layout(schema: &Value, depth: usize) -> String {
    match schema {
        Value::Object(members) if members.contains_key("properties") => lines(members, depth),
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, member)| format!("{}: {}", quoted(name), layout(member, depth)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| layout(item, depth));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// Formats an object with one line for each member.
fn lines(members: &Map<String, Value>, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let line = |(name, member): (&String, &Value)| {
        let text = match (name.as_str(), member) {
            ("properties" | "$defs", Value::Object(inner)) => lines(inner, depth + 1),
            _ => layout(member, depth + 1),
        };
        format!("{indent}  {}: {text}", quoted(name))
    };
    format!("{{\n{}\n{indent}}}", members.iter().map(line).collect::<Vec<_>>().join(",\n"))
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}
