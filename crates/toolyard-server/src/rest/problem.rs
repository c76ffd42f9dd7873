//! What is said where something is wrong: `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_core::store::StoreError;
use toolyard_core::{Code, ToolError};
use toolyard_functions::FunctionError;

/// Why a request is not answered as its sender wants.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// What kind of problem it is, for programs that go by URIs.
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    /// What kind of problem it is: one of the codes of [`Code`], or of those that only HTTP has.
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// What a server said, as it said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Box<RawValue>>,
    /// After how many seconds it is worth another try.
    #[serde(skip)]
    retry_after: Option<u64>,
    /// Whether what was asked for may have been done all the same.
    #[serde(skip)]
    pub(super) may_have_run: bool,
}

impl Problem {
    /// A problem of one of the codes.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let row = code.row();
        Self::of(row.http, row.wire, row.retryable, detail.into())
    }

    fn of(status: u16, code: &'static str, retryable: bool, detail: String) -> Self {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let title = reason.unwrap_or("Client Closed Request");
        Self {
            r#type: format!("urn:toolyard:problem:{code}"),
            title,
            status,
            detail,
            code,
            retryable,
            peer: None,
            retry_after: None,
            may_have_run: false,
        }
    }

    /// Who sends this has not said who it is.
    pub fn unauthenticated(detail: &str) -> Self {
        Self::of(401, "unauthenticated", false, detail.to_owned())
    }

    /// Who sends this may not.
    pub fn denied(detail: String) -> Self {
        Self::new(Code::Denied, detail)
    }

    pub(super) fn bad_request(detail: String) -> Self {
        Self::of(400, "bad_request", false, detail)
    }

    /// There is nothing of this name.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::of(404, "not_found", false, detail.into())
    }

    pub(super) fn method_not_allowed() -> Self {
        let detail = "This path has no such method: see /api/v1/openapi.json";
        Self::of(405, "method_not_allowed", false, detail.to_owned())
    }

    pub(super) fn conflict(code: &'static str, retryable: bool, detail: &str) -> Self {
        Self::of(409, code, retryable, detail.to_owned())
    }

    pub(super) fn unprocessable(code: &'static str, detail: &str) -> Self {
        Self::of(422, code, false, detail.to_owned())
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::of(413, "too_large", false, format!("The body is larger than {limit} bytes"))
    }

    pub(super) fn too_slow() -> Self {
        Self::of(408, "too_slow", true, "The body took too long".to_owned())
    }

    pub(super) fn timed_out(detail: &str) -> Self {
        Self { may_have_run: true, ..Self::of(408, Code::Timeout.row().wire, true, detail.to_owned()) }
    }

    /// Nothing is begun any more.
    pub(super) fn stopping() -> Self {
        Self::new(Code::Unavailable, "The gateway is stopping")
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::of(415, "unsupported_media_type", false, "The body is to be application/json".to_owned())
    }

    /// It is our own fault.
    pub fn fault() -> Self {
        Self::of(500, "fault", false, "The request failed because of a fault in the server".to_owned())
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        let code = error.code().row().wire;
        tracing::debug!(code, error = format_args!("{:#}", error.outline()), "a call failed");
        let peer = error.peer().and_then(|peer| RawValue::from_string(peer.as_text().to_owned()).ok());
        let retry_after = error.wait().map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        let may_have_run = error.may_have_run();
        Self { peer, retry_after, may_have_run, ..Self::new(error.code(), error.message()) }
    }
}

impl From<FunctionError> for Problem {
    fn from(error: FunctionError) -> Self {
        let code = match &error {
            FunctionError::UnknownFunction(_) | FunctionError::UnknownVersion { .. } => "function_not_found",
            FunctionError::BadId(_) | FunctionError::BadVersion(_) | FunctionError::BadProject(_) => {
                "bad_function"
            }
            FunctionError::NoTests | FunctionError::TestsFailed { .. } => "untested",
            FunctionError::Fixed { .. } => "fixed",
            FunctionError::Changed(_) => "changed",
            FunctionError::TooMany { .. } => "too_many",
            _ => Code::Unavailable.row().wire,
        };
        let status = error.status();
        if status >= 500 {
            tracing::warn!(error = &error as &dyn std::error::Error, "a function cannot be had");
        }
        Self::of(status, code, status >= 500, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the store is in trouble");
        Self::new(Code::Unavailable, error.to_string())
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = response(status, serde_json::to_vec(&problem).unwrap_or_default());
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                // RFC 6750, section 3.
                headers
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolyard\""));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(problem.retry_after.unwrap_or(1)));
            }
            _ => {}
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.into()
    }
}

/// A problem that was written before.
pub(super) fn response(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
}
