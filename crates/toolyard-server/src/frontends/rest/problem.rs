//! Error responses: `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_core::store::StoreError;
use toolyard_core::{ErrorCode, ToolError};
use toolyard_functions::FunctionError;

/// The details of a failed request.
#[derive(Debug, Serialize)]
pub struct ProblemDetails {
    /// Problem type URI.
    r#type: Box<str>,
    title: &'static str,
    status: u16,
    detail: String,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Box<str>>,
    /// Error code: one of [`Code`], or one that only HTTP has.
    code: &'static str,
    /// True if the same request may succeed later.
    retryable: bool,
    /// The upstream's error, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Box<RawValue>>,
    /// Seconds until a retry.
    #[serde(skip)]
    retry_after: Option<u32>,
    /// True if the request may have taken effect anyway.
    #[serde(skip)]
    pub(super) may_have_run: bool,
}

impl ProblemDetails {
    /// Creates the problem of an error code.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let row = code.row();
        Self::of(row.http, row.wire, row.retryable, detail.into())
    }

    fn of(status: u16, code: &'static str, retryable: bool, detail: String) -> Self {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let title = reason.unwrap_or("Client Closed Request");
        Self {
            r#type: format!("urn:toolyard:problem:{code}").into(),
            title,
            status,
            detail,
            reason: None,
            code,
            retryable,
            peer: None,
            retry_after: None,
            may_have_run: false,
        }
    }

    /// The request has no valid key.
    pub fn unauthenticated(detail: &str) -> Self {
        Self::of(401, "unauthenticated", false, detail.to_owned())
    }

    /// The caller lacks permission.
    pub fn denied(detail: String) -> Self {
        Self::new(ErrorCode::Denied, detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::of(400, "bad_request", false, detail.into())
    }

    /// The named thing does not exist.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::of(404, "not_found", false, detail.into())
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "method not allowed: see /api/v1/openapi.json";
        Self::of(405, "method_not_allowed", false, detail.to_owned())
    }

    pub(super) fn conflict(code: &'static str, retryable: bool, detail: &str) -> Self {
        Self::of(409, code, retryable, detail.to_owned())
    }

    pub(super) fn unprocessable(code: &'static str, detail: &str) -> Self {
        Self::of(422, code, false, detail.to_owned())
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::of(413, "too_large", false, format!("the body is larger than {limit} bytes"))
    }

    pub(super) fn too_slow() -> Self {
        Self::of(408, "too_slow", true, "reading the body timed out".to_owned())
    }

    pub(super) fn timed_out(detail: &str) -> Self {
        Self { may_have_run: true, ..Self::of(408, ErrorCode::Timeout.row().wire, true, detail.to_owned()) }
    }

    /// The gateway is stopping and starts nothing new.
    pub(crate) fn stopping() -> Self {
        Self::new(ErrorCode::Unavailable, "the gateway is stopping")
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::of(
            415,
            "unsupported_media_type",
            false,
            "the content type must be `application/json`".to_owned(),
        )
    }

    /// Turns an overload from 429 into 503. For idempotency clients, 429 would mean that the caller has exceeded its
    /// rate, while the gateway has no capacity.
    pub(super) fn with_overload_as_503(self) -> Self {
        match self.code == ErrorCode::Overloaded.row().wire {
            true => Self { retry_after: self.retry_after, ..Self::of(503, self.code, true, self.detail) },
            false => self,
        }
    }

    /// An internal error.
    pub fn fault() -> Self {
        Self::of(500, "fault", false, "internal error of the gateway".to_owned())
    }
}

impl From<ToolError> for ProblemDetails {
    fn from(error: ToolError) -> Self {
        let code = error.code().row().wire;
        tracing::debug!(code, error = format_args!("{:#}", error.outline()), "a call failed");
        let peer = error.peer().and_then(|peer| RawValue::from_string(peer.as_text().to_owned()).ok());
        let retry_after = error.wait().map(|wait| {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            u32::try_from(seconds).unwrap_or(u32::MAX)
        });
        let may_have_run = error.may_have_run();
        let reason = error.peer().is_none().then(|| error.reason().into());
        Self { reason, peer, retry_after, may_have_run, ..Self::new(error.code(), error.message()) }
    }
}

impl From<FunctionError> for ProblemDetails {
    fn from(error: FunctionError) -> Self {
        let code = match &error {
            FunctionError::UnknownFunction(_)
            | FunctionError::UnknownVersion { .. }
            | FunctionError::UnknownFile { .. } => "function_not_found",
            FunctionError::InvalidId(_)
            | FunctionError::InvalidVersion(_)
            | FunctionError::InvalidProject(_) => "bad_function",
            FunctionError::NoTests | FunctionError::TestsFailed { .. } => "untested",
            FunctionError::KindMismatch { .. } => "fixed",
            FunctionError::Conflict(_) => "changed",
            FunctionError::TooMany { .. } => "too_many",
            _ => ErrorCode::Unavailable.row().wire,
        };
        let status = error.status();
        if status >= 500 {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot load a function");
        }
        Self::of(status, code, status >= 500, error.to_string())
    }
}

impl From<StoreError> for ProblemDetails {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the store failed");
        Self::new(ErrorCode::Unavailable, error.to_string())
    }
}

impl From<ProblemDetails> for Response {
    fn from(problem: ProblemDetails) -> Self {
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

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        self.into()
    }
}

/// Creates the response of a serialized problem.
pub(super) fn response(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotent_call_gets_429_for_a_rate_limit_only() {
        for (code, expected) in [
            (ErrorCode::Overloaded, 503),
            (ErrorCode::RateLimited, 429),
            (ErrorCode::QuotaExhausted, 402),
            (ErrorCode::Timeout, 504),
        ] {
            let response = Response::from(ProblemDetails::new(code, "no").with_overload_as_503());
            assert_eq!(response.status().as_u16(), expected, "{code:?}");
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), [503, 429].contains(&expected));
        }
    }
}
