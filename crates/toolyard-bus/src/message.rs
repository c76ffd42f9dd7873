//! The message types of the bus. The records of tools and calls are in [`record`](crate::record), those of
//! agents in [`agents`](crate::agents::record).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agents::record::{
    AgentTaskCancelRequest, AgentTaskError, AgentTaskRequest, AgentTaskResult, AgentTaskStatusUpdate,
    AnnouncedCard,
};
use crate::announcement::{WorkerQuery, WorkerState, WorkerTools};
use crate::record::members::{BadRecord, RecordMembers};
use crate::record::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse};

/// A record that is the body of a message.
pub trait BusMessage: Serialize + DeserializeOwned {
    /// Full name of the type.
    const TYPE: &'static str;
}

/// Returns `true` if a message type names the expected type: in any case, and in any namespace, because only the name
/// itself tells types apart.
pub(crate) fn is_of_type(actual: &str, expected: &str) -> bool {
    let actual = actual.rsplit('.').next().unwrap_or_default();
    actual.eq_ignore_ascii_case(expected.rsplit('.').next().unwrap_or_default())
}

macro_rules! message_types {
    ($($Message:ident = $name:literal,)+) => {
        $(impl BusMessage for $Message {
            const TYPE: &'static str = $name;
        })+

        /// Full names of all types.
        pub const TYPES: &[&str] = &[$($name),+];
    };
}

message_types! {
    ToolInvokeRequest = "RockBot.Tools.ToolInvokeRequest",
    ToolInvokeResponse = "RockBot.Tools.ToolInvokeResponse",
    ToolInvokeError = "RockBot.Tools.ToolError",
    McpServersIndexed = "RockBot.Tools.Mcp.McpServersIndexed",
    McpMetadataRefreshRequest = "RockBot.Tools.Mcp.McpMetadataRefreshRequest",
    McpGetServiceDetailsRequest = "RockBot.Tools.Mcp.McpGetServiceDetailsRequest",
    McpGetServiceDetailsResponse = "RockBot.Tools.Mcp.McpGetServiceDetailsResponse",
    McpRegisterServerRequest = "RockBot.Tools.Mcp.McpRegisterServerRequest",
    McpRegisterServerResponse = "RockBot.Tools.Mcp.McpRegisterServerResponse",
    McpUnregisterServerRequest = "RockBot.Tools.Mcp.McpUnregisterServerRequest",
    McpUnregisterServerResponse = "RockBot.Tools.Mcp.McpUnregisterServerResponse",
    ScriptInvokeRequest = "RockBot.Scripts.ScriptInvokeRequest",
    ScriptInvokeResponse = "RockBot.Scripts.ScriptInvokeResponse",
    AnnouncedCard = "RockBot.A2A.AgentCard",
    AgentTaskRequest = "RockBot.A2A.AgentTaskRequest",
    AgentTaskResult = "RockBot.A2A.AgentTaskResult",
    AgentTaskStatusUpdate = "RockBot.A2A.AgentTaskStatusUpdate",
    AgentTaskError = "RockBot.A2A.AgentTaskError",
    AgentTaskCancelRequest = "RockBot.A2A.AgentTaskCancelRequest",
    ToolProgress = "Toolyard.ToolProgress",
    ToolLog = "Toolyard.ToolLog",
    ToolCancel = "Toolyard.ToolCancel",
    ToolResult = "Toolyard.ToolResult",
    WorkerState = "Toolyard.WorkerState",
    WorkerTools = "Toolyard.WorkerTools",
    WorkerQuery = "Toolyard.WorkerQuery",
}

// === servers of MCP ===

/// The MCP servers of a bridge. A receiver removes servers first, and then adds and replaces others, by their names in
/// any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpServersIndexed {
    /// Added and changed servers.
    pub servers: Vec<McpServerSummary>,
    /// Names of removed servers.
    pub removed_servers: Vec<String>,
}

/// An MCP server as an agent sees it before it asks for details.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpServerSummary {
    /// Name of the server.
    pub server_name: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Summary of 15 to 25 words.
    pub summary: Option<String>,
    /// Number of tools.
    pub tool_count: i64,
    /// Names of the tools.
    pub tool_names: Vec<String>,
}

/// A request to connect to servers again and to list their tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpMetadataRefreshRequest {
    /// Name of the server. `None`: all servers.
    pub server_name: Option<String>,
}

/// A request for the tools of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpGetServiceDetailsRequest {
    /// Name of the server.
    pub server_name: String,
}

/// The tools of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpGetServiceDetailsResponse {
    /// Name of the server.
    pub server_name: String,
    /// The tools.
    pub tools: Vec<McpToolDetails>,
    /// Reason why there are none.
    pub error: Option<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpToolDetails {
    /// Name of the tool.
    pub name: String,
    /// Description for a model.
    pub description: String,
    /// JSON Schema of the arguments, as the text of a JSON object.
    pub parameters_schema: Option<String>,
}

/// A request to add a server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpRegisterServerRequest {
    /// Name of the server.
    pub server_name: String,
    /// Transport, such as `sse` or `stdio`.
    pub r#type: String,
    /// URL of the endpoint.
    pub url: Option<String>,
    /// Program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables.
    pub env: BTreeMap<String, String>,
}

/// The outcome of adding a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpRegisterServerResponse {
    /// Name of the server.
    pub server_name: String,
    /// True if it was added.
    pub success: bool,
    /// Summary of the server.
    pub summary: Option<String>,
    /// Reason why it was not added.
    pub error: Option<String>,
}

