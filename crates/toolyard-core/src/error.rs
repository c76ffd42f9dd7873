//! Errors of calls: codes, safe messages, hidden causes.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::json::{Json, Object};
use crate::nearest::did_you_mean;
use crate::secrets::{SecretRedactor, hide_sealed_ids};

/// The reason why a call failed. [`ErrorCode::row`] is the only table of what each frontend answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The caller has no tool of that name.
    ToolNotFound,
    /// The caller has no prompt of that name.
    PromptNotFound,
    /// The caller has no resource of that URI.
    ResourceNotFound,
    /// The hosted function, or this version of it, does not exist.
    FunctionNotFound,
    /// The arguments do not match the published input schema.
    InvalidArguments,
    /// No response within the time limit.
    Timeout,
    /// The backend answered with an error, or with an invalid response.
    ExecutionFailed,
    /// The backend cannot be reached, or ended during the call.
    Unavailable,
    /// The caller is not allowed to do this.
    Denied,
    /// A limit of the gateway is reached; the call was not started.
    Overloaded,
    /// The caller exceeds its rate.
    RateLimited,
    /// The caller's quota is used up.
    QuotaExhausted,
    /// The caller cancelled the call.
    Cancelled,
    /// The call needs a capability that the client lacks.
    MissingCapability,
}

/// One row of the table of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRow {
    /// The code in JSON, for every frontend.
    pub wire: &'static str,
    /// JSON-RPC error code for MCP, one of those that JSON-RPC defines; `error.data.code` has the details.
    pub json_rpc: i32,
    /// HTTP status for REST. Never a 5xx for an error of a tool.
    pub http: u16,
    /// `true` if the same call may succeed later.
    pub retryable: bool,
}

impl ErrorCode {
    /// All codes, for tests and documentation.
    pub const ALL: [Self; 14] = [
        Self::ToolNotFound,
        Self::PromptNotFound,
        Self::ResourceNotFound,
        Self::FunctionNotFound,
        Self::InvalidArguments,
        Self::Timeout,
        Self::ExecutionFailed,
        Self::Unavailable,
        Self::Denied,
        Self::Overloaded,
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::Cancelled,
        Self::MissingCapability,
    ];

    /// Returns the meaning of this code for each frontend.
    #[must_use]
    pub const fn row(self) -> ErrorRow {
        const fn row(wire: &'static str, json_rpc: i32, http: u16, retryable: bool) -> ErrorRow {
            ErrorRow { wire, json_rpc, http, retryable }
        }
        match self {
            Self::ToolNotFound => row("tool_not_found", -32602, 404, false),
            Self::PromptNotFound => row("prompt_not_found", -32602, 404, false),
            Self::ResourceNotFound => row("resource_not_found", -32602, 404, false),
            Self::FunctionNotFound => row("function_not_found", -32602, 404, false),
            Self::InvalidArguments => row("invalid_arguments", -32602, 400, false),
            Self::Timeout => row("timeout", -32603, 504, true),
            Self::ExecutionFailed => row("execution_failed", -32603, 502, false),
            Self::Unavailable => row("unavailable", -32603, 503, true),
            Self::Denied => row("denied", -32603, 403, false),
            Self::Overloaded => row("overloaded", -32603, 429, true),
            Self::RateLimited => row("rate_limited", -32603, 429, true),
            Self::QuotaExhausted => row("quota_exhausted", -32603, 402, false),
            Self::Cancelled => row("cancelled", -32603, 499, false),
            Self::MissingCapability => row("missing_capability", -32603, 400, false),
        }
    }
}

