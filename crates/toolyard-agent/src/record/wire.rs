//! The records, as they are written and read. Names of members are written in camel case and read in any; what is not
//! known is passed over, and `null` is as good as nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The codes of a [`ToolError`], as they are written.
pub mod codes {
    /// There is no such tool.
    pub const TOOL_NOT_FOUND: &str = "tool_not_found";
    /// The tool failed, or whoever runs it cannot be reached: see [`is_retryable`](super::ToolError::is_retryable).
    pub const EXECUTION_FAILED: &str = "execution_failed";
    /// It took too long.
    pub const TIMEOUT: &str = "timeout";
    /// The arguments are none, or do not fit.
    pub const INVALID_ARGUMENTS: &str = "invalid_arguments";
}

/// A tool, as its host knows it and tells a model of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Members")]
pub struct ToolRegistration {
    /// What it is called by.
    pub name: String,
    /// For a model.
    pub description: String,
    /// The JSON Schema of its arguments, as a text. None, or one that is no schema of an object: it takes an object.
    pub parameters_schema: Option<String>,
    /// Where it comes from, such as `mcp:weather`, `script` or `web`.
    pub source: String,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Members")]
pub struct ToolInvokeRequest {
    /// What tells its answer from others.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments: a text with a JSON object in it. `None` and the empty text: there are none.
    pub arguments: Option<String>,
    /// The session that the call belongs to, as its host names it: `abc123`, or `session/abc123`.
    pub session_id: Option<String>,
}

/// What a tool has answered.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Members")]
pub struct ToolInvokeResponse {
    /// The call's.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its answer, plain text or JSON. `None` where it has none that is text.
    pub content: Option<String>,
    /// The tool says that it failed; the content says why.
    pub is_error: bool,
}

/// Why a tool has not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", try_from = "Members")]
#[error("{message}")]
pub struct ToolError {
    /// The call's.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// One of [`codes`].
    pub code: String,
    /// For whoever made the call.
    pub message: String,
    /// Whether the same call may succeed later.
    pub is_retryable: bool,
}

/// Why an object is no such record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// It has to have this member.
    #[error("{0}: is missing")]
    Missing(&'static str),
    /// The member has to be a text.
    #[error("{0}: is not a text")]
    NotText(&'static str),
    /// The member has to be `true` or `false`.
    #[error("{0}: is neither true nor false")]
    NotFlag(&'static str),
}

// === impl Members ===

/// The members of an object by their names in lower case. One that stands twice, in whatever case, is refused: two readers
/// could take it for two values.
struct Members(BTreeMap<String, Value>);

impl Members {
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

    /// What is not said is false.
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

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadMembers)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = object.next_entry::<String, Value>()? {
            if members.insert(name.to_ascii_lowercase(), value).is_some() {
                return Err(serde::de::Error::custom("a member stands twice"));
            }
        }
        Ok(Members(members))
    }
}

// === from members ===

impl TryFrom<Members> for ToolRegistration {
    type Error = BadRecord;

    fn try_from(mut members: Members) -> Result<Self, BadRecord> {
        Ok(Self {
            name: members.text("name")?,
            description: members.optional("description")?.unwrap_or_default(),
            parameters_schema: members.optional("parametersSchema")?,
            source: members.optional("source")?.unwrap_or_default(),
        })
    }
}

impl TryFrom<Members> for ToolInvokeRequest {
    type Error = BadRecord;

    fn try_from(mut members: Members) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            arguments: members.optional("arguments")?,
            session_id: members.optional("sessionId")?,
        })
    }
}

impl TryFrom<Members> for ToolInvokeResponse {
    type Error = BadRecord;

    fn try_from(mut members: Members) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            content: members.optional("content")?,
            is_error: members.flag("isError")?,
        })
    }
}

impl TryFrom<Members> for ToolError {
    type Error = BadRecord;

    fn try_from(mut members: Members) -> Result<Self, BadRecord> {
        Ok(Self {
            tool_call_id: members.text("toolCallId")?,
            tool_name: members.text("toolName")?,
            code: members.text("code")?,
            message: members.optional("message")?.unwrap_or_default(),
            is_retryable: members.flag("isRetryable")?,
        })
    }
}

/// Shows which call it is, and nothing that anybody said.
impl fmt::Debug for ToolInvokeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool_call_id, tool_name, .. } = self;
        f.debug_struct("ToolInvokeRequest")
            .field("tool_call_id", tool_call_id)
            .field("tool_name", tool_name)
            .finish_non_exhaustive()
    }
}

/// Shows which call it is, and nothing that anybody said.
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
