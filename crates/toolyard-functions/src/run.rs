//! The port of whatever has code answer events: `runtime` in a real gateway.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::{Json, Secrets};

use crate::code::{Code, Context};

/// Has code answer events.
pub trait Run: Send + Sync {
    /// Calls the handler of `code` once. `event` is what it is given, an object or a string for instance. Dropping the
    /// future ends the call, wherever it is.
    ///
    /// # Errors
    /// When there is no answer, or none that is JSON.
    fn run<'a>(
        &'a self,
        code: &'a Arc<Code>,
        event: &'a Json,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Ran, RunError>>;

    /// Loads code without calling its handler, to find out whether it can be loaded. Where nothing is known about that
    /// without a call, it can.
    ///
    /// # Errors
    /// [`RunError::NotLoaded`] above all.
    fn load<'a>(&'a self, code: &'a Arc<Code>) -> BoxFuture<'a, Result<(), RunError>> {
        let _unknown = code;
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What the handler returned.
    pub answer: Json,
    /// What it has printed, as far as that is kept.
    pub log: String,
}

/// Why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It was not done when its time was over, and was ended.
    #[error("the function took longer than it may")]
    TimedOut,
    /// It needed more memory than it may have, and was ended.
    #[error("the function needed more memory than it may have")]
    OutOfMemory,
    /// Its answer is longer than it may be.
    #[error("the answer of the function is longer than {limit} bytes")]
    OutputTooLarge {
        /// Bytes that it may have.
        limit: usize,
    },
    /// As many calls of the version run as may, and as many wait as may. The handler was not called.
    #[error("as many calls of the function run as may run")]
    Busy,
    /// Its process has ended in the middle of the call.
    #[error("the process of the function has died: {0}")]
    Died(String),
    /// The handler has thrown.
    #[error("{kind}: {message}")]
    Thrown {
        /// The kind of the exception, such as `ValueError`.
        kind: String,
        /// What it says.
        message: String,
        /// Where it was thrown, as the language tells.
        details: String,
        /// What the handler had printed, as far as that is kept.
        log: String,
    },
    /// The code cannot be loaded: it is not of its language, has no handler, or throws while it is read.
    #[error("the function cannot be loaded: {message}")]
    NotLoaded {
        /// Why not, with the line where that is known.
        message: String,
    },
    /// Nobody is there to run it. The handler was not called.
    #[error("functions cannot run now: {0}")]
    Unavailable(String),
}

impl RunError {
    /// The same without these secrets: what a program says may repeat what it was given.
    pub(crate) fn hiding(self, secrets: &Secrets) -> Self {
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

    /// What the handler had printed before, as far as that is kept.
    #[must_use]
    pub fn log(&self) -> &str {
        match self {
            Self::Thrown { log, .. } => log,
            _ => "",
        }
    }

    /// Whether the handler was called, or may have been.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unavailable(_) | Self::NotLoaded { .. })
    }
}
