//! The tools themselves.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolCall, ToolFailure};

use super::args::{ManagementArgs, excerpt, server_name};
use super::invoke::resolve_invocation;
use super::manager::{NewServer, RegisteredServer, ServerManager};
use super::new_server::parse_new_server;
use super::services::ServerDirectory;
use crate::summary::SummarySource;

/// Names of the tools, as agents know them.
pub const LIST: &str = "mcp_list_services";
/// See [`LIST`].
pub const DETAILS: &str = "mcp_get_service_details";
/// See [`LIST`].
pub const INVOKE: &str = "mcp_invoke_tool";
/// See [`LIST`].
pub const REGISTER: &str = "mcp_register_server";
/// See [`LIST`].
pub const UNREGISTER: &str = "mcp_unregister_server";
/// Names of all tools.
pub const NAMES: [&str; 5] = [LIST, DETAILS, INVOKE, REGISTER, UNREGISTER];

const ABOUT_LIST: &str = "\
Lists the MCP servers that are connected, each with a summary and the names of its tools. Call this first when you need \
live, personal or external data, or an action outside of this conversation, and do not know which server has it.";

const ABOUT_DETAILS: &str = "\
Returns the tools of an MCP server as JSON: name, description and parameters of each. Give tool_name where you know which \
tool you want: with all tools the answer may be long.";

const ABOUT_INVOKE: &str = "\
Calls a tool of an MCP server and returns its result. Take server_name and tool_name from mcp_list_services, and the \
parameters from mcp_get_service_details.";

const ABOUT_REGISTER: &str = "\
Connects another MCP server: a program that the gateway starts (command, arguments), or a server that is reached by HTTP \
(url, type). Do this only when the user asks for it. The operator says which ones are allowed. An existing server cannot be \
replaced.";

const ABOUT_UNREGISTER: &str = "\
Disconnects an MCP server that was connected with mcp_register_server. Its tools are gone then. Servers that the operator \
configured stay.";

/// Dependencies of the tools.
#[derive(Clone)]
pub struct ServerManagement {
    /// The servers.
    pub servers: Arc<dyn ServerManager>,
    /// Source of their summaries.
    pub summaries: Arc<dyn SummarySource>,
}

/// Adds the tools to a server. Calls of [`INVOKE`] fail unless [`InvokeToolBackend`](super::InvokeToolBackend) wraps
/// its backend.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, management: ServerManagement) -> Result<Server, RegisterError> {
    let [list, details, invoke, register, unregister] = [(); 5].map(|()| management.clone());
    server
        .register_tool(list_tool(), async move |context: Context, _: ToolCall| list.list(&context).await)?
        .register_tool(details_tool(), async move |context: Context, call: ToolCall| {
            details.details(&context, &ManagementArgs::of(&call.arguments)).await
        })?
        .register_tool(invoke_tool(), async move |context: Context, call: ToolCall| {
            invoke.invalid_invocation(&context, &call).await
        })?
        .register_tool(register_tool(), async move |context: Context, call: ToolCall| {
            register.register(&context, &ManagementArgs::of(&call.arguments)).await
        })?
        .register_tool(unregister_tool(), async move |context: Context, call: ToolCall| {
            unregister.unregister(&context, &ManagementArgs::of(&call.arguments)).await
        })
}

impl ServerManagement {
    async fn list(&self, context: &Context) -> Result<String, ToolFailure> {
        let registry = self.servers.seen_by(context.caller()).await;
        Ok(ServerDirectory::of(&registry, &*self.servers).listing(&self.servers.added(), &*self.summaries))
    }

    async fn details(&self, context: &Context, args: &ManagementArgs) -> Result<String, ToolFailure> {
        let name = args.required(&["server_name"])?;
        let registry = self.servers.seen_by(context.caller()).await;
        let services = ServerDirectory::of(&registry, &*self.servers);
        let service = services.find(&name).map_err(ToolFailure::new)?;
        service.details(args.text(&["tool_name"]).as_deref()).map_err(ToolFailure::new)
    }

    /// Explains a call that cannot be forwarded. A call that can be forwarded never gets here.
    async fn invalid_invocation(&self, context: &Context, call: &ToolCall) -> Result<String, ToolFailure> {
        let registry = self.servers.seen_by(context.caller()).await;
        let why = match resolve_invocation(Some(&call.arguments.to_json()), &registry, &*self.servers) {
            Err(why) => why,
            Ok(_) => format!("{INVOKE} cannot be called through another tool: call it by itself"),
        };
        Err(ToolFailure::new(why))
    }

