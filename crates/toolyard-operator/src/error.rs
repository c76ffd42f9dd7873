//! Errors of running scripts in pods.

use std::error::Error;

use toolyard_core::{ErrorCode, ToolError};

/// Cause of an error, for the log.
pub type ErrorCause = Box<dyn Error + Send + Sync>;

/// Error of running a script in a pod. Messages are safe for callers; responses of the cluster are causes, which appear
/// only in the log.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The maximum number of scripts is running.
    #[error("Too many scripts are running: {0}")]
    Busy(usize),
    /// The script cannot be run in a pod.
    #[error("{0}")]
    Unfit(String),
    /// The installation of packages failed. The message ends with the last lines of pip's log.
    #[error("The packages could not be installed (exit {exit_code}):\n{log}")]
    Packages {
        /// Exit status of pip.
        exit_code: i32,
        /// End of the log.
        log: String,
    },
    /// The pod was created, but the script did not start.
    #[error("The script's pod did not start: {reason}")]
    NotStarted {
        /// Reason in Kubernetes' terms, such as `ImagePullBackOff`.
        reason: String,
        /// Message of the cluster.
        #[source]
        detail: ErrorCause,
    },
    /// The pod is gone, or its outcome is unknown.
    #[error("The script's pod was lost: {reason}")]
    Lost {
        /// Reason in Kubernetes' terms, such as `Evicted`.
        reason: String,
        /// Message of the cluster.
        #[source]
        detail: ErrorCause,
    },
    /// A quota of the namespace is exhausted.
    #[error("The cluster has no room for another script")]
    Full(#[source] ErrorCause),
    /// The cluster denies the request or rejects the pod.
    #[error("The cluster rejected the script's pod")]
    Refused(#[source] ErrorCause),
    /// The cluster does not respond.
    #[error("The cluster cannot be reached")]
    Unreachable(#[source] ErrorCause),
    /// The configuration of the cluster is invalid.
    #[error("Invalid cluster configuration")]
    Cluster(#[source] ErrorCause),
    /// The kubeconfig obtains credentials from a program.
    #[error(
        "The kubeconfig obtains credentials from a program, which is not supported: use a token or a certificate"
    )]
    Login,
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
}

impl OperatorError {
    /// Converts the error of creating a pod.
    pub(crate) fn from_create(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else { return Self::Unreachable(error.into()) };
        match status.code {
            403 if status.message.contains("exceeded quota") => Self::Full(error.into()),
            413 => Self::Unfit("The script is too long for the cluster".to_owned()),
            429 => Self::Full(error.into()),
            400..=499 => Self::Refused(error.into()),
            _ => Self::Unreachable(error.into()),
        }
    }

    const fn code(&self) -> ErrorCode {
        match self {
            Self::Busy(_) | Self::Full(_) => ErrorCode::Overloaded,
            Self::Unfit(_) => ErrorCode::InvalidArguments,
            Self::NotStarted { .. } | Self::Lost { .. } | Self::Unreachable(_) => ErrorCode::Unavailable,
            Self::Packages { .. } | Self::Refused(_) | Self::Cluster(_) | Self::Login | Self::Option(_) => {
                ErrorCode::ExecutionFailed
            }
        }
    }
}

impl From<OperatorError> for ToolError {
    fn from(error: OperatorError) -> Self {
        let tool_error = Self::new(error.code(), error.to_string());
        let may_have_run = matches!(error, OperatorError::Lost { .. } | OperatorError::Unreachable(_));
        let tool_error = if may_have_run { tool_error } else { tool_error.unsent() };
        match error {
            OperatorError::NotStarted { detail: cause, .. }
            | OperatorError::Lost { detail: cause, .. }
            | OperatorError::Full(cause)
            | OperatorError::Refused(cause)
            | OperatorError::Unreachable(cause)
            | OperatorError::Cluster(cause) => tool_error.caused_by(cause),
            _ => tool_error,
        }
    }
}
