//! Errors of tasks for agents.

use std::sync::Arc;

use toolyard_core::store::StoreError;

use crate::client::error::AgentError;

/// A task that does not start. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The group is switched off.
    #[error(
        "Other agents are switched off. The operator of the gateway can enable them: `builtins: {{agents: {{}}}}`."
    )]
    Disabled,
    /// The agent is the gateway itself.
    #[error("The agent '{0}' is this gateway itself, which cannot invoke itself: call its tools directly.")]
    OwnAgent(String),
    /// The agent is not available.
    #[error(
        "The agent '{agent}' is not available: {reason}. Its operator, or that of the gateway, has to mend this."
    )]
    Unavailable {
        /// Name of the agent.
        agent: String,
        /// Reason.
        reason: Arc<str>,
    },
    /// The message is empty.
    #[error("message: is empty; expected the instruction for the agent")]
    NoMessage,
    /// The message is too long.
    #[error("message: has {bytes} bytes, and may have {limit}. Shorten it.")]
    LongMessage {
        /// Bytes of the message.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The time limit is invalid.
    #[error("timeout_minutes: expected a number above 0 and up to {0}")]
    BadTimeout(f64),
    /// Too many tasks of the caller are running.
    #[error("The task is not started: {0} of your tasks are running, the maximum. Wait until one has ended.")]
    TooManyOfCaller(usize),
    /// Too many tasks of all callers are running.
    #[error(
        "The task is not started: the gateway runs {0} tasks for agents, the maximum (`builtins.agents.concurrent`). Try again \
         later."
    )]
    TooMany(usize),
    /// The gateway stops.
    #[error("The task is not started: the gateway is stopping. Try again later.")]
    Stopping,
    /// The agent cannot be asked.
    #[error("The task is not started: {0}.")]
    Agent(AgentError),
    /// The system has no random numbers.
    #[error("The task is not started: the system provides no random numbers.")]
    NoRandomness,
    /// The store failed.
    #[error("The task is not started: {0}. Try again later.")]
    Store(#[from] StoreError),
}
