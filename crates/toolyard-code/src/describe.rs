//! The text of `describe_tools`: tools as functions of TypeScript.

use std::sync::Arc;

use toolyard_core::nearest::{did_you_mean, nearest_tools};
use toolyard_core::{Registry, RegistryEntry};

use crate::names::ToolPaths;
use crate::results;
use crate::shapes::ObservedShapes;
use crate::typescript::{UNKNOWN, one_line, type_of_schema};

/// Maximum number of tools in one description.
pub const MAX_NAMES: usize = 30;

/// Maximum length of a name that a message repeats, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Maximum length of the description of one tool, in bytes.
const MAX_TOOL_BYTES: usize = 8 << 10;

/// Returns the descriptions of tools, by published names or paths. Unknown names are answered with similar ones.
#[must_use]
pub fn description(
    view: &Registry,
    names: &[String],
    shapes: &ObservedShapes,
    principal: Option<&Arc<str>>,
) -> String {
    let paths = ToolPaths::of(view);
    let mut parts = Vec::new();
    for name in names.iter().take(MAX_NAMES) {
        let found = paths.resolve(view, name).and_then(|name| view.tool(&name).ok());
        parts.push(match found {
            Some(entry) => signature(entry, paths.path(&entry.name), shapes, principal),
            None => unknown(view, &paths, name),
        });
    }
    if names.len() > MAX_NAMES {
        parts.push(format!(
            "// {} names were left out: ask for {MAX_NAMES} at most.",
            names.len() - MAX_NAMES
        ));
    }
    parts.join("\n\n")
}

fn unknown(view: &Registry, paths: &ToolPaths, name: &str) -> String {
    let near = nearest_tools(view, name);
    let near: Vec<_> = near.iter().map(|name| paths.path(name).unwrap_or(name)).collect();
    let name: String = one_line(name).chars().take(MAX_NAME_CHARS).collect();
    format!("// There is no tool `{name}`.{}", did_you_mean(&near))
}

/// Returns a tool as a function of TypeScript.
fn signature(
    entry: &RegistryEntry,
    path: Option<&str>,
    shapes: &ObservedShapes,
    principal: Option<&Arc<str>>,
) -> String {
    let Some(tool) = &entry.tool else { return String::new() };
    let about = tool.definition.get_str("description").map(|text| one_line(&text)).unwrap_or_default();
    let about = if about.is_empty() { String::new() } else { format!("/** {about} */\n") };
    let input =
        tool.input_schema().map_or_else(|| UNKNOWN.to_owned(), |schema| type_of_schema(&schema.to_value()));
    let is_optional = tool.input_schema().is_none_or(|schema| {
        schema.to_object().is_ok_and(|schema| {
            schema
                .get("required")
                .and_then(|names| names.to_items().ok())
                .is_none_or(|names| names.is_empty())
        })
    });
    let mark = if is_optional { "?" } else { "" };
    let (output, note) = result_type(entry, shapes, principal);
    let call = match path {
        Some(path) => format!("tools.{path}"),
        None => format!("tools[{}]", toolyard_core::Json::string(&entry.name).as_text()),
    };
    let text = format!("{about}{call}(args{mark}: {input}): Promise<{output}>{note}");
    match text.len() {
        0..=MAX_TOOL_BYTES => text,
        _ => format!(
            "{about}{call}(args{mark}: {{ [key: string]: unknown }}): Promise<unknown>  // its types are too large"
        ),
    }
}

