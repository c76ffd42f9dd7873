//! Errors of functions.

use toolyard_core::store::StoreError;
use toolyard_core::{ErrorCode, ToolError};
use toolyard_sandbox::packages::PackageError;

use crate::project::ProjectError;
use crate::run::RunError;
use crate::version::{FunctionVersion, InvalidVersion};

/// Error of an operation on a function. Its message is safe for the caller.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The id is invalid.
    #[error(
        "invalid function id {0:?}: at most 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit"
    )]
    InvalidId(String),
    /// The version selector is invalid.
    #[error(transparent)]
    InvalidVersion(#[from] InvalidVersion),
    /// The project is invalid.
    #[error(transparent)]
    InvalidProject(#[from] ProjectError),
    /// There is no function with this id.
    #[error("there is no function {0:?}")]
    UnknownFunction(String),
    /// The function has no matching version.
    #[error("the function {id:?} has no version {wanted}{}", latest_hint(.latest))]
    UnknownVersion {
        /// Id of the function.
        id: String,
        /// Requested selector.
        wanted: String,
        /// Latest published version.
        latest: Option<FunctionVersion>,
    },
    /// The version has no such file.
    #[error("the function {id:?} has no file {path:?} in this version")]
    UnknownFile {
        /// Id of the function.
        id: String,
        /// Path of the file.
        path: String,
    },
    /// The kind or language of an existing function would change.
    #[error("the function {id:?} is {is}, which cannot change: use another id, or delete the function first")]
    KindMismatch {
        /// Id of the function.
        id: String,
        /// Its kind and language.
        is: String,
    },
    /// The draft was changed concurrently.
    #[error("the draft of {0:?} was changed concurrently: check it and try again")]
    Conflict(String),
    /// A version without test cases cannot be published.
    #[error("publication requires at least one test case")]
    NoTests,
    /// Some test cases failed.
    #[error("{failed} of {all} test cases failed: nothing was published")]
    TestsFailed {
        /// Number of failed test cases.
        failed: usize,
        /// Number of all test cases.
        all: usize,
        /// Reports of all test cases.
        reports: Vec<crate::host::TestReport>,
    },
    /// A limit is reached.
    #[error("there are at most {most} {what}")]
    TooMany {
        /// Counted items.
        what: &'static str,
        /// Maximum number.
        most: usize,
    },
    /// The stored function is damaged or has a later format.
    #[error("the stored function {id:?} is unusable: {why}")]
    Unreadable {
        /// Id of the function.
        id: String,
        /// Fault.
        why: String,
    },
    /// The host does not provide a variable to the function.
    #[error("the variable {variable} refers to ${{{name}}}, which this host does not provide{}", variable_hint(.name, .to))]
    VariableUnavailable {
        /// Variable of the function.
        variable: String,
        /// Name of the host variable.
        name: String,
        /// Id of the function, if the host provides the variable to other functions only.
        to: Option<String>,
    },
    /// Packages could not be installed.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// The code cannot run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FunctionError {
    /// HTTP status of the error.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::InvalidId(_) | Self::InvalidVersion(_) | Self::InvalidProject(_) | Self::NoTests => 400,
            Self::UnknownFunction(_) | Self::UnknownVersion { .. } | Self::UnknownFile { .. } => 404,
            Self::KindMismatch { .. }
            | Self::Conflict(_)
            | Self::TestsFailed { .. }
            | Self::TooMany { .. } => 409,
            Self::Unreadable { .. } | Self::VariableUnavailable { .. } => 503,
            Self::Packages(_) | Self::Run(_) | Self::Store(_) => 503,
        }
    }
}

/// Converts the error of a call without a version: nothing was sent. The details of a faulty version are not for
/// callers.
impl From<FunctionError> for ToolError {
    fn from(error: FunctionError) -> Self {
        let message = match &error {
            FunctionError::VariableUnavailable { .. }
            | FunctionError::Unreadable { .. }
            | FunctionError::Packages(_) => "the function cannot be loaded".to_owned(),
            error => error.to_string(),
        };
        Self::new(ErrorCode::Unavailable, message).caused_by(error).unsent()
    }
}

fn variable_hint(name: &str, id: &Option<String>) -> String {
    let Some(id) = id else { return String::new() };
    format!(
        " to the function {id:?}: `functions.lend.{name}.functions` in the gateway's manifest lists those that may have it"
    )
}

fn latest_hint(latest: &Option<FunctionVersion>) -> String {
    match latest {
        Some(latest) => format!(": the latest is {latest}"),
        None => ": none is published".to_owned(),
    }
}
