//! Why a script was not run, or nobody knows how it ended.

use std::error::Error;

use toolyard_core::{Code, ToolError};

/// What caused an error, for the log.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a script was not run, or nobody knows how it ended. What is written out is safe for callers; what the cluster
/// said is a cause, which the log sees.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// As many run as may.
    #[error("Too many scripts run already: {0}")]
    Busy(usize),
    /// This script cannot be put into a pod.
    #[error("{0}")]
    Unfit(String),
    /// Its packages could not be installed. The last lines of what pip said follow.
    #[error("The packages could not be installed (exit {exit_code}):\n{log}")]
    Packages {
        /// pip's exit status.
        exit_code: i32,
        /// What it said at the end.
        log: String,
    },
    /// Its pod was made, and the script was never begun.
    #[error("The script's pod did not start: {reason}")]
    NotStarted {
        /// One word of Kubernetes, such as `ImagePullBackOff`.
        reason: String,
        /// What the cluster said of it.
        #[source]
        detail: Cause,
    },
    /// Its pod is gone, or its end cannot be known.
    #[error("The script's pod was lost: {reason}")]
    Lost {
        /// One word of Kubernetes, such as `Evicted`.
        reason: String,
        /// What the cluster said of it.
        #[source]
        detail: Cause,
    },
    /// A quota of the namespace is reached.
    #[error("The cluster has no room for another script")]
    Full(#[source] Cause),
    /// The cluster does not let us, or does not take such a pod.
    #[error("The cluster refuses the script's pod")]
    Refused(#[source] Cause),
    /// The cluster does not answer.
    #[error("The cluster cannot be reached")]
    Unreachable(#[source] Cause),
    /// What describes the cluster cannot be used.
    #[error("The description of the cluster cannot be used")]
    Cluster(#[source] Cause),
    /// What describes the cluster has a program say who we are.
    #[error(
        "The user of this kubeconfig is named by a program, which is not started: use a token or a certificate"
    )]
    Login,
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
}

impl OperatorError {
    /// What it means that the cluster does not make a pod.
    pub(crate) fn of(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else { return Self::Unreachable(error.into()) };
        match status.code {
            403 if status.message.contains("exceeded quota") => Self::Full(error.into()),
            413 => Self::Unfit("The script is longer than the cluster takes".to_owned()),
            429 => Self::Full(error.into()),
            400..=499 => Self::Refused(error.into()),
            _ => Self::Unreachable(error.into()),
        }
    }

    const fn code(&self) -> Code {
        match self {
            Self::Busy(_) | Self::Full(_) => Code::Overloaded,
            Self::Unfit(_) => Code::InvalidArguments,
            Self::NotStarted { .. } | Self::Lost { .. } | Self::Unreachable(_) => Code::Unavailable,
            Self::Packages { .. } | Self::Refused(_) | Self::Cluster(_) | Self::Login | Self::Option(_) => {
                Code::ExecutionFailed
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
