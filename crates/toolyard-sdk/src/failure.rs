//! Failures of tools, written for the model.

use std::error::Error;
use std::fmt;

use serde_json::json;
use toolyard_core::{ErrorCode, InputRequestError, Json, Outcome, ToolError};

use crate::content::Content;
use crate::reply::ToolReply;

/// A failed call: a result with `isError`, which the model reads and can act on.
///
/// `?` converts every error that is `Send + Sync + 'static`, as well as strings, boxed errors that are `Send + Sync`,
/// and `anyhow` errors. The model reads the error's message; its sources go to the log. Like `anyhow::Error`, this type
/// does not implement [`Error`].
///
/// ```
/// use toolyard_sdk::ToolFailure;
///
/// fn first_line(path: String) -> Result<String, ToolFailure> {
///     let text = std::fs::read_to_string(path)?;
///     let line = text.lines().next().ok_or("the file is empty")?;
///     if line.len() > 1000 {
///         return Err(ToolFailure::new("the first line is too long to be shown"));
///     }
///     Ok(line.to_owned())
/// }
///
/// let failure = first_line("/does/not/exist".into()).unwrap_err();
/// assert_eq!(failure.to_string(), "No such file or directory (os error 2)");
/// ```
pub struct ToolFailure {
    kind: FailureKind,
}

enum FailureKind {
    /// A result with `isError`, for the model.
    ErrorResult { content: Vec<Content>, source: Option<Box<dyn Error + Send + Sync>> },
    /// A JSON-RPC error, for the client.
    Protocol(ToolError),
}

impl ToolFailure {
    /// A failure that the model reads as `text`. Suggest a remedy in the text.
    ///
    /// ```
    /// # use toolyard_sdk::ToolFailure;
    /// let failure = ToolFailure::new("there is no city of that name: use the English one");
    /// ```
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::with_content(vec![Content::text(text)])
    }

    /// A failure with more than a text, such as a screenshot.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, ToolFailure};
    /// let screenshot = Content::image(b"\x89PNG...", "image/png");
    /// let failure = ToolFailure::with_content(vec![Content::text("the page has no such button"), screenshot]);
    /// ```
    #[must_use]
    pub const fn with_content(content: Vec<Content>) -> Self {
        Self { kind: FailureKind::ErrorResult { content, source: None } }
    }

    /// A JSON-RPC error instead of a result. Most clients do not pass it to the model: use it for errors that only the
    /// client can fix.
    ///
    /// ```
    /// # use toolyard_sdk::ToolFailure;
    /// let failure = ToolFailure::protocol(-32602, "invalid cursor");
    /// ```
    #[must_use]
    pub fn protocol(code: i32, message: &str) -> Self {
        let error = Json::from_value(&json!({"code": code, "message": message}));
        let error = ToolError::new(ErrorCode::ExecutionFailed, message.to_owned()).from_peer(error);
        Self { kind: FailureKind::Protocol(error) }
    }

    /// The outcome of a tool call.
    pub(crate) fn outcome(self) -> Result<Outcome, ToolError> {
        match self.kind {
            FailureKind::Protocol(error) => Err(error),
            FailureKind::ErrorResult { content, source } => {
                if let Some(source) = source {
                    tracing::debug!(error = &*source as &dyn Error, "a tool failed");
                }
                Ok(Outcome::Done(ToolReply::failed(content).output(false)))
            }
        }
    }

    /// The error for calls whose results have no `isError`.
    pub(crate) fn into_error(self) -> ToolError {
        let message = self.to_string();
        match self.kind {
            FailureKind::Protocol(error) => error,
            FailureKind::ErrorResult { source, .. } => {
                let error = ToolError::new(ErrorCode::ExecutionFailed, message);
                source.into_iter().fold(error, ToolError::caused_by)
            }
        }
    }

    /// Extracts an error that is to become a protocol error: an explicit [`ToolError`], or a capability that the client
    /// lacks.
    fn protocol_error(
        error: Box<dyn Error + Send + Sync>,
    ) -> Result<ToolError, Box<dyn Error + Send + Sync>> {
        let error = match error.downcast::<ToolError>() {
            Ok(error) => return Ok(*error),
            Err(error) => error,
        };
        let mut causes = std::iter::successors(Some(&*error as &dyn Error), |error| (*error).source());
        let ask_error = causes.find_map(|cause| cause.downcast_ref::<InputRequestError>());
        match ask_error {
            Some(InputRequestError::Unsupported(capability)) => {
                Ok(InputRequestError::Unsupported(capability.clone()).into())
            }
            _ => Err(error),
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        let kind = match Self::protocol_error(error.into()) {
            Ok(error) => FailureKind::Protocol(error),
            Err(error) => FailureKind::ErrorResult {
                content: vec![Content::text(error.to_string())],
                source: Some(error),
            },
        };
        Self { kind }
    }
}

/// Prints the texts that the model reads.
impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FailureKind::Protocol(error) => error.fmt(f),
            FailureKind::ErrorResult { content, .. } => {
                let texts: Vec<_> = content.iter().filter_map(Content::as_text).collect();
                f.write_str(&texts.join("\n"))
            }
        }
    }
}

/// Leaves out the texts for the model: they may repeat user input.
impl fmt::Debug for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FailureKind::Protocol(error) => f.debug_tuple("ToolFailure").field(&error.code()).finish(),
            FailureKind::ErrorResult { content, .. } => f.debug_tuple("ToolFailure").field(content).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::Object;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot send the invoice")]
    struct Wrapped(#[from] InputRequestError);

    #[track_caller]
    fn check(failure: impl Into<ToolFailure>, expect: &str) {
        let failure = failure.into();
        let message = failure.to_string();
        let answer = match failure.outcome() {
            Ok(Outcome::Done(output)) => output.body.to_json().as_text().to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => match error.peer() {
                Some(peer) => peer.as_text().to_owned(),
                None => format!("{:?}", error.code()),
            },
        };
        assert_eq!(format!("{message} => {answer}"), expect);
    }

    #[test]
    fn failure_becomes_a_result_or_a_protocol_error() {
        let result =
            |text| format!(r#"{text} => {{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
        check(ToolFailure::new("no such city"), &result("no such city"));
        check("no such city", &result("no such city"));
        check("no such city".to_owned(), &result("no such city"));
        check(std::io::Error::other("disk full"), &result("disk full"));
        check(InputRequestError::TooLate, &result("the client did not answer in time"));
        check(Wrapped(InputRequestError::Gone), &result("cannot send the invoice"));
        let missing = "The client lacks a capability that this needs => MissingCapability";
        check(InputRequestError::Unsupported(Object::new()), missing);
        check(Wrapped(InputRequestError::Unsupported(Object::new())), missing);
        check(ToolFailure::protocol(-32602, "bad"), r#"bad => {"code":-32602,"message":"bad"}"#);
        check(ToolError::new(ErrorCode::Denied, "not you"), "not you => Denied");
    }

    #[test]
    fn debug_output_hides_the_text() {
        let debug = format!("{:?}", ToolFailure::new("secret"));
        assert!(debug.starts_with("ToolFailure([Content(") && !debug.contains("secret"), "{debug}");
    }
}
