//! The reader of `tool`: what a handler says of the one tool that it is.

use crate::{
    cursor::Cursor,
    forms,
    handler::ToolDefinition,
    value::{self, Strings},
};

pub(super) fn read(cursor: Cursor<'_>) -> Option<ToolDefinition> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(forms::tool_name));
    let description = fields.required("description", Cursor::text);
    let input_schema = fields.required("inputSchema", input_schema);
    let output_schema = fields.optional("outputSchema", |cursor| value::object(cursor, Strings::Literal));
    fields.finish();
    Some(ToolDefinition {
        name: name?,
        description: description?,
        input_schema: input_schema?,
        output_schema: output_schema.map(Into::into),
    })
}

/// MCP wants the schema of an object, and says so in it (2025-11-25, schema, `Tool`).
fn input_schema(cursor: Cursor<'_>) -> Option<serde_json::Value> {
    let schema = value::object(cursor.clone(), Strings::Literal)?;
    if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        let problem = cursor.problem("this is not the schema of an object").expected("`type: object` in it");
        cursor.report(problem.hint("a tool's arguments are an object, with a property for each of them"));
        return None;
    }
    Some(schema.into())
}
