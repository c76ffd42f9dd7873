//! The loop of an agent: the model requests calls, the calls run, and their results are its next message.

use futures_util::stream::{self, StreamExt};
use toolyard_core::{NestedCalls, ToolError};

use crate::budget::{Budget, BudgetError, BudgetLimits};
use crate::model::{ChatMessage, ChatModel, ChatRequest, ModelError, RequestedCall};
use crate::toolset::{OwnTools, ToolChoice, Toolset};

/// Limits of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Maximum number of messages of the model.
    pub turns: usize,
    /// Maximum number of calls at the same time.
    pub concurrent_calls: usize,
    /// Maximum characters of a result of a tool; the rest is cut off.
    pub result_chars: usize,
    /// Maximum consumption.
    pub budget: BudgetLimits,
}

/// An agent to run.
pub struct AgentRun<'a> {
    /// The model.
    pub model: &'a dyn ChatModel,
    /// Instructions of the agent.
    pub instructions: String,
    /// The task.
    pub task: String,
    /// Calls as the caller of the agent.
    pub calls: &'a NestedCalls,
    /// The tools that the agent may use.
    pub tools: ToolChoice<'a>,
    /// Tools of the agent itself.
    pub own_tools: &'a dyn OwnTools,
    /// Limits of the agent.
    pub limits: RunLimits,
}

/// The result of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAnswer {
    /// Last message of the model.
    pub text: String,
    /// Tokens of all requests and replies.
    pub tokens: u64,
    /// Number of calls of tools.
    pub calls: usize,
}

/// A run without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model does not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The caller may no longer call tools, or the gateway stops.
    #[error("{}", .0.message())]
    Caller(#[from] ToolError),
    /// The budget is used up.
    #[error("the agent was stopped: {0}")]
    Budget(#[from] BudgetError),
    /// The model does not come to an end.
    #[error("the agent was stopped after {0} messages without a result")]
    Turns(usize),
    /// The last message is empty.
    #[error("the agent ended without a result")]
    Empty,
}

impl AgentRun<'_> {
    /// Runs the agent. Dropping the future ends its request and its calls.
    ///
    /// # Errors
    /// If there is no result.
    pub async fn run(self) -> Result<AgentAnswer, RunError> {
        let model = self.model;
        tokio::select! {
            answer = self.converse() => answer,
            error = model.lost() => Err(error.into()),
        }
    }

    async fn converse(self) -> Result<AgentAnswer, RunError> {
        let Self { model, instructions, task, calls, tools, own_tools, limits } = self;
        let tools = Toolset::choose(tools, own_tools, calls, limits.result_chars).await?;
        let mut messages = vec![ChatMessage::System(instructions), ChatMessage::User(task)];
        let (mut budget, mut called) = (Budget::new(limits.budget), 0);
        for _ in 0..limits.turns {
            budget.check()?;
            // A key that was revoked meanwhile ends the agent.
            calls.registry().await?;
            let request = ChatRequest { messages: &messages, tools: &tools.definitions };
            let reply = model.complete(request).await?;
            budget.spend(request, &reply);
            if reply.requests.is_empty() {
                let text = reply.text.trim().to_owned();
                let answer = AgentAnswer { text, tokens: budget.tokens(), calls: called };
                return if answer.text.is_empty() { Err(RunError::Empty) } else { Ok(answer) };
            }
            called += reply.requests.len();
            let results = results(&tools, &reply.requests, limits.concurrent_calls).await;
            messages.push(ChatMessage::Model { text: reply.text, requests: reply.requests });
            messages.extend(results);
        }
        Err(RunError::Turns(limits.turns))
    }
}

/// Runs the requested calls, some at a time, and returns their results in the order of the requests.
async fn results(tools: &Toolset<'_>, requests: &[RequestedCall], concurrent: usize) -> Vec<ChatMessage> {
    // A stream of a closure's futures would not be `Send`.
    let calls: Vec<_> = requests.iter().map(|request| result(tools, request)).collect();
    stream::iter(calls).buffered(concurrent.max(1)).collect().await
}

async fn result(tools: &Toolset<'_>, request: &RequestedCall) -> ChatMessage {
    let result = tools.call(request).await;
    let text = if result.is_error { format!("Error: {}", result.text) } else { result.text };
    ChatMessage::ToolResult { request: request.id.clone(), text }
}
