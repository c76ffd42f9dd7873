//! Failures of requests to agents.

use std::io;

use toolyard_net::client::RequestError;

use crate::signature::SignatureError;
use crate::wire::card::CardError;
use crate::wire::rpc::{ResponseError, RpcError};
use crate::wire::task::InvalidEvent;

/// A request without a usable answer. A model reads the texts, which name no address.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The gateway cannot make requests.
    #[error("the gateway cannot make requests")]
    NoClient(#[source] io::Error),
    /// The URL cannot be requested.
    #[error("the URL of the agent cannot be requested")]
    BadUrl,
    /// There is no connection.
    #[error("cannot reach the agent: {reason}")]
    Unreachable {
        /// Reason without an address.
        reason: &'static str,
    },
    /// The agent takes too long.
    #[error("the agent did not answer in time")]
    Slow,
    /// The connection broke.
    #[error("the connection to the agent broke")]
    Broken,
    /// The answer is too large.
    #[error("the answer of the agent is larger than {0} bytes")]
    TooLarge(usize),
    /// The status is that of a failure.
    #[error("the agent answered with status {0}{hint}", hint = status_hint(*.0))]
    Status(u16),
    /// The agent has refused the request.
    #[error("the agent refused the request: {}", refusal(.0))]
    Refused(RpcError),
    /// The agent has refused the task, on the message bus.
    #[error("the agent refused the task: {} ({code})", beginning(.message))]
    RefusedTask {
        /// Code of the error.
        code: String,
        /// Message of the agent.
        message: String,
    },
    /// The message bus does not carry the task.
    #[error("the message bus did not carry the task: {0}")]
    Bus(String),
    /// The answer is no message of the protocol.
    #[error("the answer of the agent is not A2A: {0}")]
    Malformed(String),
    /// The card is unusable.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The signature of the card is missing or wrong.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The card names no address that is spoken here.
    #[error("the agent card names no JSON-RPC interface of A2A 1.0 or 0.3 with an http URL")]
    NoInterface,
}

impl AgentError {
    /// The gateway cannot make requests.
    pub(crate) fn no_client(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::NoClient(io::Error::other(error))
    }
}

impl From<RequestError> for AgentError {
    fn from(error: RequestError) -> Self {
        Self::Unreachable { reason: error.reason() }
    }
}

impl From<ResponseError> for AgentError {
    fn from(error: ResponseError) -> Self {
        match error {
            ResponseError::Refused(refused) => Self::Refused(refused),
            ResponseError::Malformed => Self::Malformed(error.to_string()),
        }
    }
}

impl From<InvalidEvent> for AgentError {
    fn from(error: InvalidEvent) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Maximum length of the message of a refusal, in characters.
const MAX_REFUSAL: usize = 500;

fn refusal(error: &RpcError) -> String {
    format!("{} ({})", beginning(&error.message), error.code)
}

fn beginning(message: &str) -> String {
    message.chars().take(MAX_REFUSAL).collect()
}

impl AgentError {
    /// Returns `true` for a failure that may pass: the request can be sent again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 408 | 425 | 429 | 500..),
            Self::Unreachable { .. } | Self::Slow | Self::Broken => true,
            _ => false,
        }
    }
}

const fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => ": its operator may require credentials",
        404 => ": the agent is not at its address",
        _ => "",
    }
}
