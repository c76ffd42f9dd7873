//! The reader of `tool`: the definition of a handler's only tool.

use crate::{
    cursor::ValueCursor,
    formats,
    handler::ToolDefinition,
    value::{self, StringMode},
};

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

/// Reads the schema of the arguments. MCP requires `type: object` in it (2025-11-25, schema, `Tool`).
fn input_schema(cursor: ValueCursor<'_>) -> Option<serde_json::Value> {
    let schema = value::object(cursor.clone(), StringMode::Literal)?;
    if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        let problem = cursor.problem("this is not the schema of an object").expected("`type: object` in it");
        cursor.report(problem.hint("a tool's arguments are an object, with a property for each of them"));
        return None;
    }
    Some(schema.into())
}
