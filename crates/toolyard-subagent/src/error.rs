//! Errors of the tools. A model reads the texts.

use std::time::Duration;

use toolyard_core::store::StoreError;

use crate::whiteboard::WhiteboardError;

/// Error of the tools for subagents.
#[derive(Debug, thiserror::Error)]
pub enum SubagentError {
    /// The description is empty.
    #[error("description: is empty; expected detailed instructions for the subagent")]
    NoDescription,
    /// The task is too long.
    #[error(
        "description and context have {bytes} bytes, and {limit} are the limit. Put long data into working memory, and name its key."
    )]
    LongTask {
        /// Bytes of description and context.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The time is out of range.
    #[error("timeout_minutes: expected more than 0, and at most {}", .limit.as_secs() / 60)]
    Timeout {
        /// Maximum time.
        limit: Duration,
    },
    /// Too many subagents of the owner run.
    #[error(
        "The subagent was not started: {0} are running, which is the limit. Wait for one to end, or cancel one with cancel_subagent."
    )]
    TooMany(usize),
    /// Too many subagents of all owners run.
    #[error("The subagent was not started: the gateway runs as many subagents as it may. Try again later.")]
    Busy,
    /// There is no model.
    #[error("The subagent was not started: your client does not lend its model to this call.")]
    NoModel,
    /// The system has no random numbers.
    #[error("The subagent was not started: the system provides no random numbers.")]
    NoId,
    /// The whiteboard refuses a value.
    #[error(transparent)]
    Whiteboard(#[from] WhiteboardError),
    /// The store failed.
    #[error("Subagents cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
