//! Port for executing code; `runtime` implements it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::{Json, SecretRedactor};

use crate::code::{CallContext, FunctionCode};

/// Executes code.
pub trait CodeRunner: Send + Sync {
    /// Calls the handler of `code` once with `event`, any JSON value. Dropping the future cancels the call.
    ///
    /// # Errors
    /// If the handler gives no answer, or one that is not JSON.
    fn run<'a>(
        &'a self,
        code: &'a Arc<FunctionCode>,
        event: &'a Json,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<RunOutput, RunError>>;

    /// Loads code without calling its handler, to check whether it can be loaded. The default implementation accepts
    /// all code.
    ///
    /// # Errors
    /// [`RunError::NotLoaded`] in particular.
    fn load<'a>(&'a self, code: &'a Arc<FunctionCode>) -> BoxFuture<'a, Result<(), RunError>> {
        let _unknown = code;
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutput {
    /// Return value of the handler.
    pub answer: Json,
    /// Printed output, up to the limit.
    pub log: String,
}

/// Failure of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The call exceeded its time limit and was cancelled.
    #[error("the function exceeded its time limit")]
    TimedOut,
    /// The worker exceeded its memory limit and was killed.
    #[error("the function exceeded its memory limit")]
    OutOfMemory,
    /// The answer exceeds its maximum length.
    #[error("the answer of the function exceeds {limit} bytes")]
    OutputTooLarge {
        /// Maximum length, in bytes.
        limit: usize,
    },
    /// The maximum number of calls is running and waiting. The handler was not called.
    #[error("the maximum number of calls of the function is running")]
    Busy,
    /// The worker process ended during the call.
    #[error("the process of the function ended: {0}")]
    Died(String),
    /// The handler has thrown an exception.
    #[error("{kind}: {message}")]
    Thrown {
        /// Type of the exception, such as `ValueError`.
        kind: String,
        /// Message of the exception.
        message: String,
        /// Stack trace in the format of the language.
        details: String,
        /// Output printed before, up to the limit.
        log: String,
    },
    /// The code cannot be loaded: it has a syntax error or no handler, or throws while it is loaded.
    #[error("the function cannot be loaded: {message}")]
    NotLoaded {
        /// Reason, with the line if known.
        message: String,
    },
    /// No worker is available. The handler was not called.
    #[error("functions cannot run now: {0}")]
    Unavailable(String),
}

impl RunError {
    /// Redacts secrets: messages of a program may repeat its input.
    pub(crate) fn redacted(self, secrets: &SecretRedactor) -> Self {
        let hide = |text: String| secrets.hide(&text).into_owned();
        match self {
            Self::Died(why) => Self::Died(hide(why)),
            Self::Thrown { kind, message, details, log } => Self::Thrown {
                kind: hide(kind),
                message: hide(message),
                details: hide(details),
                log: hide(log),
            },
            Self::NotLoaded { message } => Self::NotLoaded { message: hide(message) },
            Self::Unavailable(why) => Self::Unavailable(hide(why)),
            Self::TimedOut | Self::OutOfMemory | Self::OutputTooLarge { .. } | Self::Busy => self,
        }
    }

    /// Returns the output printed before the failure, up to the limit.
    #[must_use]
    pub fn log(&self) -> &str {
        match self {
            Self::Thrown { log, .. } => log,
            _ => "",
        }
    }

    /// True if the handler was called, or may have been.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unavailable(_) | Self::NotLoaded { .. })
    }
}