impl ErrorCode {
    /// Returns the reason of an error about which nothing else is known.
    const fn reason(self) -> &'static str {
        match self {
            Self::ToolNotFound => "no tool of this name",
            Self::PromptNotFound => "no prompt of this name",
            Self::ResourceNotFound => "no resource of this URI",
            Self::FunctionNotFound => "no function of this id and version",
            Self::InvalidArguments => "the arguments do not match the input schema",
            Self::Timeout => "timed out",
            Self::ExecutionFailed => "the call failed",
            Self::Unavailable => "temporarily unavailable",
            Self::Denied => "not allowed",
            Self::Overloaded => "a limit of the gateway is reached",
            Self::RateLimited => "more calls than the rate allows",
            Self::QuotaExhausted => "the quota is used up",
            Self::Cancelled => "cancelled by the caller",
            Self::MissingCapability => "the client lacks a capability",
        }
    }
}

/// Returns the reason of a timeout after this time, as in `timed out after 30 s`.
#[must_use]
pub fn timed_out_after(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("timed out after {} s", time.as_secs()),
        _ => format!("timed out after {} ms", time.as_millis()),
    }
}

/// Maximum length of an unknown name in a message, in characters. A client chooses the name.
const MAX_NAME_CHARS: usize = 200;

/// Returns a name for a message, shortened if it is long.
fn shown_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// A failed call: a code, a message and a reason for the caller, and a cause for the log.
#[derive(Debug)]
pub struct ToolError {
    code: ErrorCode,
    message: Cow<'static, str>,
    explanation: Option<Box<Explanation>>,
    peer: Option<Json>,
    required: Option<Object>,
    is_unsent: bool,
    /// In milliseconds; part of every result, and therefore small.
    retry_after: Option<NonZeroU32>,
}

/// The cause of an error, and the part of it that the caller may know.
#[derive(Debug, Default)]
struct Explanation {
    source: Option<Box<dyn Error + Send + Sync>>,
    reason: Option<Cow<'static, str>>,
}