/// Returns the type of the results of a tool, and a note about its origin.
fn result_type(
    entry: &RegistryEntry,
    shapes: &ObservedShapes,
    principal: Option<&Arc<str>>,
) -> (String, &'static str) {
    let schema = entry.tool.as_ref().and_then(|tool| tool.output_schema());
    if let Some(schema) = schema.map(toolyard_core::Json::to_value) {
        let is_wrapped = results::is_wrapped(entry);
        let result = schema.pointer("/properties/result").filter(|_| is_wrapped);
        return match result {
            // The definitions are at the root of the schema.
            Some(result) => (type_of_schema_at(&schema, result), ""),
            None => (type_of_schema(&schema), ""),
        };
    }
    match shapes.type_of(principal, &entry.name) {
        Some(shape) => (shape, "  // observed in earlier results, not declared: members may be missing"),
        None => (UNKNOWN.to_owned(), "  // not declared: look at one result before you rely on its form"),
    }
}

/// Returns the type of a part of a schema.
fn type_of_schema_at(root: &serde_json::Value, part: &serde_json::Value) -> String {
    let mut part = part.clone();
    if let Some(members) = part.as_object_mut() {
        for definitions in ["$defs", "definitions"] {
            if let Some(all) = root.get(definitions) {
                members.insert(definitions.to_owned(), all.clone());
            }
        }
    }
    type_of_schema(&part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::names::PrefixPolicy;

    use super::*;
    use crate::testing::registry;

    #[test]
    fn tools_are_functions_of_typescript() {
        let tools = vec![
            json!({
                "name": "create_issue",
                "description": "Creates an issue.\nMore about it.",
                "inputSchema": {
                    "type": "object",
                    "required": ["title"],
                    "properties": {"title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
                },
                "outputSchema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            }),
            json!({"name": "list_issues", "inputSchema": {"type": "object", "properties": {}}}),
            json!({"name": "ping"}),
            json!({
                "name": "count",
                "outputSchema": {
                    "type": "object",
                    "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
                    "$defs": {"N": {"type": "integer"}},
                    "x-fastmcp-wrap-result": true,
                },
            }),
        ];
        let view = registry(&[("hub", tools, PrefixPolicy::OnClash)]);
        let shapes = ObservedShapes::new(10);
        shapes.observe(None, &"list_issues".into(), &json!([{"id": 1}, {"id": 2, "title": "a"}]));
        let names =
            ["create_issue", "hub.list_issues", "tools.hub.ping", "count", "create_isue", "nothing */"];
        let names = names.map(str::to_owned);
        insta::assert_snapshot!(description(&view, &names, &shapes, None), @"
        /** Creates an issue. More about it. */
        tools.hub.create_issue(args: { title: string; labels?: string[] }): Promise<{ id: number }>

        tools.hub.list_issues(args?: { [key: string]: unknown }): Promise<{ id: number; title?: string }[]>  // observed in earlier results, not declared: members may be missing

        tools.hub.ping(args?: { [key: string]: unknown }): Promise<unknown>  // not declared: look at one result before you rely on its form

        tools.hub.count(args?: { [key: string]: unknown }): Promise<number[]>

        // There is no tool `create_isue`. Did you mean `hub.create_issue` or `hub.list_issues`?

        // There is no tool `nothing * /`.
        ");
        let other = description(&view, &names[1..2], &shapes, Some(&"alice".into()));
        assert!(other.contains("not declared: look at one result"), "{other}");
    }

    #[test]
    fn descriptions_are_bounded() {
        let members: serde_json::Map<_, _> = (0..300)
            .map(|n| (format!("member{n}"), json!({"type": "string", "description": "word ".repeat(100)})))
            .collect();
        let tools = vec![json!({"name": "wide", "inputSchema": {"type": "object", "properties": members}})];
        let view = registry(&[("hub", tools, PrefixPolicy::OnClash)]);
        let shapes = ObservedShapes::new(10);
        let names = vec!["wide".to_owned(); MAX_NAMES + 5];
        let text = description(&view, &names, &shapes, None);
        assert!(text.len() < MAX_NAMES * 200, "{}", text.len());
        assert!(text.ends_with("// 5 names were left out: ask for 30 at most."), "{text}");
        let long = description(&view, &["x".repeat(10_000)], &shapes, None);
        assert!(long.len() < 200, "{long}");
    }
}
