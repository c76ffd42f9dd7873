//! Checks of registrations, and their conversion into published definitions and handlers.

use std::fmt::Display;
use std::sync::Arc;

use futures_util::FutureExt;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::schema::{CompiledSchema, InvalidSchema, ValidationBudget};
use toolyard_core::{ErrorCode, Json, Object, Outcome, ToolError};
use toolyard_mcp::wire::headers;

use crate::backend::{BoxHandler, ItemTable};
use crate::error::RegisterError;
use crate::handler::ToolHandler;
use crate::prompt::{self, Prompt, PromptHandler};
use crate::resource::{self, Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::schema::{self, PublishedSchema};
use crate::tool::Tool;

/// An item to be published, and the handler of its calls.
pub(crate) struct PreparedItem<Item> {
    pub(crate) key: Arc<str>,
    pub(crate) item: Arc<Item>,
    pub(crate) handler: BoxHandler,
}

/// Checks a tool and fills in the schemas of its handler.
pub(crate) fn tool<M>(
    mut tool: Tool,
    handler: impl ToolHandler<M>,
) -> Result<PreparedItem<toolyard_core::Tool>, RegisterError> {
    check_name(&tool.name)?;
    let (input, accepted, output) = schemas_of(&handler);
    let PublishedSchema { schema: output, wraps } = schema::published_schema(output);
    let wraps = wraps && tool.output_schema.is_none();
    let check =
        tool.output_schema.as_ref().map(|schema| compile(&tool.name, "output", schema)).transpose()?;
    let custom = tool.accepted_schema.take();
    if let Some(schema) = &custom {
        compile(&tool.name, "accepted", schema)?;
    }
    let has_custom = custom.is_some();
    // An explicit input schema also validates the arguments.
    let accepted = custom.or_else(|| tool.input_schema.is_none().then_some(accepted));
    let input = tool.input_schema.get_or_insert(input);
    if let (true, Value::Object(members)) = (tool.omits_dialect, &mut *input) {
        members.shift_remove("$schema");
    }
    let accepted = match accepted {
        None if tool.refuses_unknown_arguments => Some(input.clone()),
        accepted => accepted,
    };
    let accepted = accepted.map(|schema| match tool.refuses_unknown_arguments && !has_custom {
        true => schema::closed(schema),
        false => schema,
    });
    compile(&tool.name, "input", input)?;
    check_headers(&tool.name, input)?;
    tool.output_schema = tool.output_schema.or(output);
    if let (Some(schema), None) = (&tool.output_schema, &check) {
        compile(&tool.name, "output", schema)?;
    }
    let item = item("tool", &tool.name, &tool, toolyard_core::Tool::from_definition)?;
    let item = match accepted {
        Some(schema) => item.accepting(Json::from_value(&schema)),
        None => item,
    };
    let handler: BoxHandler = Arc::new(move |call, context| handler.clone().call(call, context, wraps));
    let handler = match check {
        Some(check) => checked(handler, check),
        None => handler,
    };
    Ok(PreparedItem { key: item.name.clone(), item: Arc::new(item), handler })
}

/// The published schema of the arguments, the schema that validates them, and the published schema of the result.
fn schemas_of<M, H: ToolHandler<M>>(_: &H) -> (Value, Value, Option<Value>) {
    (H::input_schema(), H::accepted_schema(), H::output_schema())
}

/// Checks the name of a tool (MCP 2026-07-28, server/tools, tool names).
fn check_name(name: &str) -> Result<(), RegisterError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    check_not_empty("tool", "name", name)?;
    if name.len() <= 128 && name.bytes().all(legal) {
        return Ok(());
    }
    Err(RegisterError::IllegalName(name.to_owned()))
}

fn compile(tool: &str, role: &'static str, schema: &Value) -> Result<CompiledSchema, RegisterError> {
    if let Some(fault) = schema::root_fault(schema) {
        return Err(RegisterError::NotAnObject { tool: tool.to_owned(), schema: role, fault });
    }
    CompiledSchema::compile(schema).map_err(|error| {
        let fault = match error {
            InvalidSchema::Invalid(fault) => fault,
            costly @ InvalidSchema::TooCostly(_) => costly.to_string(),
        };
        RegisterError::BadSchema { tool: tool.to_owned(), schema: role, fault }
    })
}

/// Checks `x-mcp-header`: clients must leave out a tool with an invalid one.
fn check_headers(tool: &str, schema: &Value) -> Result<(), RegisterError> {
    let checked = headers::header_params(Some(&Json::from_value(schema)));
    checked.map(|_| ()).map_err(|error| RegisterError::BadSchema {
        tool: tool.to_owned(),
        schema: "input",
        fault: error.to_string(),
    })
}

/// Validates the results of a handler against an explicit output schema.
fn checked(handler: BoxHandler, schema: CompiledSchema) -> BoxHandler {
    let schema = Arc::new(schema);
    Arc::new(move |call, context| {
        let (answer, schema) = (handler(call, context), schema.clone());
        async move {
            let outcome = answer.await?;
            match &outcome {
                Outcome::Done(output) if !output.is_error => check_output(&schema, &output.body)?,
                _ => {}
            }
            Ok(outcome)
        }
        .boxed()
    })
}

