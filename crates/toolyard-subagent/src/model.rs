//! Language models that run agents.
//!
//! [`ChatModel`] is the port; [`openai`] is a client of the chat completions of OpenAI, which most endpoints speak, and
//! [`sampling`] is the model of an MCP client.

pub mod openai;
pub mod sampling;

use std::future::pending;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::Value;

/// Maximum number of calls that one message may request.
const MAX_REQUESTS: usize = 16;

/// Maximum bytes of a reply, with all that surrounds its text.
const MAX_REPLY_BYTES: usize = 4 << 20;

/// A language model that can request calls of tools.
pub trait ChatModel: Send + Sync {
    /// Returns the next message of the model. Dropping the future ends the request.
    fn complete<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<ChatReply, ModelError>>;

    /// Waits until the model can no longer be used, and returns the reason. A model that stays never returns.
    fn lost(&self) -> BoxFuture<'_, ModelError> {
        pending().boxed()
    }
}

/// A request for the next message of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [ChatMessage],
    /// The tools that the model may request.
    pub tools: &'a [ChatTool],
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatMessage {
    /// The instructions.
    System(String),
    /// A message to the model.
    User(String),
    /// A message of the model.
    Model {
        /// Text of the message, which may be empty.
        text: String,
        /// Requested calls.
        requests: Vec<RequestedCall>,
    },
    /// The result of a requested call.
    ToolResult {
        /// Id of the request.
        request: String,
        /// Result as the model reads it.
        text: String,
    },
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTool {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the parameters.
    pub parameters: Value,
}

/// A call that the model requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedCall {
    /// Id of the request.
    pub id: String,
    /// Name of the tool, as the model wrote it.
    pub name: String,
    /// Arguments as the model wrote them: a JSON object, if it made no mistake.
    pub arguments: String,
}

/// A message of the model, and its price.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatReply {
    /// Text of the message, which may be empty.
    pub text: String,
    /// Requested calls. Without any, the text is the result.
    pub requests: Vec<RequestedCall>,
    /// Consumption. `None` if the endpoint does not report it.
    pub usage: Option<TokenUsage>,
}

/// The consumption of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenUsage {
    /// Tokens of the conversation and of the tools.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Cost in the unit of the endpoint's prices, if it reports it.
    pub cost: Option<f64>,
}

/// A request without a reply. The text does not repeat the endpoint's response, which may contain anything.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    message: String,
    /// True if the same request may succeed later.
    pub(crate) is_temporary: bool,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ModelError {
    /// Creates an error with a text for the caller of the agent.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_temporary: false, source: None }
    }

    /// Marks an error that may be gone after a while.
    #[must_use]
    pub fn temporary(self) -> Self {
        Self { is_temporary: true, ..self }
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }
}
