//! Why something could not be done with a function.

use toolyard_core::store::StoreError;
use toolyard_core::{Code, ToolError};
use toolyard_sandbox::packages::PackageError;

use crate::project::ProjectError;
use crate::run::RunError;
use crate::version::{BadVersion, Version};

/// Why something could not be done with a function. Its message may be shown to whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// Nothing can be called that.
    #[error(
        "{0:?} cannot be the id of a function: letters, digits, `.`, `_` and `-`, at most 100, the first a letter or digit"
    )]
    BadId(String),
    /// The text means no version.
    #[error(transparent)]
    BadVersion(#[from] BadVersion),
    /// What is to be saved is no function.
    #[error(transparent)]
    BadProject(#[from] ProjectError),
    /// Nobody has such a function.
    #[error("there is no function {0:?}")]
    UnknownFunction(String),
    /// The function has no such version.
    #[error("the function {id:?} has no version {wanted}{}", published(.latest))]
    UnknownVersion {
        /// The function.
        id: String,
        /// What was asked for.
        wanted: String,
        /// The latest version that there is.
        latest: Option<Version>,
    },
    /// What is fixed when a function is first saved would be another.
    #[error(
        "the function {id:?} is {is}, which stays so: save this one under another id, or delete that one first"
    )]
    Fixed {
        /// The function.
        id: String,
        /// Its kind and language.
        is: String,
    },
    /// Somebody else has changed it meanwhile.
    #[error("the draft of {0:?} was changed by somebody else meanwhile: look at it, and try again")]
    Changed(String),
    /// A version without a test is not published.
    #[error("a function needs at least one test case to be published")]
    NoTests,
    /// The tests were run, and some failed.
    #[error("{failed} of {all} test cases failed: nothing was published")]
    TestsFailed {
        /// How many failed.
        failed: usize,
        /// How many there are.
        all: usize,
        /// Each of them, also those that passed.
        reports: Vec<crate::host::TestReport>,
    },
    /// A bound is reached.
    #[error("there are at most {most} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// What is kept was damaged, or written by a later program.
    #[error("what is kept of the function {id:?} cannot be used: {why}")]
    Unreadable {
        /// The function.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// A variable is not lent by this host.
    #[error("the variable {variable} of the function is to be ${{{name}}}, which this host does not lend")]
    NotLent {
        /// The function's variable.
        variable: String,
        /// What its value names.
        name: String,
    },
    /// Its packages cannot be had.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// It cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FunctionError {
    /// The HTTP status that says it.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::BadId(_) | Self::BadVersion(_) | Self::BadProject(_) | Self::NoTests => 400,
            Self::UnknownFunction(_) | Self::UnknownVersion { .. } => 404,
            Self::Fixed { .. } | Self::Changed(_) | Self::TestsFailed { .. } | Self::TooMany { .. } => 409,
            Self::Unreadable { .. } | Self::NotLent { .. } => 503,
            Self::Packages(_) | Self::Run(_) | Self::Store(_) => 503,
        }
    }
}

/// A call that finds no version to call: nothing has gone out. What is amiss with a version is its owner's affair.
impl From<FunctionError> for ToolError {
    fn from(error: FunctionError) -> Self {
        let message = match &error {
            FunctionError::NotLent { .. } | FunctionError::Unreadable { .. } | FunctionError::Packages(_) => {
                "the function cannot be loaded".to_owned()
            }
            error => error.to_string(),
        };
        Self::new(Code::Unavailable, message).caused_by(error).unsent()
    }
}

fn published(latest: &Option<Version>) -> String {
    match latest {
        Some(latest) => format!(": the latest is {latest}"),
        None => ": none is published".to_owned(),
    }
}