/// A request to remove a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpUnregisterServerRequest {
    /// Name of the server.
    pub server_name: String,
}

/// The outcome of removing a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct McpUnregisterServerResponse {
    /// Name of the server.
    pub server_name: String,
    /// True if it was removed.
    pub success: bool,
    /// Reason why it was not removed.
    pub error: Option<String>,
}

// === scripts ===

/// A Python script to run.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ScriptInvokeRequest {
    /// Id of the call, which its response repeats.
    pub tool_call_id: String,
    /// Source code.
    pub script: String,
    /// Input of the script, in the variable `ROCKBOT_INPUT`.
    pub input_data: Option<String>,
    /// Time limit in seconds.
    pub timeout_seconds: i64,
    /// Packages that are installed before it runs.
    pub pip_packages: Vec<String>,
}

/// The outcome of a script.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ScriptInvokeResponse {
    /// Id of the call.
    pub tool_call_id: String,
    /// Standard output.
    pub output: Option<String>,
    /// Standard error.
    pub stderr: Option<String>,
    /// Exit status; -1 after the time limit.
    pub exit_code: i64,
    /// True if the exit status is 0.
    pub is_success: bool,
    /// Duration in milliseconds.
    pub elapsed_ms: i64,
}

// === notices of running calls ===

/// Progress of a running call, as MCP has it. Only sent if the request asks for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolProgress {
    /// Id of the call.
    pub tool_call_id: String,
    /// Parameters of the MCP notification, without its token, as the text of a JSON object.
    pub params: String,
}

/// A log message of a running call, as MCP has it. Only sent if the request asks for it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolLog {
    /// Id of the call.
    pub tool_call_id: String,
    /// Parameters of the MCP notification, as the text of a JSON object.
    pub params: String,
}

/// A request to stop a running call. It has no answer, and the call has none after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolCancel {
    /// Id of the call.
    pub tool_call_id: String,
}

/// The whole result of a tool as MCP has it, with blocks that are no text and with structured content. Only sent if the
/// request asks for it, in the place of a [`ToolInvokeResponse`].
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolResult {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// The result, as the text of a JSON object.
    pub result: String,
    /// True if the tool reports that it failed.
    pub is_error: bool,
}

// === from members ===

macro_rules! from_members {
    ($($Record:ident { $($field:ident: $read:ident($name:literal),)+ })+) => {
        $(impl TryFrom<RecordMembers> for $Record {
            type Error = BadRecord;

            fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
                Ok(Self { $($field: members.$read($name)?,)+ })
            }
        })+
    };
}

from_members! {
    McpServersIndexed { servers: records("servers"), removed_servers: texts("removedServers"), }
    McpServerSummary {
        server_name: text("serverName"),
        display_name: optional("displayName"),
        summary: optional("summary"),
        tool_count: number("toolCount"),
        tool_names: texts("toolNames"),
    }
    McpMetadataRefreshRequest { server_name: optional("serverName"), }
    McpGetServiceDetailsRequest { server_name: text("serverName"), }
    McpGetServiceDetailsResponse {
        server_name: text("serverName"),
        tools: records("tools"),
        error: optional("error"),
    }
    McpToolDetails {
        name: text("name"),
        description: text_or_empty("description"),
        parameters_schema: optional("parametersSchema"),
    }
    McpRegisterServerRequest {
        server_name: text("serverName"),
        r#type: text_or_empty("type"),
        url: optional("url"),
        command: optional("command"),
        args: texts("args"),
        env: text_map("env"),
    }
    McpRegisterServerResponse {
        server_name: text("serverName"),
        success: flag("success"),
        summary: optional("summary"),
        error: optional("error"),
    }
    McpUnregisterServerRequest { server_name: text("serverName"), }
    McpUnregisterServerResponse {
        server_name: text("serverName"),
        success: flag("success"),
        error: optional("error"),
    }
    ScriptInvokeRequest {
        tool_call_id: text("toolCallId"),
        script: text("script"),
        input_data: optional("inputData"),
        timeout_seconds: number("timeoutSeconds"),
        pip_packages: texts("pipPackages"),
    }
    ScriptInvokeResponse {
        tool_call_id: text("toolCallId"),
        output: optional("output"),
        stderr: optional("stderr"),
        exit_code: number("exitCode"),
        is_success: flag("isSuccess"),
        elapsed_ms: number("elapsedMs"),
    }
    ToolProgress { tool_call_id: text("toolCallId"), params: text("params"), }
    ToolLog { tool_call_id: text("toolCallId"), params: text("params"), }
    ToolCancel { tool_call_id: text("toolCallId"), }
    ToolResult {
        tool_call_id: text("toolCallId"),
        tool_name: text("toolName"),
        result: text("result"),
        is_error: flag("isError"),
    }
}

macro_rules! debug_without_content {
    ($($Record:ident { $($field:ident),+ })+) => {
        $(impl std::fmt::Debug for $Record {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($Record))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
            }
        })+
    };
}

// Scripts, their input and output, log messages and variables may contain secrets.
debug_without_content! {
    McpRegisterServerRequest { server_name, r#type }
    ScriptInvokeRequest { tool_call_id, timeout_seconds }
    ScriptInvokeResponse { tool_call_id, exit_code }
    ToolLog { tool_call_id }
    ToolResult { tool_call_id, tool_name, is_error }
}
