//! The records and their serialization. Names of members are written in camel case and read in any case; unknown
//! members are ignored, and `null` counts as absent.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// Reason why an object is not such a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// A required member is missing.
    #[error("`{0}` is required")]
    Missing(&'static str),
    /// The member is not a string.
    #[error("`{0}` must be a string")]
    NotText(&'static str),
    /// The member is not a boolean.
    #[error("`{0}` must be a boolean")]
    NotFlag(&'static str),
}

// === impl RecordMembers ===

/// The members of an object by their names in lower case. A duplicate name in any case is refused, because two readers
/// could use different values.
struct RecordMembers(BTreeMap<String, Value>);

impl RecordMembers {
    fn text(&mut self, name: &'static str) -> Result<String, BadRecord> {
        self.optional(name)?.ok_or(BadRecord::Missing(name))
    }

    fn optional(&mut self, name: &'static str) -> Result<Option<String>, BadRecord> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(BadRecord::NotText(name)),
        }
    }

    /// Returns a boolean; `false` if it is absent.
    fn flag(&mut self, name: &'static str) -> Result<bool, BadRecord> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(BadRecord::NotFlag(name)),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(&name.to_ascii_lowercase()).filter(|value| !value.is_null())
    }
}

impl<'de> Deserialize<'de> for RecordMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordMembersVisitor)
    }
}

struct RecordMembersVisitor;

impl<'de> Visitor<'de> for RecordMembersVisitor {
    type Value = RecordMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<RecordMembers, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = object.next_entry::<String, Value>()? {
            if members.insert(name.to_ascii_lowercase(), value).is_some() {
                return Err(serde::de::Error::custom("duplicate member"));
            }
        }
        Ok(RecordMembers(members))
    }
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
