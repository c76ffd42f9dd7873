//! Why a tool failed, for the model.

use std::error::Error;
use std::fmt;

use serde_json::json;
use toolyard_core::{AskError, Code, Json, Outcome, ToolError};

use crate::content::Content;
use crate::reply::Reply;

/// Why a tool failed: a result with `isError`, which the model reads and may act upon.
///
/// Every error that is `Send + Sync + 'static` becomes one by `?`, and so do texts, boxed errors that are
/// `Send + Sync`, and `anyhow`'s. The model reads what the error says of
/// itself; its sources go to the log. For the same reason as `anyhow::Error`, this type is no
/// [`Error`] itself.
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
    kind: Kind,
}

enum Kind {
    /// For the model.
    Told { content: Vec<Content>, source: Option<Box<dyn Error + Send + Sync>> },
    /// For the client.
    Protocol(ToolError),
}

impl ToolFailure {
    /// A failure that the model reads as `text`. Say what it could do about it.
    ///
    /// ```
    /// # use toolyard_sdk::ToolFailure;
    /// let failure = ToolFailure::new("there is no city of that name: use the English one");
    /// ```
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::with_content(vec![Content::text(text)])
    }

    /// A failure that takes more than a text to tell, such as a screenshot.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, ToolFailure};
    /// let screenshot = Content::image(b"\x89PNG...", "image/png");
    /// let failure = ToolFailure::with_content(vec![Content::text("the page has no such button"), screenshot]);
    /// ```
    #[must_use]
    pub const fn with_content(content: Vec<Content>) -> Self {
        Self { kind: Kind::Told { content, source: None } }
    }

    /// A JSON-RPC error in the place of a result. The model does not learn of it in most clients: use it for what
    /// only the client can mend.
    ///
    /// ```
    /// # use toolyard_sdk::ToolFailure;
    /// let failure = ToolFailure::protocol(-32602, "the cursor is none that was given out");
    /// ```
    #[must_use]
    pub fn protocol(code: i32, message: &str) -> Self {
        let error = Json::from_value(&json!({"code": code, "message": message}));
        let error = ToolError::new(Code::ExecutionFailed, message.to_owned()).from_peer(error);
        Self { kind: Kind::Protocol(error) }
    }

    /// What a tool answers.
    pub(crate) fn outcome(self) -> Result<Outcome, ToolError> {
        match self.kind {
            Kind::Protocol(error) => Err(error),
            Kind::Told { content, source } => {
                if let Some(source) = source {
                    tracing::debug!(error = &*source as &dyn Error, "a handler failed");
                }
                Ok(Outcome::Done(Reply::failed(content).output(false)))
            }
        }
    }

    /// What is answered where there are no results with `isError`.
    pub(crate) fn into_error(self) -> ToolError {
        let message = self.to_string();
        match self.kind {
            Kind::Protocol(error) => error,
            Kind::Told { source, .. } => {
                let error = ToolError::new(Code::ExecutionFailed, message);
                source.into_iter().fold(error, ToolError::caused_by)
            }
        }
    }

    /// The protocol's error, where it is to be one: what is told to the client on purpose, and what the client
    /// would have to be able to do.
    fn protocol_error(
        error: Box<dyn Error + Send + Sync>,
    ) -> Result<ToolError, Box<dyn Error + Send + Sync>> {
        let error = match error.downcast::<ToolError>() {
            Ok(error) => return Ok(*error),
            Err(error) => error,
        };
        let mut causes = std::iter::successors(Some(&*error as &dyn Error), |error| (*error).source());
        let asked = causes.find_map(|cause| cause.downcast_ref::<AskError>());
        match asked {
            Some(AskError::Unsupported(capability)) => Ok(AskError::Unsupported(capability.clone()).into()),
            _ => Err(error),
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        let kind = match Self::protocol_error(error.into()) {
            Ok(error) => Kind::Protocol(error),
            Err(error) => Kind::Told { content: vec![Content::text(error.to_string())], source: Some(error) },
        };
        Self { kind }
    }
}

/// What the model reads of it, as far as that is text.
impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Protocol(error) => error.fmt(f),
            Kind::Told { content, .. } => {
                let texts: Vec<_> = content.iter().filter_map(Content::as_text).collect();
                f.write_str(&texts.join("\n"))
            }
        }
    }
}

/// Does not show what the model reads: it may repeat what a user said.
impl fmt::Debug for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Protocol(error) => f.debug_tuple("ToolFailure").field(&error.code()).finish(),
            Kind::Told { content, .. } => f.debug_tuple("ToolFailure").field(content).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::Object;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot send the invoice")]
    struct Wrapped(#[from] AskError);

    #[track_caller]
    fn check(failure: impl Into<ToolFailure>, expect: &str) {
        let failure = failure.into();
        let shown = failure.to_string();
        let answer = match failure.outcome() {
            Ok(Outcome::Done(output)) => output.body.to_json().as_text().to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => match error.peer() {
                Some(peer) => peer.as_text().to_owned(),
                None => format!("{:?}", error.code()),
            },
        };
        assert_eq!(format!("{shown} => {answer}"), expect);
    }

    #[test]
    fn what_becomes_of_failures() {
        let told =
            |text| format!(r#"{text} => {{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
        check(ToolFailure::new("no such city"), &told("no such city"));
        check("no such city", &told("no such city"));
        check("no such city".to_owned(), &told("no such city"));
        check(std::io::Error::other("disk full"), &told("disk full"));
        check(AskError::TooLate, &told("the client did not answer in time"));
        check(Wrapped(AskError::Gone), &told("cannot send the invoice"));
        let missing = "The client lacks a capability that this needs => MissingCapability";
        check(AskError::Unsupported(Object::new()), missing);
        check(Wrapped(AskError::Unsupported(Object::new())), missing);
        check(ToolFailure::protocol(-32602, "bad"), r#"bad => {"code":-32602,"message":"bad"}"#);
        check(ToolError::new(Code::Denied, "not you"), "not you => Denied");
    }

    #[test]
    fn nothing_said_is_shown() {
        let shown = format!("{:?}", ToolFailure::new("secret"));
        assert!(shown.starts_with("ToolFailure([Content(") && !shown.contains("secret"), "{shown}");
    }
}
