//! The records of tools and calls, and their serialization.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use super::members::BadRecord;
use super::members::RecordMembers;

/// Codes of a [`ToolInvokeError`].
pub mod codes {
    /// No tool has this name.
    pub const TOOL_NOT_FOUND: &str = "tool_not_found";
    /// The tool failed, or its executor cannot be reached: see [`is_retryable`](super::ToolInvokeError::is_retryable).
    pub const EXECUTION_FAILED: &str = "execution_failed";
    /// The call took too long.
    pub const TIMEOUT: &str = "timeout";
    /// The arguments are missing or invalid.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
}

/// A tool, as its host describes it to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolRegistration {
    /// Name of the tool.
    pub name: String,
    /// Description for a model.
    pub description: String,
    /// JSON Schema of the arguments as a text. If it is absent or not an object, the tool takes any object.
    pub parameters_schema: Option<String>,
    /// Origin of the tool, such as `mcp:weather`, `script` or `web`.
    pub source: String,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolInvokeRequest {
    /// Id of the call, which its response repeats.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments as the text of a JSON object. `None` and the empty text: no arguments.
    pub arguments: Option<String>,
    /// Session of the call, as its host names it: `abc123`, or `session/abc123`.
    pub session_id: Option<String>,
}

/// The response of a tool.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
pub struct ToolInvokeResponse {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Content of the response, plain text or JSON. `None` if no content is text.
    pub content: Option<String>,
    /// True if the tool reports that it failed; the content gives the reason.
    pub is_error: bool,
}

/// Reason why there is no response of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", try_from = "RecordMembers")]
#[error("{message}")]
pub struct ToolInvokeError {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// One of [`codes`].
    pub code: String,
    /// Message for the caller.
    pub message: String,
    /// True if the same call may succeed later.
    pub is_retryable: bool,
}

// === from members ===

impl TryFrom<RecordMembers> for ToolRegistration {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            name: members.text("name")?,
            description: members.optional("description")?.unwrap_or_default(),
            parameters_schema: members.optional("parametersSchema")?,
            source: members.optional("source")?.unwrap_or_default(),
        })
    }
}

impl TryFrom<RecordMembers> for ToolInvokeRequest {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            arguments: members.optional("arguments")?,
            session_id: members.optional("sessionId")?,
        })
    }
}

impl TryFrom<RecordMembers> for ToolInvokeResponse {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            content: members.optional("content")?,
            is_error: members.flag("isError")?,
        })
    }
}

impl TryFrom<RecordMembers> for ToolInvokeError {
    type Error = BadRecord;

    fn try_from(mut members: RecordMembers) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            code: members.text("code")?,
            message: members.optional("message")?.unwrap_or_default(),
            is_retryable: members.flag("isRetryable")?,
        })
    }
}

/// Shows the call without its content.
impl fmt::Debug for ToolInvokeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool_call_id, tool_name, .. } = self;
        f.debug_struct("ToolInvokeRequest")
            .field("tool_call_id", tool_call_id)
            .field("tool_name", tool_name)
            .finish_non_exhaustive()
    }
}

/// Shows the call without its content.
impl fmt::Debug for ToolInvokeResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool_call_id, tool_name, is_error, .. } = self;
        f.debug_struct("ToolInvokeResponse")
            .field("tool_call_id", tool_call_id)
            .field("tool_name", tool_name)
            .field("is_error", is_error)
            .finish_non_exhaustive()
    }
}