    async fn register(&self, context: &Context, args: &ManagementArgs) -> Result<String, ToolFailure> {
        let server = parse_new_server(args)?;
        let NewServer { name, .. } = &server;
        let name = name.clone();
        let failed = |why: &dyn std::fmt::Display| {
            ToolFailure::new(format!("Failed to register server '{}': {why}", excerpt(&name)))
        };
        let RegisteredServer { tools } =
            self.servers.register(server).await.map_err(|refusal| failed(&refusal))?;
        let done = format!("Server '{name}' registered successfully. {tools} tool(s) available.");
        let registry = self.servers.seen_by(context.caller()).await;
        let is_seen = ServerDirectory::of(&registry, &*self.servers).find(&name).is_ok();
        let is_hidden = context.caller().grant.is_some() && tools > 0 && !is_seen;
        Ok(if is_hidden { format!("{done} Your key does not open them.") } else { done })
    }

    async fn unregister(&self, context: &Context, args: &ManagementArgs) -> Result<String, ToolFailure> {
        let name = server_name(&args.required(&["server_name", "name"])?);
        let registry = self.servers.seen_by(context.caller()).await;
        let visible = ServerDirectory::of(&registry, &*self.servers).find(&name).map(drop);
        // A server that is not running is visible to no caller, but a caller with access to everything can remove it.
        let is_all = context.caller().grant.as_ref().is_none_or(|grant| grant.scope.is_everything());
        if !(is_all && self.servers.added().iter().any(|added| **added == *name)) {
            visible.map_err(ToolFailure::new)?;
        }
        let removed = self.servers.unregister(&name).await;
        removed
            .map(|()| format!("Server '{name}' removed successfully."))
            .map_err(|why| ToolFailure::new(format!("Failed to remove server '{}': {why}", excerpt(&name))))
    }
}

/// Builds a tool that accepts any object: the handlers report invalid arguments themselves, in words that agents know.
fn tool(
    name: &str,
    title: &str,
    about: &str,
    hints: ToolAnnotations,
    properties: &Value,
    required: &[&str],
) -> Tool {
    let published = json!({"type": "object", "properties": properties, "required": required});
    let tool = Tool::new(name, about).title(title).annotations(hints);
    tool.input_schema(published).accepted_schema(json!({"type": "object"}))
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn list_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    tool(LIST, "List MCP servers", ABOUT_LIST, hints, &json!({}), &[])
}

fn details_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    let properties = json!({
        "server_name": text("The server, as mcp_list_services names it"),
        "tool_name": text("One of its tools; all of them if left out"),
    });
    tool(DETAILS, "Describe an MCP server", ABOUT_DETAILS, hints, &properties, &["server_name"])
}

fn invoke_tool() -> Tool {
    let properties = json!({
        "server_name": text("The server, as mcp_list_services names it"),
        "tool_name": text("The tool, as mcp_list_services and mcp_get_service_details name it"),
        "arguments": {
            "type": "object",
            "description": "The tool's parameters, as an object; leave it out where the tool takes none",
        },
    });
    let hints = ToolAnnotations::new();
    tool(
        INVOKE,
        "Call a tool of an MCP server",
        ABOUT_INVOKE,
        hints,
        &properties,
        &["server_name", "tool_name"],
    )
}

fn register_tool() -> Tool {
    let properties = json!({
        "server_name": text("Name: lower-case letters, digits and \"-\""),
        "command": text("The program, such as \"uvx\""),
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The arguments of the program, such as [\"mcp-server-time\"]",
        },
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Variables for the program, by their names",
        },
        "url": text("Where a server is that is reached by HTTP, such as \"https://docs.example.com/mcp\""),
        "type": {
            "type": "string",
            "enum": ["stdio", "http", "sse", "streamable-http"],
            "description": "How it is reached; left out, it is found out",
        },
        "display_name": text("Its name for people"),
        "description": text("What it is for, in a sentence"),
    });
    let hints = ToolAnnotations::new().read_only(false).destructive(false).open_world(true);
    tool(REGISTER, "Connect an MCP server", ABOUT_REGISTER, hints, &properties, &["server_name"])
}

fn unregister_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false);
    let properties = json!({"server_name": text("The server, as mcp_list_services names it")});
    tool(UNREGISTER, "Disconnect an MCP server", ABOUT_UNREGISTER, hints, &properties, &["server_name"])
}
