//! From what an author registers to what is published and run.

use std::fmt::Display;
use std::sync::Arc;

use futures_util::FutureExt;
use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::{Code, Json, Object, Outcome, ToolError};
use toolyard_mcp::wire::headers;

use crate::backend::{BoxHandler, Part};
use crate::error::RegisterError;
use crate::handler::ToolHandler;
use crate::prompt::{self, Prompt, PromptHandler};
use crate::resource::{self, Resource, ResourceHandler, ResourceTemplate, TemplateHandler};
use crate::schema::{self, Published};
use crate::tool::Tool;

/// Something to be published, and what runs its calls.
pub(crate) struct Registered<Item> {
    pub(crate) key: Arc<str>,
    pub(crate) item: Arc<Item>,
    pub(crate) handler: BoxHandler,
}

/// Checks a tool, and fills in what its handler knows.
pub(crate) fn tool<M>(
    mut tool: Tool,
    handler: impl ToolHandler<M>,
) -> Result<Registered<toolyard_core::Tool>, RegisterError> {
    check_name(&tool.name)?;
    let (input, accepted, output) = schemas_of(&handler);
    let Published { schema: output, wraps } = schema::published(output);
    let wraps = wraps && tool.output_schema.is_none();
    let check =
        tool.output_schema.as_ref().map(|schema| compile(&tool.name, "output", schema)).transpose()?;
    let wider = tool.accepted_schema.take();
    if let Some(schema) = &wider {
        compile(&tool.name, "accepted", schema)?;
    }
    // A schema that was written by hand means what it says.
    let accepted = wider.or_else(|| tool.input_schema.is_none().then_some(accepted));
    let input = tool.input_schema.get_or_insert(input);
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
    Ok(Registered { key: item.name.clone(), item: Arc::new(item), handler })
}

/// What is published of the arguments, what they are held to, and what is published of the result.
fn schemas_of<M, H: ToolHandler<M>>(_: &H) -> (Value, Value, Option<Value>) {
    (H::input_schema(), H::accepted_schema(), H::output_schema())
}

/// MCP 2026-07-28, server/tools, tool names.
fn check_name(name: &str) -> Result<(), RegisterError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    named("tool", "name", name)?;
    if name.len() <= 128 && name.bytes().all(legal) {
        return Ok(());
    }
    Err(RegisterError::IllegalName(name.to_owned()))
}

fn compile(tool: &str, which: &'static str, schema: &Value) -> Result<Validator, RegisterError> {
    if let Some(fault) = schema::root_fault(schema) {
        return Err(RegisterError::NotAnObject { tool: tool.to_owned(), schema: which, fault });
    }
    jsonschema::validator_for(schema).map_err(|error| {
        let path = error.instance_path().to_string();
        let at = if path.is_empty() { String::new() } else { format!(", at {path}") };
        RegisterError::BadSchema { tool: tool.to_owned(), schema: which, fault: format!("{error}{at}") }
    })
}

/// Clients have to leave a tool out whose `x-mcp-header` they cannot follow.
fn check_headers(tool: &str, schema: &Value) -> Result<(), RegisterError> {
    let checked = headers::header_params(Some(&Json::from_value(schema)));
    checked.map(|_| ()).map_err(|error| RegisterError::BadSchema {
        tool: tool.to_owned(),
        schema: "input",
        fault: error.to_string(),
    })
}

/// Holds a handler to an output schema that was written by hand.
fn checked(handler: BoxHandler, schema: Validator) -> BoxHandler {
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

fn check_output(schema: &Validator, body: &Object) -> Result<(), ToolError> {
    let failed = |fault: String| {
        let message = "The tool's result does not fit its output schema";
        ToolError::new(Code::ExecutionFailed, message).caused_by(fault)
    };
    let Some(structured) = body.get("structuredContent") else {
        return Err(failed("there is no structured content".to_owned()));
    };
    schema.validate(&structured.to_value()).map_err(|error| {
        let path = error.instance_path().to_string();
        failed(format!("{path}: {}", error.masked()))
    })
}

/// Checks a prompt, and fills in the arguments that its handler takes.
pub(crate) fn prompt<M>(
    mut prompt: Prompt,
    handler: impl PromptHandler<M>,
) -> Result<Registered<toolyard_core::Prompt>, RegisterError> {
    named("prompt", "name", &prompt.name)?;
    let handler = prompt::handler(&mut prompt, handler);
    let item = item("prompt", &prompt.name, &prompt, toolyard_core::Prompt::from_definition)?;
    Ok(Registered { key: item.key.clone(), item: Arc::new(item), handler })
}

/// Checks a resource.
pub(crate) fn resource<M>(
    resource: &Resource,
    handler: impl ResourceHandler<M>,
) -> Result<Registered<toolyard_core::Resource>, RegisterError> {
    named("resource", "URI", &resource.uri)?;
    if !has_scheme(&resource.uri) {
        return Err(RegisterError::BadDefinition {
            kind: "resource",
            name: resource.uri.clone(),
            fault: "a URI begins with a scheme, such as `file:`".to_owned(),
        });
    }
    let handler = resource::handler(resource, handler);
    let item = item("resource", &resource.uri, resource, toolyard_core::Resource::from_definition)?;
    Ok(Registered { key: item.key.clone(), item: Arc::new(item), handler })
}

/// RFC 3986, section 3.1.
fn has_scheme(uri: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(legal)
    })
}

/// Checks a template of resources.
pub(crate) fn template<M>(
    template: &ResourceTemplate,
    handler: impl TemplateHandler<M>,
) -> Result<Registered<toolyard_core::Template>, RegisterError> {
    const KIND: &str = "resource template";
    named(KIND, "URI template", &template.uri_template)?;
    let handler = resource::template_handler(template, handler);
    let read = toolyard_core::Template::from_definition;
    let item = item(KIND, &template.uri_template, template, read)?;
    Ok(Registered { key: item.uri.text().clone(), item: Arc::new(item), handler })
}

fn named(kind: &'static str, member: &'static str, name: &str) -> Result<(), RegisterError> {
    if name.is_empty() { Err(RegisterError::Nameless { kind, member }) } else { Ok(()) }
}

/// A definition as it is published, read as the gateway reads those of any server.
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

/// Adds what completes an argument of something of which `known` are all arguments.
pub(crate) fn completer<Item>(
    kind: &'static str,
    part: &mut Part<Item>,
    (name, argument): (&str, &str),
    known: impl FnOnce(&Item) -> Vec<String>,
    completer: BoxHandler,
) -> Result<(), RegisterError> {
    let unknown = || RegisterError::Unknown { kind, name: name.to_owned() };
    let entry = part.get_mut(name).ok_or_else(unknown)?;
    let known = known(&entry.item);
    if !known.iter().any(|known| known == argument) {
        let known = known.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (name, argument) = (name.to_owned(), argument.to_owned());
        return Err(RegisterError::UnknownArgument { kind, name, argument, known });
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
pub(crate) fn variables_of(template: &toolyard_core::Template) -> Vec<String> {
    template.uri.variables().map(str::to_owned).collect()
}