fn check_output(schema: &CompiledSchema, body: &Object) -> Result<(), ToolError> {
    let failed = |fault: String| {
        let message = "The tool's result does not fit its output schema";
        ToolError::new(ErrorCode::ExecutionFailed, message).caused_by(fault)
    };
    let Some(structured) = body.get(STRUCTURED) else {
        return Err(failed("there is no structured content".to_owned()));
    };
    let budget = ValidationBudget::of(structured.as_bytes().len());
    schema.check(&structured.to_value(), &budget).map_err(|mismatch| failed(mismatch.to_string()))
}

/// Checks a prompt and fills in the arguments of its handler.
pub(crate) fn prompt<M>(
    mut prompt: Prompt,
    handler: impl PromptHandler<M>,
) -> Result<PreparedItem<toolyard_core::Prompt>, RegisterError> {
    check_not_empty("prompt", "name", &prompt.name)?;
    let handler = prompt::handler(&mut prompt, handler);
    let item = item("prompt", &prompt.name, &prompt, toolyard_core::Prompt::from_definition)?;
    Ok(PreparedItem { key: item.key.clone(), item: Arc::new(item), handler })
}

/// Checks a resource.
pub(crate) fn resource<M>(
    resource: &Resource,
    handler: impl ResourceHandler<M>,
) -> Result<PreparedItem<toolyard_core::Resource>, RegisterError> {
    check_not_empty("resource", "URI", &resource.uri)?;
    if !has_scheme(&resource.uri) {
        return Err(RegisterError::BadDefinition {
            kind: "resource",
            name: resource.uri.clone(),
            fault: "a URI begins with a scheme, such as `file:`".to_owned(),
        });
    }
    let handler = resource::handler(resource, handler);
    let item = item("resource", &resource.uri, resource, toolyard_core::Resource::from_definition)?;
    Ok(PreparedItem { key: item.key.clone(), item: Arc::new(item), handler })
}

/// True if the URI begins with a scheme (RFC 3986, section 3.1).
fn has_scheme(uri: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(legal)
    })
}

/// Checks a resource template.
pub(crate) fn template<M>(
    template: &ResourceTemplate,
    handler: impl TemplateHandler<M>,
) -> Result<PreparedItem<toolyard_core::PublishedTemplate>, RegisterError> {
    const KIND: &str = "resource template";
    check_not_empty(KIND, "URI template", &template.uri_template)?;
    let handler = resource::template_handler(template, handler);
    let read = toolyard_core::PublishedTemplate::from_definition;
    let item = item(KIND, &template.uri_template, template, read)?;
    Ok(PreparedItem { key: item.uri.text().clone(), item: Arc::new(item), handler })
}

fn check_not_empty(kind: &'static str, member: &'static str, name: &str) -> Result<(), RegisterError> {
    if name.is_empty() { Err(RegisterError::EmptyName { kind, member }) } else { Ok(()) }
}

/// Serializes a definition and parses it as the gateway parses those of any server.
fn item<T, E: Display>(
    kind: &'static str,
    name: &str,
    definition: &impl Serialize,
    read: impl FnOnce(&Json) -> Result<T, E>,
) -> Result<T, RegisterError> {
    let bad = |fault: String| RegisterError::BadDefinition { kind, name: name.to_owned(), fault };
    let definition = serde_json::to_value(definition).map_err(|error| bad(error.to_string()))?;
    read(&Json::from_value(&definition)).map_err(|error| bad(error.to_string()))
}

/// Adds a completer for an argument of an item; `arguments_of` returns its arguments.
pub(crate) fn completer<Item>(
    kind: &'static str,
    table: &mut ItemTable<Item>,
    (name, argument): (&str, &str),
    arguments_of: impl FnOnce(&Item) -> Vec<String>,
    completer: BoxHandler,
) -> Result<(), RegisterError> {
    let unknown = || RegisterError::Unknown { kind, name: name.to_owned() };
    let entry = table.get_mut(name).ok_or_else(unknown)?;
    let arguments = arguments_of(&entry.item);
    if !arguments.iter().any(|name| name == argument) {
        let names = arguments.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (name, argument) = (name.to_owned(), argument.to_owned());
        return Err(RegisterError::UnknownArgument { kind, name, argument, known: names });
    }
    if !entry.complete(argument, completer) {
        return Err(RegisterError::Duplicate { kind: "completer", name: argument.to_owned() });
    }
    Ok(())
}

/// The names of a prompt's arguments.
pub(crate) fn arguments_of(prompt: &toolyard_core::Prompt) -> Vec<String> {
    let arguments = prompt.definition.get("arguments").and_then(|arguments| arguments.to_items().ok());
    let name = |argument: Json| Some(argument.to_object().ok()?.get_str("name")?.into_owned());
    arguments.into_iter().flatten().filter_map(name).collect()
}

/// The variables of a template.
pub(crate) fn variables_of(template: &toolyard_core::PublishedTemplate) -> Vec<String> {
    template.uri.variables().map(str::to_owned).collect()
}
