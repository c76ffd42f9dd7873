//! Servers of a bridge, a process on a message bus that has servers for others. They are listed and called beside those of
//! the gateway, which come first if names clash.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::nearest::{did_you_mean, nearest_names};
use toolyard_core::{Caller, Client, ToolError};
use toolyard_sdk::{Context, ToolFailure};

use super::args::{excerpt, server_name};
use super::invoke::InvocationTarget;
use super::listing::{ServerFilter, ServerListing};
use super::manager::NewServer;

/// Time limit of a call without a deadline.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of servers that a "not found" message names.
const MAX_SUGGESTED: usize = 20;

/// The servers of a bridge.
pub trait BridgeManager: Send + Sync {
    /// Returns the servers that the bridge has announced.
    fn servers(&self) -> Vec<Arc<BridgedServer>>;

    /// Returns the tools of a server.
    fn details<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<BridgedTool>, ToolError>>;

    /// Calls a tool. Dropping the future cancels the call.
    fn invoke(&self, call: BridgedCall) -> BoxFuture<'_, Result<BridgedResult, ToolError>>;

    /// Adds a server to the bridge, and returns the number of its tools if the bridge has announced them already.
    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Option<usize>, ToolError>>;

    /// Removes a server that was added to the bridge at run time.
    fn unregister<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// A server of a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BridgedServer {
    /// Name.
    pub name: String,
    /// Name for people.
    pub display_name: Option<Arc<str>>,
    /// Summary.
    pub summary: Option<String>,
    /// Number of its tools.
    pub tool_count: usize,
    /// Names of its tools, or of the first of them.
    pub tools: Vec<String>,
}

/// A tool of a server of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgedTool {
    /// Name.
    pub name: String,
    /// Description for a model.
    pub description: String,
    /// JSON Schema of the arguments as a text.
    pub parameters_schema: String,
}

/// A call of a tool of a bridge.
pub struct BridgedCall {
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments as the text of a JSON object.
    pub arguments: String,
    /// Time limit.
    pub timeout: Duration,
    /// `traceparent` of the call.
    pub trace_parent: Option<String>,
    /// Client of the call, which receives notices of it.
    pub client: Arc<dyn Client>,
}

/// The result of a tool of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgedResult {
    /// Text of the result.
    pub text: String,
    /// True if the tool reports that it failed.
    pub is_error: bool,
}

/// The servers of a bridge as a caller sees them: those with a tool that it may use.
pub(super) struct VisibleBridge<'a> {
    manager: &'a dyn BridgeManager,
    caller: &'a Caller,
    servers: Vec<Arc<BridgedServer>>,
}

impl<'a> VisibleBridge<'a> {
    pub(super) fn of(manager: &'a dyn BridgeManager, caller: &'a Caller) -> Self {
        let mut servers = manager.servers();
        servers.retain(|server| server.tools.iter().any(|tool| is_allowed(caller, &server.name, tool)));
        Self { manager, caller, servers }
    }

    /// Returns the servers that match a filter, without those whose names are in use.
    pub(super) fn listings(
        &self,
        filter: &ServerFilter,
        is_in_use: impl Fn(&str) -> bool,
    ) -> Vec<ServerListing<'_>> {
        let servers = self.servers.iter().filter(|server| !is_in_use(&server.name));
        let listings = servers.map(|server| {
            let names = server.tools.iter().map(String::as_str);
            let names: Vec<_> = names.filter(|tool| is_allowed(self.caller, &server.name, tool)).collect();
            let is_whole = names.len() == server.tools.len();
            ServerListing {
                server_name: &server.name,
                display_name: server.display_name.clone(),
                // The summary of all tools would name those that the caller cannot use.
                summary: server.summary.clone().filter(|_| is_whole),
                tool_count: if is_whole { server.tool_count } else { names.len() },
                tool_names: Some(names),
                added_at_run_time: false,
                available: None,
            }
        });
        listings.filter(|server| filter.matches(server)).collect()
    }

    /// Returns the server of a name, ignoring case.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<BridgedServer>> {
        let name = server_name(name);
        self.servers.iter().find(|server| server_name(&server.name) == name)
    }

    /// Adds the servers of the bridge to the message about a server that does not exist.
    pub(super) fn explain(&self, why: String, requested: &str) -> String {
        let names = || self.servers.iter().map(|server| server.name.as_str());
        let near = nearest_names(&server_name(requested), names());
        if !near.is_empty() {
            return format!("Server '{}' not found.{}", excerpt(requested), did_you_mean(&near));
        }
        match names().take(MAX_SUGGESTED).collect::<Vec<_>>() {
            none if none.is_empty() => why,
            some => format!("{why} Servers of the bridge: {}.", some.join(", ")),
        }
    }

    /// Returns the JSON array that describes the tools of a server, or one of them.
    ///
    /// # Errors
    /// If the bridge does not answer, or has no such tool.
    pub(super) async fn details(
        &self,
        server: &BridgedServer,
        tool: Option<&str>,
    ) -> Result<String, ToolFailure> {
        let mut tools = self.manager.details(&server.name).await?;
        tools.retain(|tool| is_allowed(self.caller, &server.name, &tool.name));
        if let Some(requested) = tool {
            let is_it = |tool: &BridgedTool| tool.name.to_lowercase() == requested.trim().to_lowercase();
            if !tools.iter().any(is_it) {
                let names = tools.iter().map(|tool| tool.name.as_str());
                return Err(ToolFailure::new(no_such_tool(server, requested, names)));
            }
            tools.retain(is_it);
        }
        Ok(serde_json::to_string(&tools).unwrap_or_default())
    }

    /// Calls the tool that a call of `mcp_invoke_tool` names.
    ///
    /// # Errors
    /// If the caller has no such tool, or as for [`BridgeManager::invoke`].
    pub(super) async fn invoke(
        &self,
        server: &BridgedServer,
        target: InvocationTarget,
        context: &Context,
    ) -> Result<BridgedResult, ToolFailure> {
        let InvocationTarget { server: _, tool, arguments } = target;
        let tool = tool.trim();
        // The index may have fewer names than there are tools. The bridge knows those that exist.
        if !is_allowed(self.caller, &server.name, tool) {
            let names = server.tools.iter().map(String::as_str);
            let names = names.filter(|tool| is_allowed(self.caller, &server.name, tool));
            return Err(ToolFailure::new(no_such_tool(server, tool, names)));
        }
        let arguments = arguments.as_ref().and_then(super::args::arguments_object).unwrap_or_default();
        let left = context.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let call = BridgedCall {
            server: server.name.clone(),
            tool: tool.to_owned(),
            arguments: arguments.to_json().as_text().to_owned(),
            timeout: left.unwrap_or(CALL_TIMEOUT).min(CALL_TIMEOUT),
            trace_parent: context.meta("traceparent").and_then(|parent| parent.as_str().map(str::to_owned)),
            client: context.client(),
        };
        Ok(self.manager.invoke(call).await?)
    }
}

/// Returns `true` if the caller may use a tool of a server, by the same patterns as for a handler of the gateway.
fn is_allowed(caller: &Caller, server: &str, tool: &str) -> bool {
    caller.grant.as_ref().is_none_or(|grant| grant.scope.allows_name(server, tool))
}

fn no_such_tool<'a>(server: &BridgedServer, tool: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = did_you_mean(&nearest_names(tool, names));
    format!("No tool named '{}' found on server '{}'.{near}", excerpt(tool), server.name)
}
