//! What the yard answers when a call does not come to an outcome of its own.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::json::{Json, Object};
use crate::secrets::Secrets;

/// Why a call failed. The one table that decides what each door says is [`Code::row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// No tool of that name exists for this caller.
    ToolNotFound,
    /// No prompt of that name exists for this caller.
    PromptNotFound,
    /// No resource of that URI exists for this caller.
    ResourceNotFound,
    /// No hosted function of that id exists, or not in that version.
    FunctionNotFound,
    /// The arguments do not fit the published input schema.
    InvalidArguments,
    /// No answer within the time allowed.
    Timeout,
    /// The backend answered with an error, or with something that is no answer.
    ExecutionFailed,
    /// The backend cannot be reached, or died during the call.
    Unavailable,
    /// The caller may not do this.
    Denied,
    /// A bound of the yard is reached; the call was not started.
    Overloaded,
    /// The caller calls more often than it may.
    RateLimited,
    /// The caller has used up what it may use.
    QuotaExhausted,
    /// The caller withdrew the call.
    Cancelled,
    /// The caller cannot be asked what the call depends on.
    MissingCapability,
}

/// One line of the table of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The code as written in JSON, on every door.
    pub wire: &'static str,
    /// The JSON-RPC error code on MCP: one of those that JSON-RPC itself defines. `error.data.code` tells
    /// the rest.
    pub json_rpc: i32,
    /// The HTTP status on REST. Never a 5xx for what a tool said.
    pub http: u16,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl Code {
    /// Every code, for tests and documentation.
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

    /// What this code means on each door.
    #[must_use]
    pub const fn row(self) -> Row {
        const fn row(wire: &'static str, json_rpc: i32, http: u16, retryable: bool) -> Row {
            Row { wire, json_rpc, http, retryable }
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

/// A failed call: a code, a message that the caller may read, and a cause that only the log sees.
#[derive(Debug)]
pub struct ToolError {
    code: Code,
    message: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
    peer: Option<Json>,
    required: Option<Object>,
    is_unsent: bool,
    /// In milliseconds. This is a part of every answer, and is kept small.
    retry_after: Option<NonZeroU32>,
}

impl ToolError {
    /// An error that the caller reads as `message`.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        let (source, peer, required, retry_after) = (None, None, None, None);
        Self { code, message: message.into(), source, peer, required, is_unsent: false, retry_after }
    }

    /// Nothing of this name exists for the caller.
    #[must_use]
    pub fn unknown_tool(name: &str) -> Self {
        Self::new(Code::ToolNotFound, format!("Unknown tool: {name}"))
    }

    /// The client would have to declare `capabilities`, as MCP writes them, for this call to be possible.
    #[must_use]
    pub fn missing_capability(capabilities: Object) -> Self {
        let error = Self::new(Code::MissingCapability, "The client lacks a capability that this needs");
        Self { required: Some(capabilities), ..error }
    }

    /// Adds what the log should see.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Says that nothing of the call has gone out to whoever runs it.
    #[must_use]
    pub const fn unsent(mut self) -> Self {
        self.is_unsent = true;
        self
    }

    /// Says when it is worth another try.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = NonZeroU32::new(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Adds the JSON-RPC error object of a peer, which goes on to an MCP client as it came.
    #[must_use]
    pub fn from_peer(mut self, error: Json) -> Self {
        self.peer = Some(error);
        self
    }

    /// The same without what nobody is to see, in the message and in what the log sees. The peer's own error is the
    /// caller's, and stays.
    #[must_use]
    pub fn hiding(mut self, secrets: &Secrets) -> Self {
        if let Cow::Owned(hidden) = secrets.hide(&self.message) {
            self.message = Cow::Owned(hidden);
        }
        let causes = causes(&self).collect::<Vec<_>>().join(": ");
        match secrets.brief(&causes) {
            Cow::Owned(hidden) => self.caused_by(hidden),
            Cow::Borrowed(_) => self,
        }
    }

    /// What the log and traces may have of it. What a peer has said is between it and the caller: it may repeat the
    /// arguments of the call.
    #[must_use]
    pub const fn outline(&self) -> Outline<'_> {
        Outline(self)
    }

    /// Why the call failed.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// What the caller may read.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The capabilities that the client lacks, with [`Code::MissingCapability`].
    #[must_use]
    pub const fn required_capabilities(&self) -> Option<&Object> {
        self.required.as_ref()
    }

    /// Whether the call may have done something all the same: it was sent, or nobody can say. Such a call has been paid for, and is
    /// not made again without its caller's leave.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        let is_after_sending = matches!(
            self.code,
            Code::Timeout
                | Code::ExecutionFailed
                | Code::Unavailable
                | Code::Cancelled
                | Code::MissingCapability
        );
        is_after_sending && !self.is_unsent
    }

    /// After what time it is worth another try, where that is known.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after.map(|millis| Duration::from_millis(millis.get().into()))
    }

    /// The peer's own JSON-RPC error object.
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
        self.source.as_deref().map(|source| source as _)
    }
}

/// A [`ToolError`] as those who run the yard may read it: see [`ToolError::outline`].
#[derive(Debug)]
pub struct Outline<'a>(&'a ToolError);

/// With `#`, the causes follow.
impl fmt::Display for Outline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.peer() {
            Some(_) => f.write_str("The server answered with an error of its own")?,
            None => self.0.fmt(f)?,
        }
        if f.alternate() {
            causes(self.0).try_for_each(|cause| write!(f, ": {cause}"))?;
        }
        Ok(())
    }
}

/// What caused an error, the nearest first.
fn causes(error: &dyn Error) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |&error| error.source()).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stays_with_the_caller_of_a_peer() {
        let peer = Json::parse(r#"{"code":1,"message":"hunter2"}"#).unwrap();
        let error = ToolError::new(Code::ExecutionFailed, "hunter2 is wrong").from_peer(peer.clone());
        let error = error.caused_by(ToolError::new(Code::Timeout, "late").caused_by("sent hunter2"));
        let error = error.hiding(&Secrets::new(["hunter2".to_owned()]));
        assert_eq!(error.message(), "[REDACTED] is wrong");
        assert_eq!(causes(&error).collect::<Vec<_>>(), ["late: sent [REDACTED]"]);
        assert_eq!(error.peer(), Some(&peer));
        assert_eq!(error.outline().to_string(), "The server answered with an error of its own");
    }

    #[test]
    fn an_error_without_a_secret_stays_as_it_is() {
        let error = ToolError::new(Code::Timeout, "late")
            .caused_by(ToolError::new(Code::Timeout, "a").caused_by("b"));
        let error = error.hiding(&Secrets::new(["hunter2".to_owned()]));
        assert_eq!(causes(&error).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(error.outline().to_string(), "late");
        assert_eq!(format!("{:#}", error.outline()), "late: a: b");
    }

    #[test]
    fn the_table_of_codes() {
        let line = |code: Code| {
            let Row { wire, json_rpc, http, retryable } = code.row();
            format!("{wire} {json_rpc} {http} {}", if retryable { "retryable" } else { "final" })
        };
        insta::assert_snapshot!(Code::ALL.map(line).join("\n"), @r"
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