impl ToolError {
    /// Creates an error with a message for the caller.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let (explanation, peer, required, retry_after) = (None, None, None, None);
        Self { code, message: message.into(), explanation, peer, required, is_unsent: false, retry_after }
    }

    /// Returns the error for a name that the caller does not have.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::new(ErrorCode::ToolNotFound, format!("Unknown tool: {}", shown_name(name)))
    }

    /// Returns the error for the name of a prompt that the caller does not have.
    #[must_use]
    pub fn unknown_prompt(name: &str) -> Self {
        Self::new(ErrorCode::PromptNotFound, format!("Unknown prompt: {}", shown_name(name)))
    }

    /// Returns the error for a name that the caller does not have, with the names that it may have meant.
    #[must_use]
    pub fn unknown_tool_but(name: &str, near: &[impl AsRef<str>]) -> Self {
        let suggestion = did_you_mean(near);
        let stop = if suggestion.is_empty() { "" } else { "." };
        Self::new(ErrorCode::ToolNotFound, format!("Unknown tool: {}{stop}{suggestion}", shown_name(name)))
    }

    /// Turns the error for something unknown into that for what a server may have which is still starting.
    #[must_use]
    pub fn until_started(self) -> Self {
        let text = format!("{}. Servers that are still starting may have it: try again later", self.message);
        Self::new(ErrorCode::Unavailable, text).unsent()
    }

    /// Returns the error for a call that needs `capabilities`, as MCP writes them.
    #[must_use]
    pub fn missing_capability(capabilities: Object) -> Self {
        let error = Self::new(ErrorCode::MissingCapability, "The client lacks a capability that this needs");
        Self { required: Some(capabilities), ..error }
    }

    /// Replaces the message for the caller.
    #[must_use]
    pub fn with_message(self, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Adds a cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.explanation.get_or_insert_default().source = Some(source.into());
        self
    }

    /// Adds the reason, for the caller. It names no address, host, path or secret of the gateway's side.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.explanation.get_or_insert_default().reason = Some(reason.into());
        self
    }

    /// States that nothing of the call was sent to its backend.
    #[must_use]
    pub const fn unsent(mut self) -> Self {
        self.is_unsent = true;
        self
    }

    /// Sets the time after which a retry makes sense.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = NonZeroU32::new(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Adds the JSON-RPC error object of a peer, which is passed to an MCP client unchanged.
    #[must_use]
    pub fn from_peer(mut self, error: Json) -> Self {
        self.peer = Some(error);
        self
    }

    /// Redacts secrets in the message and in the causes. The peer's own error belongs to the caller, and is kept.
    #[must_use]
    pub fn hiding(mut self, secrets: &SecretRedactor) -> Self {
        if let Cow::Owned(hidden) = secrets.hide(&self.message) {
            self.message = Cow::Owned(hidden);
        }
        if let Some(Cow::Owned(hidden)) = self.known_reason().map(|reason| secrets.hide(reason)) {
            self = self.because(hidden);
        }
        let causes = causes(&self).collect::<Vec<_>>().join(": ");
        match secrets.brief(&causes) {
            Cow::Owned(hidden) => self.caused_by(hidden),
            Cow::Borrowed(_) => self,
        }
    }

    /// Returns the error for logs and traces, without the peer's own error, which may repeat the arguments of the call.
    #[must_use]
    pub const fn outline(&self) -> ErrorOutline<'_> {
        ErrorOutline(self)
    }

    /// Returns the code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the message for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the reason for the caller: why the call failed, as far as it is known. Unlike the message, it does not
    /// say what failed.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.known_reason().unwrap_or_else(|| self.code.reason())
    }

    /// Adds the time limit of the call as the reason, if this is a timeout without a known one.
    #[must_use]
    pub(crate) fn timed_out_after(self, limit: Duration) -> Self {
        match (self.code, self.known_reason()) {
            (ErrorCode::Timeout, None) => self.because(timed_out_after(limit)),
            _ => self,
        }
    }

    fn known_reason(&self) -> Option<&str> {
        self.explanation.as_ref()?.reason.as_deref()
    }

    /// Returns the missing capabilities, for [`ErrorCode::MissingCapability`].
    #[must_use]
    pub const fn required_capabilities(&self) -> Option<&Object> {
        self.required.as_ref()
    }

    /// Returns `true` if the call may have run: it was sent, or its state is unknown. Such a call is paid for, and is
    /// not repeated without permission.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        let is_after_sending = matches!(
            self.code,
            ErrorCode::Timeout
                | ErrorCode::ExecutionFailed
                | ErrorCode::Unavailable
                | ErrorCode::Cancelled
                | ErrorCode::MissingCapability
        );
        is_after_sending && !self.is_unsent
    }

    /// Returns the time after which a retry makes sense, if it is known.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after.map(|millis| Duration::from_millis(millis.get().into()))
    }

    /// Returns the peer's own JSON-RPC error object.
    #[must_use]
    pub const fn peer(&self) -> Option<&Json> {
        self.peer.as_ref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.explanation.as_ref()?.source.as_deref().map(|source| source as _)
    }
}

/// A [`ToolError`] for operators, without sealed ids: see [`ToolError::outline`].
#[derive(Debug)]
pub struct ErrorOutline<'a>(&'a ToolError);

/// The alternate form adds the causes.
impl fmt::Display for ErrorOutline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.peer() {
            Some(_) => f.write_str("The server answered with an error of its own")?,
            None => f.write_str(&hide_sealed_ids(&self.0.message))?,
        }
        if f.alternate() {
            causes(self.0).try_for_each(|cause| write!(f, ": {}", hide_sealed_ids(&cause)))?;
        }
        Ok(())
    }
}

