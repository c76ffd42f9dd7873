//! The tools themselves.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolCall, ToolFailure, ToolReply};

use super::args::{ManagementArgs, excerpt, server_name};
use super::bridge::{BridgeManager, BridgedResult, VisibleBridge};
use super::invoke::{InvocationTarget, resolve_invocation};
use super::listing::{self, ServerFilter};
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
Lists the connected MCP servers, for an overview.";

const ABOUT_DETAILS: &str = "\
Returns description and parameters of the tools of a server, or of one tool, which is shorter.";

const ABOUT_INVOKE: &str = "\
Calls a tool of a server that mcp_list_services shows, with the parameters that mcp_get_service_details shows.";

const ABOUT_REGISTER: &str = "\
Connects another MCP server, if the user asks for it and the operator allows it: a program (command, arguments), or a \
server that is reached by HTTP (url).";

const ABOUT_UNREGISTER: &str = "\
Disconnects an MCP server that mcp_register_server has connected.";

const NO_MATCH: &str = "No server has all of these words. Use fewer, or list all servers without `filter`.";

/// Dependencies of the tools.
#[derive(Clone)]
pub struct ServerManagement {
    /// The servers.
    pub servers: Arc<dyn ServerManager>,
    /// Source of their summaries.
    pub summaries: Arc<dyn SummarySource>,
    /// The servers of a bridge, to which servers are then added. `None`: there is no bridge.
    pub bridge: Option<Arc<dyn BridgeManager>>,
}

/// Adds the tools to a server. Calls of [`INVOKE`] fail unless [`InvokeToolBackend`](super::InvokeToolBackend) wraps
/// its backend.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, management: ServerManagement) -> Result<Server, RegisterError> {
    let [list, details, invoke, register, unregister] = [(); 5].map(|()| management.clone());
    server
        .register_tool(list_tool(), async move |context: Context, call: ToolCall| {
            list.list(&context, &ManagementArgs::of(&call.arguments)).await
        })?
        .register_tool(details_tool(), async move |context: Context, call: ToolCall| {
            details.details(&context, &ManagementArgs::of(&call.arguments)).await
        })?
        .register_tool(invoke_tool(), async move |context: Context, call: ToolCall| {
            invoke.unresolved_invocation(&context, &call).await
        })?
        .register_tool(register_tool(), async move |context: Context, call: ToolCall| {
            register.register(&context, &ManagementArgs::of(&call.arguments)).await
        })?
        .register_tool(unregister_tool(), async move |context: Context, call: ToolCall| {
            unregister.unregister(&context, &ManagementArgs::of(&call.arguments)).await
        })
}

impl ServerManagement {
    async fn list(&self, context: &Context, args: &ManagementArgs) -> Result<ToolReply, ToolFailure> {
        let registry = self.servers.seen_by(context.caller()).await;
        let words = args.text(&["filter"]);
        let filter = ServerFilter::new(words.as_deref().unwrap_or_default());
        let (directory, added) = (ServerDirectory::of(&registry, &*self.servers), self.servers.added());
        let mut servers = directory.listings(&filter, &added, &*self.summaries);
        let bridge = self.bridge(context);
        if let Some(bridge) = &bridge {
            servers.extend(bridge.listings(&filter, |name| directory.find(name).is_ok()));
        }
        let is_nothing = servers.is_empty() && words.is_some();
        let list = listing::page(servers, args.text(&["cursor"]).as_deref()).map_err(ToolFailure::new)?;
        // The note is a text of its own, so that the first one is the array that agents know.
        let note = list.note.or_else(|| is_nothing.then(|| NO_MATCH.to_owned()));
        Ok(note.into_iter().fold(ToolReply::new().text(list.array), ToolReply::text))
    }

    async fn details(&self, context: &Context, args: &ManagementArgs) -> Result<String, ToolFailure> {
        let name = args.required(&["server_name"])?;
        let registry = self.servers.seen_by(context.caller()).await;
        let services = ServerDirectory::of(&registry, &*self.servers);
        let tool = args.text(&["tool_name"]);
        let service = match (services.find(&name), self.bridge(context)) {
            (Ok(service), _) => service,
            (Err(why), bridge) => {
                let Some(bridge) = bridge else { return Err(ToolFailure::new(why)) };
                let Some(server) = bridge.find(&name) else {
                    return Err(ToolFailure::new(bridge.explain(why, &name)));
                };
                return bridge.details(server, tool.as_deref()).await;
            }
        };
        service.details(tool.as_deref()).map_err(ToolFailure::new)
    }

