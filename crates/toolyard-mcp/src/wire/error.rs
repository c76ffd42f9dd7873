//! JSON-RPC errors.

use std::borrow::Cow;

use serde_json::json;
use toolyard_core::{Json, Object, ToolError};

use super::{Era, Revision};

/// A text that is no JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON that is no JSON-RPC message.
pub const INVALID_REQUEST: i32 = -32600;
/// A method that nobody here knows.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters that do not fit the method.
pub const INVALID_PARAMS: i32 = -32602;
/// Something else went wrong on the side of who answers.
pub const INTERNAL_ERROR: i32 = -32603;

/// A resource that does not exist (until 2025-11-25; since then it is [`INVALID_PARAMS`]).
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The user has to visit a URL first (2025-11-25; since then a server asks for that in its result).
pub const URL_REQUIRED: i32 = -32042;
/// HTTP headers that say something else than the body (2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client lacks a capability that the request needs (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// A revision that is not spoken here (2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// Whether only a peer of the modern era answers with this code
/// (2026-07-28, basic/transports, backward compatibility).
#[must_use]
pub fn is_modern(code: i64) -> bool {
    [HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION].map(i64::from).contains(&code)
}

/// The error of a response. Where a peer sent it, it stays as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code. Zero where a peer gave none that fits.
    pub code: i32,
    body: Json,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self::build(code, &message.into(), None)
    }

    /// An error with `data`.
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

    /// A peer's error.
    #[must_use]
    pub fn from_peer(body: Json) -> Self {
        let code = body.to_object().ok().and_then(|error| error.get("code")?.as_text().parse().ok());
        Self { code: code.unwrap_or_default(), body }
    }

    /// Nobody here knows the method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// The parameters do not fit.
    #[must_use]
    pub fn invalid_params(problem: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_PARAMS, problem)
    }

    /// The headers do not fit the body.
    #[must_use]
    pub fn header_mismatch(problem: &str) -> Self {
        Self::new(HEADER_MISMATCH, format!("Header mismatch: {problem}"))
    }

    /// The revision is not spoken here; or not in requests that stand for themselves, where it is one of those that open a
    /// session.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        let in_session = Revision::parse(requested).is_some();
        let spoken =
            Revision::ALL.iter().rev().filter(|revision| !in_session || revision.era() == Era::Modern);
        let supported: Vec<_> = spoken.map(|revision| revision.as_str()).collect();
        let data = Json::from_value(&json!({"supported": supported, "requested": requested}));
        Self::with_data(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    }

    /// The error object.
    #[must_use]
    pub const fn body(&self) -> &Json {
        &self.body
    }
}

/// The yard's refusal, or the peer's own error as it came.
impl From<&ToolError> for RpcError {
    fn from(error: &ToolError) -> Self {
        if let Some(peer) = error.peer() {
            return Self::from_peer(peer.clone());
        }
        let row = error.code().row();
        let data = json!({"code": row.wire, "reason": error.message(), "retryable": row.retryable});
        Self::with_data(row.json_rpc, error.message(), Json::from_value(&data))
    }
}
