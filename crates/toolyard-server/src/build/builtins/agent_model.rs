//! The language model of agents: of subagents, and of the steps of wisps.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout_at;
use toolyard_core::access::CallPrice;
use toolyard_manifest::{BuiltinSettings, LlmSettings, SubagentLimits};
use toolyard_subagent::budget::BudgetLimits;
use toolyard_subagent::model::ChatModel;
use toolyard_subagent::model::openai::OpenAiModel;
use toolyard_subagent::toolset::{NoOwnTools, ToolChoice};
use toolyard_subagent::{AgentRun, RunError, RunLimits};
use toolyard_wisp::{LlmStepRequest, StepModel, StepModelError};

use crate::openai_api;

const STEP_INSTRUCTIONS: &str = "\
You carry out one step of a pipeline, without any further questions. Your last message, which requests no tool, is the \
output of the step: only what the step asks for, without a comment.";

/// Returns a client of the language model, with another id of the model if there is one.
///
/// # Errors
/// If the system's root certificates are needed and cannot be read, or the URL becomes invalid with its path.
pub(super) fn chat_model(llm: &LlmSettings, model: Option<&str>) -> io::Result<Arc<dyn ChatModel>> {
    let bearer = llm.api_key.as_ref().map(openai_api::bearer).transpose().map_err(io::Error::other)?;
    Ok(Arc::new(OpenAiModel {
        client: openai_api::client(&llm.base_url)?,
        url: openai_api::url(llm.base_url.uri(), "chat/completions").map_err(io::Error::other)?,
        model: model.unwrap_or(&llm.model).to_owned(),
        bearer,
        idle_time: llm.timeout,
    }))
}

/// Returns the limits of one agent.
pub(super) fn run_limits(limits: &SubagentLimits) -> RunLimits {
    RunLimits {
        turns: limits.turns,
        concurrent_calls: limits.concurrent_calls,
        result_chars: limits.result_chars,
        budget: BudgetLimits {
            tokens: u64::try_from(limits.tokens).unwrap_or(u64::MAX),
            cost: limits.cost,
            input_price: limits.input_price.unwrap_or(CallPrice(0)),
            output_price: limits.output_price.unwrap_or(CallPrice(0)),
        },
    }
}

/// Returns the model of the steps of wisps, if there is one. A step has the limits of a subagent.
pub(super) fn step_model(builtins: &BuiltinSettings) -> Option<Arc<dyn StepModel>> {
    let (llm, wisps) = builtins.llm.as_ref().zip(builtins.wisps.as_ref())?;
    let limits = run_limits(builtins.subagents.as_ref().unwrap_or(&SubagentLimits::default()));
    match chat_model(llm, wisps.model.as_deref()) {
        Ok(model) => Some(Arc::new(AgentStepModel { model, limits })),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "steps of wisps cannot use the language model");
            None
        }
    }
}

struct AgentStepModel {
    model: Arc<dyn ChatModel>,
    limits: RunLimits,
}

impl StepModel for AgentStepModel {
    fn run(&self, request: LlmStepRequest) -> BoxFuture<'_, Result<String, StepModelError>> {
        async move {
            let LlmStepRequest { prompt, tools, calls, deadline } = request;
            let run = AgentRun {
                model: &*self.model,
                instructions: STEP_INSTRUCTIONS.to_owned(),
                task: prompt,
                calls: &calls,
                tools: ToolChoice::Named(&tools),
                own_tools: &NoOwnTools,
                limits: self.limits,
            };
            let answer = match deadline {
                Some(deadline) => timeout_at(deadline, run.run()).await,
                None => Ok(run.run().await),
            };
            match answer {
                Ok(Ok(answer)) => Ok(answer.text),
                Ok(Err(error @ (RunError::Model(_) | RunError::Caller(_)))) => {
                    Err(StepModelError::Unavailable(error.to_string()))
                }
                Ok(Err(error)) => Err(StepModelError::NoAnswer(error.to_string())),
                Err(_) => Err(StepModelError::OutOfTime),
            }
        }
        .boxed()
    }
}