/// Returns the causes of an error, nearest first.
fn causes(error: &dyn Error) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |&error| error.source()).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stays_with_the_caller_of_a_peer() {
        let peer = Json::parse(r#"{"code":1,"message":"hunter2"}"#).unwrap();
        let error = ToolError::new(ErrorCode::ExecutionFailed, "hunter2 is wrong").from_peer(peer.clone());
        let error = error.caused_by(ToolError::new(ErrorCode::Timeout, "late").caused_by("sent hunter2"));
        let error = error.hiding(&SecretRedactor::new(["hunter2".to_owned()]));
        assert_eq!(error.message(), "[REDACTED] is wrong");
        assert_eq!(causes(&error).collect::<Vec<_>>(), ["late: sent [REDACTED]"]);
        assert_eq!(error.peer(), Some(&peer));
        assert_eq!(error.outline().to_string(), "The server answered with an error of its own");
    }

    #[test]
    fn long_name_is_shortened() {
        let check = |error: ToolError, expected: &str| assert_eq!(error.message(), expected);
        let (long, cut) = ("é".repeat(100_000), format!("{}…", "é".repeat(200)));
        check(ToolError::unknown_tool("a"), "Unknown tool: a");
        check(ToolError::unknown_tool(&long), &format!("Unknown tool: {cut}"));
        check(ToolError::unknown_prompt(&long), &format!("Unknown prompt: {cut}"));
        let near = format!("Unknown tool: {cut}. Did you mean `a`?");
        check(ToolError::unknown_tool_but(&long, &["a"]), &near);
    }

    #[test]
    fn outline_has_no_sealed_ids() {
        let error = ToolError::unknown_tool("tyid_AAAA").caused_by("no tyid_BBBB");
        assert_eq!(error.message(), "Unknown tool: tyid_AAAA");
        assert_eq!(format!("{:#}", error.outline()), "Unknown tool: [REDACTED]: no [REDACTED]");
    }

    #[test]
    fn error_without_a_secret_is_unchanged() {
        let error = ToolError::new(ErrorCode::Timeout, "late")
            .caused_by(ToolError::new(ErrorCode::Timeout, "a").caused_by("b"));
        let error = error.hiding(&SecretRedactor::new(["hunter2".to_owned()]));
        assert_eq!(causes(&error).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(error.outline().to_string(), "late");
        assert_eq!(format!("{:#}", error.outline()), "late: a: b");
    }

    #[test]
    fn reason_of_a_timeout() {
        let reasons =
            [1, 200, 1000, 1500, 30_000].map(|millis| timed_out_after(Duration::from_millis(millis)));
        let times = reasons.map(|reason| reason.strip_prefix("timed out after ").unwrap().to_owned());
        assert_eq!(times, ["1 ms", "200 ms", "1 s", "1500 ms", "30 s"]);
    }

    #[test]
    fn reason_is_known_or_that_of_the_code() {
        let secrets = SecretRedactor::new(["hunter2".to_owned()]);
        let error = ToolError::new(ErrorCode::Unavailable, "The server cannot be reached");
        assert_eq!(error.reason(), "temporarily unavailable");
        let error = error.caused_by("tcp 10.0.0.1").because("connection refused");
        assert_eq!(error.reason(), "connection refused");
        assert_eq!(error.because("hunter2 refused").hiding(&secrets).reason(), "[REDACTED] refused");
    }

    #[test]
    fn the_table_of_codes() {
        let line = |code: ErrorCode| {
            let ErrorRow { wire, json_rpc, http, retryable } = code.row();
            format!("{wire} {json_rpc} {http} {}", if retryable { "retryable" } else { "final" })
        };
        insta::assert_snapshot!(ErrorCode::ALL.map(line).join("\n"), @r"
        tool_not_found -32602 404 final
        prompt_not_found -32602 404 final
        resource_not_found -32602 404 final
        function_not_found -32602 404 final
        invalid_arguments -32602 400 final
        timeout -32603 504 retryable
        execution_failed -32603 502 final
        unavailable -32603 503 retryable
        denied -32603 403 final
        overloaded -32603 429 retryable
        rate_limited -32603 429 retryable
        quota_exhausted -32603 402 final
        cancelled -32603 499 final
        missing_capability -32603 400 final
        ");
    }
}