    /// Runs a call of a tool of the bridge, or explains a call that cannot be forwarded. A call that can be forwarded never
    /// gets here.
    async fn unresolved_invocation(
        &self,
        context: &Context,
        call: &ToolCall,
    ) -> Result<ToolReply, ToolFailure> {
        let registry = self.servers.seen_by(context.caller()).await;
        let directory = ServerDirectory::of(&registry, &*self.servers);
        let (bridge, target) = (self.bridge(context), InvocationTarget::of(&call.arguments).ok());
        if let (Some(bridge), Some(target)) = (bridge, target)
            && let Err(why) = directory.find(&target.server)
        {
            let Some(server) = bridge.find(&target.server) else {
                return Err(ToolFailure::new(bridge.explain(why, &target.server)));
            };
            let BridgedResult { text, is_error } = bridge.invoke(server, target, context).await?;
            return if is_error { Err(ToolFailure::new(text)) } else { Ok(ToolReply::new().text(text)) };
        }
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
        if let Some(bridge) = &self.bridge {
            return self.register_on_bridge(&**bridge, server).await;
        }
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

    async fn register_on_bridge(
        &self,
        bridge: &dyn BridgeManager,
        server: NewServer,
    ) -> Result<String, ToolFailure> {
        let name = server.name.clone();
        match bridge.register(server).await {
            Ok(Some(tools)) => {
                Ok(format!("Server '{name}' registered successfully. {tools} tool(s) available."))
            }
            Ok(None) => Ok(format!("Server '{name}' registered successfully.")),
            Err(why) => {
                let why = why.message();
                Err(ToolFailure::new(format!("Failed to register server '{}': {why}", excerpt(&name))))
            }
        }
    }

    /// Returns the servers of the bridge that the caller of a call sees.
    fn bridge<'a>(&'a self, context: &'a Context) -> Option<VisibleBridge<'a>> {
        self.bridge.as_ref().map(|bridge| VisibleBridge::of(&**bridge, context.caller()))
    }

    async fn unregister(&self, context: &Context, args: &ManagementArgs) -> Result<String, ToolFailure> {
        let name = server_name(&args.required(&["server_name", "name"])?);
        let registry = self.servers.seen_by(context.caller()).await;
        let visible = ServerDirectory::of(&registry, &*self.servers).find(&name).map(drop);
        if let (Some(manager), Some(bridge), Err(_)) = (&self.bridge, self.bridge(context), &visible)
            && bridge.find(&name).is_some()
        {
            let removed = manager.unregister(&name).await;
            return removed.map(|()| format!("Server '{name}' removed successfully.")).map_err(|why| {
                let (name, why) = (excerpt(&name), why.message().to_owned());
                ToolFailure::new(format!("Failed to remove server '{name}': {why}"))
            });
        }
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
    about: &str,
    hints: impl Into<Option<ToolAnnotations>>,
    properties: &Value,
    required: &[&str],
) -> Tool {
    let mut published = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        published["required"] = json!(required);
    }
    let tool = Tool { annotations: hints.into(), ..Tool::new(name, about) };
    tool.input_schema(published).accepted_schema(json!({"type": "object"}))
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn list_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    let properties = json!({
        "filter": text("Only servers with these words in their names, summaries or tools"),
        "cursor": text("The next page, as the last one names it"),
    });
    tool(LIST, ABOUT_LIST, hints, &properties, &[])
}

fn details_tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    let properties = json!({
        "server_name": string(),
        "tool_name": string(),
    });
    tool(DETAILS, ABOUT_DETAILS, hints, &properties, &["server_name"])
}

fn invoke_tool() -> Tool {
    let properties = json!({
        "server_name": string(),
        "tool_name": string(),
        "arguments": {"type": "object", "description": "The tool's parameters"},
    });
    tool(INVOKE, ABOUT_INVOKE, None, &properties, &["server_name", "tool_name"])
}

fn register_tool() -> Tool {
    let properties = json!({
        "server_name": text("Lower-case letters, digits and \"-\""),
        "command": text("Such as \"uvx\""),
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Such as [\"mcp-server-time\"]",
        },
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "url": text("Such as \"https://docs.example.com/mcp\""),
        "type": {"type": "string", "enum": ["stdio", "http", "sse", "streamable-http"]},
        "display_name": string(),
        "description": text("Its purpose, in a sentence"),
    });
    let hints = ToolAnnotations::new().destructive(false).open_world(true);
    tool(REGISTER, ABOUT_REGISTER, hints, &properties, &["server_name"])
}

fn unregister_tool() -> Tool {
    let hints = ToolAnnotations::new().destructive(true).idempotent(true).open_world(false);
    let properties = json!({"server_name": string()});
    tool(UNREGISTER, ABOUT_UNREGISTER, hints, &properties, &["server_name"])
}
