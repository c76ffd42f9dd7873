//! `tool`: the definition of a handler's only tool.

use serde_json::Value;

use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats,
    value::{self, StringMode},
};

/// The definition of a tool, as models see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
    /// JSON schema of its result.
    pub output_schema: Option<Value>,
}

/// Reads the object `tool`.
pub(super) fn read(cursor: ValueCursor<'_>) -> Option<ToolDefinition> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(formats::tool_name));
    let description = fields.required("description", ValueCursor::text);
    let input_schema = fields.required("inputSchema", input_schema);
    let output_schema = fields.optional("outputSchema", |cursor| value::object(cursor, StringMode::Literal));
    fields.finish();
    Some(ToolDefinition {
        name: name?,
        description: description?,
        input_schema: input_schema?,
        output_schema: output_schema.map(Into::into),
    })
}

/// Reads `tool` of a handler that may be an MCP server instead. `None`: it is present and invalid.
#[expect(clippy::option_option, reason = "the outer one says whether it could be read, as with every reader")]
pub(super) fn read_optional(fields: &mut ObjectFields<'_>) -> Option<Option<ToolDefinition>> {
    match fields.optional("tool", |cursor| Some(read(cursor))) {
        Some(tool) => tool.map(Some),
        None => Some(None),
    }
}

/// Reads the schema of the arguments. MCP requires `type: object` in it (2025-11-25, schema, `Tool`).
fn input_schema(cursor: ValueCursor<'_>) -> Option<Value> {
    let schema = value::object(cursor.clone(), StringMode::Literal)?;
    if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        let problem = cursor.problem("this is not the schema of an object").expected("`type: object` in it");
        cursor.report(problem.hint("a tool's arguments are an object, with a property for each of them"));
        return None;
    }
    Some(schema.into())
}
