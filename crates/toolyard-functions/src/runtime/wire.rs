//! Messages between host and worker: lines of JSON. A call and its answer have a second line with the event or the
//! answer itself, which needs no parsing in between.

use serde::{Deserialize, Serialize};

/// Maximum length of a line other than an answer, in bytes: output grows when it is escaped as JSON, and requests have
/// a body.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// Maximum length of an error text, in bytes, even if answers may be longer.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Maximum length of an error type, in bytes.
const MAX_KIND_BYTES: usize = 128;

/// Maximum length of an error text for this maximum length of answers, in bytes.
pub(crate) fn error_bytes(output_bytes: usize) -> usize {
    output_bytes.min(MAX_ERROR_BYTES)
}

/// First message to a worker: the code and its limits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadRequest {
    /// Names and contents, in Base64, because files need not be text.
    pub(crate) files: Vec<(String, String)>,
    /// Name of the file with the handler.
    pub(crate) entry: String,
    /// Name of the handler function.
    pub(crate) handler: String,
    pub(crate) environment: Vec<(String, String)>,
    /// Folder of packages, as seen by the worker.
    pub(crate) packages: Option<String>,
    pub(crate) network: bool,
    /// True if the handler may call tools of the host.
    pub(crate) tools: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: usize,
    pub(crate) log_bytes: usize,
}

/// Header of a call. The event is on the next line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallHeader {
    /// Random id of the call. Messages of the worker carry it, so that late or forged messages are not taken for an
    /// answer.
    pub(crate) call: u64,
    /// Remaining time, in milliseconds.
    pub(crate) remaining_ms: u64,
    pub(crate) context: HandlerContext,
}

/// Context of a call for the handler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HandlerContext {
    pub(crate) function_id: String,
    pub(crate) version: String,
    pub(crate) request_id: String,
    /// Deadline, in ISO 8601.
    pub(crate) deadline: String,
    pub(crate) remaining_ms: u64,
}

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum WorkerMessage {
    /// The code is loaded, and nothing remains of the previous call, if any.
    Ready { call: u64 },
    /// The code cannot be loaded.
    NotLoaded { message: String },
    /// The handler's return value is on the next line.
    Returned { call: u64, log: String, last: bool },
    /// The call failed.
    Failed { call: u64, log: String, last: bool, failure: CallFailure },
    /// The handler waits for an HTTP response.
    Fetch { call: u64, request: FetchRequest },
    /// The handler expects a [`ToolResultHeader`] with this id.
    Tool { call: u64, id: u64, request: ToolRequest },
    /// The handler reports progress.
    Progress { call: u64, report: ProgressReport },
}

/// A request of a handler that may call tools.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum ToolRequest {
    /// Calls a tool with arguments, a JSON text.
    Call { tool: String, arguments: String },
    /// Waits for a time in milliseconds.
    Sleep { millis: u64 },
}

/// Header of the result of a [`ToolRequest`]. The result, or the error, is on the next line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ToolResultHeader {
    pub(crate) id: u64,
    pub(crate) is_error: bool,
}

/// Failure of a call in its worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub(crate) enum CallFailure {
    Thrown { kind: String, message: String, details: String },
    NotLoaded { message: String },
    TimedOut,
    OutOfMemory,
    OutputTooLarge,
}

impl CallFailure {
    /// Truncates the texts to `limit` bytes in total.
    #[must_use]
    pub(crate) fn truncated(self, limit: usize) -> Self {
        match self {
            Self::Thrown { kind, message, details } => {
                let kind = truncate_text(kind, limit.min(MAX_KIND_BYTES));
                let message = truncate_text(message, limit - kind.len());
                let details = truncate_text(details, limit - kind.len() - message.len());
                Self::Thrown { kind, message, details }
            }
            Self::NotLoaded { message } => Self::NotLoaded { message: truncate_text(message, limit) },
            Self::TimedOut | Self::OutOfMemory | Self::OutputTooLarge => self,
        }
    }
}

/// Truncates a text to `limit` bytes at a character boundary.
pub(crate) fn truncate_text(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
}

/// Progress of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// Work done so far, in any unit.
    pub done: f64,
    /// All work, in the same unit.
    pub total: Option<f64>,
    /// Description of the current step.
    pub message: Option<String>,
}

/// Result of an HTTP request, sent to the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FetchResult {
    Response(FetchResponse),
    /// There is no response, with the reason.
    Refused(String),
}

/// An HTTP request of a handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    /// URL of the request.
    pub url: String,
    /// Method, such as `GET`.
    pub method: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Request body.
    pub body: Option<String>,
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchResponse {
    /// Status code, such as 200.
    pub status: u16,
    /// Reason phrase of HTTP/1.1.
    pub status_text: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Response body as text.
    pub body: String,
}
