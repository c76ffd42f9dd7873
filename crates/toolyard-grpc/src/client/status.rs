//! Failures of requests: what they mean for callers, for retries and for the health of the server.

use std::error::Error;

use tonic::{Code, Status};
use toolyard_backends::health::RequestEnd;
use toolyard_core::{CauseCode, ErrorCode, FailureCause, ToolError};
use toolyard_net::budget::BudgetExhausted;
use toolyard_net::client::RequestError;
use toolyard_net::failure::connection_cause;

use super::details::{StatusDetails, shortened};
use crate::descriptor::{DecodeError, TextLimit};

/// Maximum length of the server's message, in characters.
const MAX_MESSAGE_CHARS: usize = 512;

/// The beginning of tonic's message about a message that is too large. It has no other mark.
const TOO_LARGE: &str = "Error, decoded message length too large";

/// The beginning of the message about a response that is not one of gRPC.
const FOREIGN: &str = "no gRPC, but HTTP status ";

/// A failed request.
#[derive(Debug)]
pub(super) enum RequestFault {
    /// The status of the server.
    Refused(Status),
    /// The server cannot be reached; it has not seen the request.
    Unreachable(Status, FailureCause),
    /// The connection broke during the request.
    Broken(Status, FailureCause),
    /// No response in time.
    Timeout,
    /// The response exceeds this number of bytes.
    TooLarge(usize),
    /// The budget of bytes in flight is exhausted.
    BudgetExhausted(BudgetExhausted),
    /// The response is not what the descriptor says.
    Undecodable(String),
}

impl RequestFault {
    /// Tells the server's statuses from those that tonic makes of other errors.
    pub(super) fn of(status: Status, response_bytes: usize) -> Self {
        if status.code() == Code::OutOfRange && status.message().starts_with(TOO_LARGE) {
            return Self::TooLarge(response_bytes);
        }
        let Some(source) = status.source() else { return Self::Refused(status) };
        if let Some(exhausted) = cause::<BudgetExhausted>(source) {
            return Self::BudgetExhausted(*exhausted);
        }
        if let Some(error @ RequestError::Connect(_)) = cause::<RequestError>(source) {
            let cause = toolyard_backends::health::unreachable(error);
            return Self::Unreachable(status, cause);
        }
        if cause::<h2::Error>(source).is_some_and(|error| error.is_reset() && error.is_remote()) {
            // tonic has mapped the code of the reset.
            return Self::Refused(Status::new(status.code(), "the server reset the stream"));
        }
        let (code, reason) =
            connection_cause(source).unwrap_or((CauseCode::ConnectionBroken, "connection broken"));
        let message = format!("the connection to the server broke: {reason}");
        Self::Broken(status, FailureCause::new(code, message))
    }

    /// Returns the status code, by which retries are decided.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Refused(status) => status.code(),
            Self::Unreachable(..) | Self::Broken(..) => Code::Unavailable,
            Self::Timeout => Code::DeadlineExceeded,
            Self::TooLarge(_) | Self::BudgetExhausted(_) | Self::Undecodable(_) => Code::Internal,
        }
    }

    /// True if the same request may be sent again. The gateway's own limits would be exceeded again.
    pub(super) const fn is_of_server(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unreachable(..) | Self::Broken(..) | Self::Timeout)
    }

    /// True if the server failed as a whole. The breaker counts these. A method may fail by itself, with `INTERNAL` or
    /// `UNKNOWN`.
    pub(super) fn counts_as_failure(&self) -> bool {
        self.is_of_server() && matches!(self.code(), Code::Unavailable | Code::DeadlineExceeded)
    }

    /// Returns the delay that the server asks for.
    pub(super) fn retry_delay(&self) -> Option<std::time::Duration> {
        let Self::Refused(status) = self else { return None };
        StatusDetails::decode(status.details()).retry_delay
    }

    /// Returns what the failure says about the health of the server; `None` if it says nothing.
    pub(super) fn request_end(&self) -> Option<RequestEnd> {
        let failed = |code, message: String| Some(RequestEnd::Failed(FailureCause::new(code, message)));
        match self {
            Self::Refused(status) => {
                if let Some(http) = foreign_http_status(status) {
                    return failed(CauseCode::of_status(http), status.message().to_owned());
                }
                let text = || format!("gRPC status {}", code_name(status.code()));
                match status.code() {
                    Code::Unauthenticated => failed(CauseCode::Unauthorized, text()),
                    Code::PermissionDenied => failed(CauseCode::Forbidden, text()),
                    Code::Unavailable | Code::Unknown | Code::Internal | Code::DataLoss => {
                        failed(CauseCode::GrpcStatus, text())
                    }
                    _ => Some(RequestEnd::Answered),
                }
            }
            Self::Unreachable(_, cause) => Some(RequestEnd::NotConnected(cause.clone())),
            Self::Broken(_, cause) => Some(RequestEnd::Failed(cause.clone())),
            Self::Timeout => failed(CauseCode::Timeout, "the server did not answer in time".to_owned()),
            Self::Undecodable(_) => {
                failed(CauseCode::Protocol, "the response does not match the descriptor".to_owned())
            }
            Self::TooLarge(_) | Self::BudgetExhausted(_) => None,
        }
    }

    /// Returns the cause for operators of a failure to read the tools.
    pub(super) fn cause(&self) -> FailureCause {
        match (self.request_end(), self) {
            (Some(RequestEnd::Failed(cause) | RequestEnd::NotConnected(cause)), _) => cause,
            (_, Self::Refused(status)) => {
                FailureCause::new(CauseCode::GrpcStatus, refusal(status, &StatusDetails::default()))
            }
            (_, Self::TooLarge(bytes)) => {
                FailureCause::new(CauseCode::Description, format!("the answer is larger than {bytes} bytes"))
            }
            _ => FailureCause::new(CauseCode::Other, "there is no memory left for the answer"),
        }
    }

    /// Returns the error for the caller, with a prefix that gives the number of attempts.
    pub(super) fn into_error(self, attempts: &str) -> ToolError {
        let error = |code, text: &str| ToolError::new(code, format!("{attempts}{text}"));
        match self {
            Self::Refused(status) => refused(&status, attempts),
            Self::Unreachable(status, cause) => {
                let error = error(ErrorCode::Unavailable, "The tool's server cannot be reached");
                let error = error.because(reason_of(&cause)).caused_by(status);
                // With several attempts, an earlier one may have reached the server.
                if attempts.is_empty() { error.unsent() } else { error }
            }
            Self::Broken(status, cause) => {
                let error = error(ErrorCode::Unavailable, "The connection to the tool's server broke");
                error.because(reason_of(&cause)).caused_by(status)
            }
            Self::Timeout => error(ErrorCode::Timeout, "The tool's server did not answer in time"),
            Self::TooLarge(bytes) => {
                let text = format!("The response is larger than {bytes} bytes");
                error(ErrorCode::ExecutionFailed, &text)
                    .because(format!("response larger than {bytes} bytes"))
            }
            Self::BudgetExhausted(exhausted) => {
                let text = format!("There is no memory left for the response: {exhausted}");
                error(ErrorCode::Unavailable, &text).because("no memory left for the response")
            }
            Self::Undecodable(problem) => {
                error(ErrorCode::ExecutionFailed, "The response does not match the server's descriptor")
                    .caused_by(problem)
            }
        }
    }
}

