//! The tool `spawn_wisps`.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_agent::memory::{MemoryCaller, WorkingMemory};
use toolyard_core::NestedGateway;
use toolyard_manifest::WispSettings;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolCall, ToolFailure};

use crate::model::StepModel;
use crate::parse::{self, DefinitionRules};
use crate::run::{self, BatchRunner};
use crate::texts;

/// Name of the tool, as agents know it.
pub const SPAWN: &str = "spawn_wisps";

const ABOUT: &str = "\
Runs small pipelines of tool calls in parallel and returns their outputs, so that intermediate results cost you nothing. \
Read the guide `wisps` first.";

const DEFINITIONS: &str = "\
Array of 1 to 10 {description, steps: [{id, mode: Direct, gateway: Mcp|A2A|Script|Web, server, tool, params}, …]}; params may \
have {{steps.ID.result}} or {{steps.ID.result.member}} of earlier steps";

/// Tools that no step reaches: each call of them would start more calls.
pub(crate) const EXCLUDED: [&str; 2] = [SPAWN, "spawn_subagent"];

/// Dependencies of the tool.
#[derive(Clone)]
pub struct Wisps {
    /// The gateway, whose tools the steps call.
    pub gateway: NestedGateway,
    /// Working memory for outputs and summaries.
    pub memory: WorkingMemory,
    /// Limits.
    pub settings: Arc<WispSettings>,
    /// Language model of `Llm` steps. `None`: definitions with such steps are refused.
    pub model: Option<Arc<dyn StepModel>>,
}

/// Adds the tool to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of this name.
pub fn add(server: Server, wisps: Wisps) -> Result<Server, RegisterError> {
    let runner = run::shared(wisps);
    server.register_tool(tool(), move |context: Context, call: ToolCall| {
        let runner = runner.clone();
        async move { spawn(&runner, &context, &call).await }
    })
}

fn tool() -> Tool {
    let hints = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    // Models also give one object, or texts with JSON.
    let schema = json!({
        "type": "object",
        "properties": {"definitions": {"description": DEFINITIONS}},
        "required": ["definitions"],
    });
    Tool::new(SPAWN, ABOUT).title("Spawn wisps").annotations(hints).input_schema(schema)
}

async fn spawn(runner: &BatchRunner, context: &Context, call: &ToolCall) -> Result<String, ToolFailure> {
    let Wisps { settings, model, .. } = &runner.wisps;
    let definitions = call.arguments.get("definitions");
    let bytes = definitions.map_or(0, |definitions| definitions.as_bytes().len());
    if bytes > settings.definition_bytes {
        let limit = settings.definition_bytes;
        return Err(ToolFailure::new(format!(
            "definitions: have {bytes} bytes, and the limit is {limit}. Put long texts into files or working memory, or spawn \
             fewer wisps at once."
        )));
    }
    let definitions = definitions.map_or(Value::Null, |definitions| definitions.to_value());
    let rules = DefinitionRules { settings, has_model: model.is_some() };
    let definitions =
        parse::definitions(&definitions, rules).map_err(|problems| ToolFailure::new(problems.to_string()))?;
    #[expect(clippy::cast_precision_loss, reason = "at most 500 steps")]
    let progress = |ended: usize, all: usize| context.progress(ended as f64, Some(all as f64), None);
    let caller = MemoryCaller::of_context(context);
    let batch = runner.run(context.call(), caller, &definitions, progress).await?;
    Ok(texts::result(&batch, settings.result_chars))
}

#[cfg(test)]
mod tests;
