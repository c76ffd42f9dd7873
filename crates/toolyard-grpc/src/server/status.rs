//! The gateway's errors as statuses of gRPC.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolyard_core::{ErrorCode, ToolError};

/// The domain of the reasons in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "toolyard.dev";

/// Maximum length of a message in bytes. It is a header, and many clients refuse 8 KiB of headers. Percent-encoding may
/// make three bytes of each.
const MAX_MESSAGE_BYTES: usize = 1024;

/// Returns the status of a code.
const fn code_of(code: ErrorCode) -> Code {
    match code {
        ErrorCode::ToolNotFound
        | ErrorCode::PromptNotFound
        | ErrorCode::ResourceNotFound
        | ErrorCode::FunctionNotFound => Code::NotFound,
        ErrorCode::InvalidArguments => Code::InvalidArgument,
        ErrorCode::Timeout => Code::DeadlineExceeded,
        ErrorCode::ExecutionFailed => Code::Unknown,
        ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::Denied => Code::PermissionDenied,
        ErrorCode::Overloaded | ErrorCode::RateLimited | ErrorCode::QuotaExhausted => Code::ResourceExhausted,
        ErrorCode::Cancelled => Code::Cancelled,
        ErrorCode::MissingCapability => Code::FailedPrecondition,
    }
}

/// Returns the status of an error: its message, and as details the gateway's code, the reason, whether a retry may
/// succeed, and when.
#[must_use]
pub fn status_of(error: &ToolError) -> Status {
    let row = error.code().row();
    let mut facts = HashMap::from([("retryable".to_owned(), row.retryable.to_string())]);
    if error.peer().is_none() {
        facts.insert("reason".to_owned(), shortened(error.reason()).to_owned());
    }
    let mut details = ErrorDetails::with_error_info(row.wire.to_ascii_uppercase(), DOMAIN, facts);
    if let Some(wait) = error.wait() {
        details.set_retry_info(Some(wait));
    }
    Status::with_error_details(code_of(error.code()), shortened(error.message()), details)
}

/// Returns the status of a request without a valid key.
#[must_use]
pub fn unauthenticated(reason: &str) -> Status {
    let facts = HashMap::from([("retryable".to_owned(), false.to_string())]);
    let details = ErrorDetails::with_error_info("UNAUTHENTICATED", DOMAIN, facts);
    Status::with_error_details(Code::Unauthenticated, reason, details)
}

fn shortened(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_MESSAGE_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_error_has_a_status() {
        let mut lines = String::new();
        for code in ErrorCode::ALL {
            let status = status_of(&ToolError::new(code, "no"));
            let info = status.get_details_error_info().unwrap();
            assert_eq!(info.domain, DOMAIN);
            let retryable = &info.metadata["retryable"];
            writeln!(lines, "{:?} {} retryable {retryable}", status.code(), info.reason).unwrap();
        }
        insta::assert_snapshot!(lines, @r"
        NotFound TOOL_NOT_FOUND retryable false
        NotFound PROMPT_NOT_FOUND retryable false
        NotFound RESOURCE_NOT_FOUND retryable false
        NotFound FUNCTION_NOT_FOUND retryable false
        InvalidArgument INVALID_ARGUMENTS retryable false
        DeadlineExceeded TIMEOUT retryable true
        Unknown EXECUTION_FAILED retryable false
        Unavailable UNAVAILABLE retryable true
        PermissionDenied DENIED retryable false
        ResourceExhausted OVERLOADED retryable true
        ResourceExhausted RATE_LIMITED retryable true
        ResourceExhausted QUOTA_EXHAUSTED retryable false
        Cancelled CANCELLED retryable false
        FailedPrecondition MISSING_CAPABILITY retryable false
        ");
    }

    #[test]
    fn headers_of_a_status_are_small() {
        let error = ToolError::new(ErrorCode::Timeout, "é".repeat(100_000)).because("ü".repeat(100_000));
        let error = error.retry_after(Duration::from_millis(1500));
        let status = status_of(&error);
        assert_eq!(status.message(), "é".repeat(512));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_millis(1500)));
        let response = status.into_http::<()>();
        let bytes: usize =
            response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        assert!(bytes < 8 * 1024, "{bytes}");
    }
}
