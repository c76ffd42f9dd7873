//! Tools that answer without questions, some of them after notifications.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use toolyard_sdk::{
    Content, Context, Prompt, RegisterError, Server, ServerHandle, Tool, ToolCall, ToolFailure,
};

use crate::PIXEL;

/// A sound: eight samples of silence.
const SILENCE: &[u8] = include_bytes!("silence.wav");

/// Time between two messages, so that clients receive them one by one.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    let checked = Tool::new("json_schema_2020_12_tool", "Has an explicit schema.");
    contents(changes(server)?)?
        .tool("test_error_handling", "Fails.", fail)?
        .tool("test_tool_with_logging", "Logs three messages while it runs.", log)?
        .tool("test_logging_tool", "Logs a message, for clients that want logs.", log_once)?
        .tool("test_tool_with_progress", "Reports its progress while it runs.", progress)?
        .tool("test_reconnection", "Takes a moment.", take_a_moment)?
        .tool("test_custom_header", "Repeats an argument that clients mirror in a header.", repeat)?
        .register_tool(checked.input_schema(contact()), async |_: ToolCall| "The arguments fit.")
}

/// Tools that change the lists of the server.
fn changes(server: Server) -> Result<Server, RegisterError> {
    let (tools, prompts) = (server.handle(), server.handle());
    let change_tools = async move || change_tools(&tools);
    let change_prompts = async move || change_prompts(&prompts);
    let server = server.tool("test_trigger_tool_change", "Changes the list of tools.", change_tools)?;
    server.tool("test_trigger_prompt_change", "Changes the list of prompts.", change_prompts)
}

/// The item that is added and removed to change a list.
const EXTRA: &str = "test_extra";

fn change_tools(server: &ServerHandle) -> Result<&'static str, RegisterError> {
    if !server.remove_tool(EXTRA) {
        server.add_tool(Tool::new(EXTRA, "Comes and goes."), async || "Here for now.")?;
    }
    Ok("There is a tool more, or a tool less.")
}

fn change_prompts(server: &ServerHandle) -> Result<&'static str, RegisterError> {
    if !server.remove_prompt(EXTRA) {
        server.add_prompt(Prompt::new(EXTRA, "Comes and goes."), async || "Here for now.")?;
    }
    Ok("There is a prompt more, or a prompt less.")
}

/// Tools that always return the same content.
fn contents(server: Server) -> Result<Server, RegisterError> {
    server
        .tool("test_simple_text", "Gives a text.", async || "This is a simple text response for testing.")?
        .tool("test_image_content", "Gives an image.", async || Content::image(PIXEL, "image/png"))?
        .tool("test_audio_content", "Gives audio.", async || Content::audio(SILENCE, "audio/wav"))?
        .tool("test_embedded_resource", "Gives a resource.", async || {
            let text = "This is an embedded resource content.";
            Content::embedded_text("test://embedded-resource", "text/plain", text)
        })?
        .tool("test_multiple_content_types", "Gives a text, an image and a resource.", async || {
            let text = r#"{"test":"data","value":123}"#;
            vec![
                Content::text("Multiple content types test:"),
                Content::image(PIXEL, "image/png"),
                Content::embedded_text("test://mixed-content-resource", "application/json", text),
            ]
        })
}

async fn fail() -> Result<(), ToolFailure> {
    Err(ToolFailure::new("This tool intentionally returns an error for testing"))
}

async fn log(ctx: Context) -> &'static str {
    ctx.info("Tool execution started");
    sleep(PAUSE).await;
    ctx.info("Tool processing data");
    sleep(PAUSE).await;
    ctx.info("Tool execution completed");
    "Three messages were logged."
}

async fn log_once(ctx: Context) -> &'static str {
    ctx.info("This message is sent only to clients that want logs.");
    "Done."
}

async fn progress(ctx: Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        ctx.progress(done, Some(100.0), None);
        sleep(PAUSE).await;
    }
    "All is done."
}

async fn take_a_moment() -> &'static str {
    sleep(2 * PAUSE).await;
    "That was a moment."
}

#[derive(Deserialize, JsonSchema)]
struct RepeatArgs {
    /// The value to repeat
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

async fn repeat(args: RepeatArgs) -> String {
    args.value
}

/// A schema with the features of JSON Schema 2020-12.
fn contact() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "address",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