impl From<DecodeError> for RequestFault {
    fn from(error: DecodeError) -> Self {
        match error.limit() {
            Some(TextLimit::Size(bytes)) => Self::TooLarge(bytes),
            Some(TextLimit::Budget(exhausted)) => Self::BudgetExhausted(exhausted),
            None => Self::Undecodable(error.to_string()),
        }
    }
}

/// Returns the message of the status of a response that is not one of gRPC.
pub(super) fn foreign_message(http: u16) -> String {
    format!("{FOREIGN}{http}")
}

/// Returns the status of HTTP of a response that is not one of gRPC. tonic keeps only the message of such a status.
pub(super) fn foreign_http_status(status: &Status) -> Option<u16> {
    status.message().strip_prefix(FOREIGN)?.parse().ok().filter(|http| (100..=999).contains(http))
}

/// Returns the part of a cause that callers may know: the reason after the colon.
fn reason_of(cause: &FailureCause) -> String {
    let message = &*cause.message;
    message.split_once(": ").map_or(message, |(_, reason)| reason).to_owned()
}

/// Returns the first cause of this type.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the error of a status of the server.
fn refused(status: &Status, attempts: &str) -> ToolError {
    let details = StatusDetails::decode(status.details());
    let error = ToolError::new(error_code(status.code()), format!("{attempts}{}", refusal(status, &details)));
    let error = error.because(format!("gRPC status {}", code_name(status.code())));
    match details.retry_delay {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

/// Returns a status in words.
fn refusal(status: &Status, details: &StatusDetails) -> String {
    let mut text = format!("gRPC status {}", code_name(status.code()));
    let message = status.message().trim();
    if !message.is_empty() {
        text.push_str(": ");
        text.push_str(&shortened(message, MAX_MESSAGE_CHARS));
    }
    if !details.parts.is_empty() {
        text.push_str(" (");
        text.push_str(&details.parts.join("; "));
        text.push(')');
    }
    text
}

/// Returns the code of the gateway for a status.
const fn error_code(code: Code) -> ErrorCode {
    match code {
        Code::InvalidArgument | Code::OutOfRange => ErrorCode::InvalidArguments,
        Code::DeadlineExceeded => ErrorCode::Timeout,
        Code::PermissionDenied | Code::Unauthenticated => ErrorCode::Denied,
        Code::ResourceExhausted => ErrorCode::RateLimited,
        Code::Unavailable => ErrorCode::Unavailable,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => ErrorCode::ExecutionFailed,
    }
}

/// The names of the codes, which manifests use too.
const CODE_NAMES: [(Code, &str); 17] = [
    (Code::Ok, "OK"),
    (Code::Cancelled, "CANCELLED"),
    (Code::Unknown, "UNKNOWN"),
    (Code::InvalidArgument, "INVALID_ARGUMENT"),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (Code::NotFound, "NOT_FOUND"),
    (Code::AlreadyExists, "ALREADY_EXISTS"),
    (Code::PermissionDenied, "PERMISSION_DENIED"),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (Code::FailedPrecondition, "FAILED_PRECONDITION"),
    (Code::Aborted, "ABORTED"),
    (Code::OutOfRange, "OUT_OF_RANGE"),
    (Code::Unimplemented, "UNIMPLEMENTED"),
    (Code::Internal, "INTERNAL"),
    (Code::Unavailable, "UNAVAILABLE"),
    (Code::DataLoss, "DATA_LOSS"),
    (Code::Unauthenticated, "UNAUTHENTICATED"),
];

fn code_name(code: Code) -> &'static str {
    CODE_NAMES.iter().find(|(known, _)| *known == code).map_or("UNKNOWN", |(_, name)| name)
}

/// Parses the name of a code, such as `UNAVAILABLE`.
#[must_use]
pub fn parse_code(name: &str) -> Option<Code> {
    CODE_NAMES.iter().find(|(_, known)| *known == name).map(|(code, _)| *code)
}
