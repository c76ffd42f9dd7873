//! One step of a wisp.

use tokio::time::{Instant, timeout_at};
use toolyard_core::Json;
use toolyard_core::NestedCalls;

use super::Batch;
use crate::definition::{DirectAction, StepAction, WispDefinition, WispStep};
use crate::failure::StepFailure;
use crate::input::{EarlierOutputs, InputReader, check_size};
use crate::memory::{output_key, reason};
use crate::model::LlmStepRequest;
use crate::output::StepOutput;
use crate::route::CallerTools;
use crate::tools::EXCLUDED;

/// Maximum length of the text of a tool that failed, in characters.
const MAX_REASON: usize = 2_000;

/// Runs the steps of a wisp.
pub(super) struct StepRunner<'a> {
    batch: &'a Batch<'a>,
    definition: &'a WispDefinition,
    pub(super) wisp_id: String,
}

/// A step that has succeeded.
pub(super) struct DoneStep {
    pub(super) output: StepOutput,
    /// Reason why the output is not in working memory.
    pub(super) unsaved: Option<String>,
}

impl<'a> StepRunner<'a> {
    /// Returns the runner of a wisp.
    pub(super) const fn new(batch: &'a Batch<'a>, definition: &'a WispDefinition, wisp_id: String) -> Self {
        Self { batch, definition, wisp_id }
    }

    /// Returns `true` if outputs are also files.
    pub(super) const fn has_folder(&self) -> bool {
        self.batch.runner.folder.is_some()
    }

    /// Runs a step, and stores its output.
    ///
    /// # Errors
    /// The failure of the step.
    pub(super) async fn run(
        &self,
        step: &WispStep,
        earlier: &EarlierOutputs<'_>,
    ) -> Result<DoneStep, StepFailure> {
        let deadline = self.deadline(step);
        let output = match timeout_at(deadline, self.output(step, earlier, deadline)).await {
            Ok(output) => output?,
            Err(_) => return Err(out_of_time(step)),
        };
        let settings = &self.batch.runner.wisps.settings;
        check_size("the output has", output.text.len(), settings.output_bytes)?;
        let key = output_key(&self.wisp_id, &step.id);
        // The wisp goes on with the output itself.
        let saved = self.batch.memory.save(&[(&key, &output.text)], settings.ttl).await;
        if let (Some(folder), Some(path)) = (&self.batch.runner.folder, &step.output_to) {
            folder.write(path, &output.text).await?;
        }
        Ok(DoneStep { output, unsaved: saved.err().map(|error| reason(&error)) })
    }

    /// Returns the time at which a step ends: that of the batch, or its own. That of a step for an agent limits the agent's
    /// task, which the step does not wait for.
    fn deadline(&self, step: &WispStep) -> Instant {
        let is_of_agent = matches!(step.action, StepAction::Direct(DirectAction::A2a { .. }));
        let own = step.timeout.filter(|_| !is_of_agent).map(|limit| Instant::now() + limit);
        own.map_or(self.batch.deadline, |own| own.min(self.batch.deadline))
    }

    async fn output(
        &self,
        step: &WispStep,
        earlier: &EarlierOutputs<'_>,
        deadline: Instant,
    ) -> Result<StepOutput, StepFailure> {
        let wisps = &self.batch.runner.wisps;
        let calls = wisps.gateway.within(self.batch.call, format!("wisp-{}-{}", self.wisp_id, step.id));
        let calls = calls.without(&EXCLUDED);
        let tools = CallerTools::new(calls.registry().await?);
        let input = InputReader {
            settings: &wisps.settings,
            memory: &self.batch.memory,
            folder: self.batch.runner.folder.as_ref(),
            wisp: &self.wisp_id,
        };
        match &step.action {
            StepAction::Direct(action) => {
                let action = input.filled_action(step, action, earlier).await?;
                self.call(step, action, &calls, &tools, deadline).await
            }
            StepAction::Llm(prompt) => {
                let prompt = input.filled_prompt(step, prompt, earlier).await?;
                self.ask(prompt, calls, &tools, deadline).await
            }
        }
    }

    async fn call(
        &self,
        step: &WispStep,
        action: DirectAction,
        calls: &NestedCalls,
        tools: &CallerTools,
        deadline: Instant,
    ) -> Result<StepOutput, StepFailure> {
        let call = tools.call_of(step, action)?;
        let arguments = Json::from_value(&serde_json::Value::Object(call.arguments));
        let limit = self.batch.runner.wisps.settings.output_bytes;
        check_size("the arguments have", arguments.as_bytes().len(), limit)?;
        let result = calls.call(&call.tool, arguments, Some(deadline)).await?;
        let output = StepOutput::of_tool(&result);
        if !result.is_error {
            return Ok(output);
        }
        let reason: String = output.text.chars().take(MAX_REASON).collect();
        Err(match call.is_unknown {
            true => StepFailure::structural(reason),
            false => StepFailure::external(reason),
        })
    }

    async fn ask(
        &self,
        prompt: String,
        calls: NestedCalls,
        tools: &CallerTools,
        deadline: Instant,
    ) -> Result<StepOutput, StepFailure> {
        let model = self.batch.runner.wisps.model.as_ref();
        let model = model.ok_or_else(|| StepFailure::structural("this gateway has no language model"))?;
        let tools = tools.for_model(self.definition)?;
        let calls = calls.read_by_model();
        let answer = model.run(LlmStepRequest { prompt, tools, calls, deadline: Some(deadline) }).await?;
        match answer.trim() {
            "" => Err(StepFailure::judgment("the model gave an empty answer: make the prompt more precise")),
            _ => Ok(StepOutput::of_text(answer)),
        }
    }
}

fn out_of_time(step: &WispStep) -> StepFailure {
    match step.timeout {
        Some(limit) => {
            let minutes = limit.as_secs_f64() / 60.0;
            StepFailure::external(format!("not done within the {minutes} minutes of `timeout_minutes`"))
        }
        None => StepFailure::external("not done within the time of the whole batch"),
    }
}
