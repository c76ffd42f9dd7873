//! The failure of a step, and its category.

use std::fmt;

use serde::Serialize;
use toolyard_core::{ErrorCode, ToolError};

/// The category of a failure, which tells an agent where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FailureCategory {
    /// The definition does not fit the tools of the caller: change it.
    Structural,
    /// A tool or a service failed: try again later, or use another.
    External,
    /// A model gave no usable answer: change the prompt.
    Judgment,
    /// Data of a step are missing, too large, or of another form than expected.
    Data,
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The failure of a step. An agent reads the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{category}: {message}")]
pub struct StepFailure {
    /// Category.
    pub category: FailureCategory,
    /// Reason and remedy.
    pub message: String,
}

impl StepFailure {
    /// Creates a failure of the definition.
    pub(crate) fn structural(message: impl Into<String>) -> Self {
        Self { category: FailureCategory::Structural, message: message.into() }
    }

    /// Creates a failure of a tool or a service.
    pub(crate) fn external(message: impl Into<String>) -> Self {
        Self { category: FailureCategory::External, message: message.into() }
    }

    /// Creates a failure of a model.
    pub(crate) fn judgment(message: impl Into<String>) -> Self {
        Self { category: FailureCategory::Judgment, message: message.into() }
    }

    /// Creates a failure of data.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self { category: FailureCategory::Data, message: message.into() }
    }
}

/// The failure of a call that the gateway could not run, or that was not answered.
impl From<ToolError> for StepFailure {
    fn from(error: ToolError) -> Self {
        let category = match error.code() {
            ErrorCode::ToolNotFound
            | ErrorCode::PromptNotFound
            | ErrorCode::ResourceNotFound
            | ErrorCode::FunctionNotFound
            | ErrorCode::InvalidArguments
            | ErrorCode::MissingCapability
            | ErrorCode::Denied => FailureCategory::Structural,
            ErrorCode::Timeout
            | ErrorCode::ExecutionFailed
            | ErrorCode::Unavailable
            | ErrorCode::Overloaded
            | ErrorCode::RateLimited
            | ErrorCode::QuotaExhausted
            | ErrorCode::Cancelled => FailureCategory::External,
        };
        Self { category, message: error.to_string() }
    }
}
