//! JSON-RPC errors.

use std::borrow::Cow;

use serde_json::json;
use toolyard_core::{Json, Object, ToolError};

use super::{ProtocolEra, ProtocolRevision};

/// The text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a JSON-RPC message.
pub const INVALID_REQUEST: i32 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i32 = -32602;
/// An internal error of the receiver.
pub const INTERNAL_ERROR: i32 = -32603;

/// The resource does not exist (until 2025-11-25; replaced by [`INVALID_PARAMS`]).
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The user has to open a URL first (2025-11-25; replaced by elicitation requests in the result).
pub const URL_REQUIRED: i32 = -32042;
/// HTTP headers contradict the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client lacks a required capability (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// The revision is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// True if only a peer of the modern era answers with this code (2026-07-28, basic/transports, backward compatibility).
#[must_use]
pub fn is_modern(code: i64) -> bool {
    [HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION].map(i64::from).contains(&code)
}

/// The error of a response. The error of a peer is kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code; zero if the peer sent none, or one out of range.
    pub code: i32,
    body: Json,
}

impl RpcError {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self::build(code, &message.into(), None)
    }

    /// Creates an error with `data`.
    #[must_use]
    pub fn with_data(code: i32, message: &str, data: Json) -> Self {
        Self::build(code, message, Some(data))
    }

    fn build(code: i32, message: &str, data: Option<Json>) -> Self {
        let body =
            Object::new().with("code", Json::integer(code.into())).with("message", Json::string(message));
        let body = data.into_iter().fold(body, |body, data| body.with("data", data));
        Self { code, body: body.to_json() }
    }

    /// Wraps the error object of a peer.
    #[must_use]
    pub fn from_peer(body: Json) -> Self {
        let code = body.to_object().ok().and_then(|error| error.get("code")?.as_text().parse().ok());
        Self { code: code.unwrap_or_default(), body }
    }

    /// Creates the error for an unknown method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// Creates the error for invalid parameters.
    #[must_use]
    pub fn invalid_params(problem: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_PARAMS, problem)
    }

    /// Creates the error for headers that contradict the body.
    #[must_use]
    pub fn header_mismatch(problem: &str) -> Self {
        Self::new(HEADER_MISMATCH, format!("Header mismatch: {problem}"))
    }

    /// Creates the error for an unsupported revision. It lists all revisions, or only the modern ones if the client
    /// requested a legacy revision without opening a session.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        let is_known = ProtocolRevision::parse(requested).is_some();
        let offered = ProtocolRevision::ALL
            .iter()
            .rev()
            .filter(|revision| !is_known || revision.era() == ProtocolEra::Modern);
        let supported: Vec<_> = offered.map(|revision| revision.as_str()).collect();
        let data = Json::from_value(&json!({"supported": supported, "requested": requested}));
        Self::with_data(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    }

    /// Returns the error object.
    #[must_use]
    pub const fn body(&self) -> &Json {
        &self.body
    }
}

/// Returns the peer's own error if there is one, else an error with the gateway's code.
impl From<&ToolError> for RpcError {
    fn from(error: &ToolError) -> Self {
        if let Some(peer) = error.peer() {
            return Self::from_peer(peer.clone());
        }
        let row = error.code().row();
        let data = json!({"code": row.wire, "reason": error.reason(), "retryable": row.retryable});
        Self::with_data(row.json_rpc, error.message(), Json::from_value(&data))
    }
}
