//! The interface to a language model, which runs `Llm` steps.

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolyard_core::NestedCalls;

use crate::failure::StepFailure;

/// A language model that can call tools.
pub trait StepModel: Send + Sync {
    /// Runs a prompt until the model gives its answer, and returns that. Dropping the future ends the run.
    fn run(&self, request: LlmStepRequest) -> BoxFuture<'_, Result<String, StepModelError>>;
}

/// A prompt for a model.
#[derive(Clone)]
pub struct LlmStepRequest {
    /// Instruction, with the input of the step.
    pub prompt: String,
    /// Published names of the tools that the model can call.
    pub tools: Vec<String>,
    /// Calls of tools, as the agent that has spawned the wisp.
    pub calls: NestedCalls,
    /// Time at which the run ends at the latest.
    pub deadline: Option<Instant>,
}

/// The failure of a model. An agent reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepModelError {
    /// The model cannot be reached, or refuses requests.
    #[error("the model is not available: {0}")]
    Unavailable(String),
    /// The model gave no usable answer within its limits.
    #[error("the model gave no answer: {0}")]
    NoAnswer(String),
    /// The time limit ended first.
    #[error("the model gave no answer in time")]
    OutOfTime,
}

impl From<StepModelError> for StepFailure {
    fn from(error: StepModelError) -> Self {
        match error {
            StepModelError::Unavailable(_) | StepModelError::OutOfTime => Self::external(error.to_string()),
            StepModelError::NoAnswer(_) => Self::judgment(error.to_string()),
        }
    }
}
