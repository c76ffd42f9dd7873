//! The input of a step, and what a step knows of the steps before it.

use serde_json::{Map, Value};
use toolyard_manifest::WispSettings;

use crate::definition::{DirectAction, InputSource, WispStep};
use crate::failure::StepFailure;
use crate::memory::{WispMemory, output_key};
use crate::output::StepOutput;
use crate::shared_folder::SharedFolder;
use crate::template::{ReferenceValues, StepPart, StepReference, filled_members, filled_text};

/// The state of a step, for the steps after it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EarlierStep {
    /// It has succeeded.
    Done(StepOutput),
    /// It has failed.
    Failed,
    /// It was skipped.
    Skipped,
}

/// The steps before one, in order.
pub(crate) struct EarlierOutputs<'a> {
    pub(crate) steps: &'a [WispStep],
    pub(crate) states: Vec<EarlierStep>,
}

impl EarlierOutputs<'_> {
    /// Returns the output of a step.
    fn output(&self, number: usize, id: &str) -> Result<&StepOutput, StepFailure> {
        let reason = match self.states.get(number) {
            Some(EarlierStep::Done(output)) => return Ok(output),
            Some(EarlierStep::Failed) => "has failed",
            Some(EarlierStep::Skipped) => "was skipped",
            None => "has not run",
        };
        Err(StepFailure::data(format!("the step `{id}` {reason}, so that it has no result")))
    }

    /// Returns the steps that have succeeded, with their outputs.
    fn done(&self) -> impl Iterator<Item = (&WispStep, &StepOutput)> {
        self.steps.iter().zip(&self.states).filter_map(|(step, state)| match state {
            EarlierStep::Done(output) => Some((step, output)),
            EarlierStep::Failed | EarlierStep::Skipped => None,
        })
    }
}

impl ReferenceValues for EarlierOutputs<'_> {
    fn value(&self, reference: &StepReference) -> Result<Value, StepFailure> {
        let StepReference { step: id, part } = reference;
        let number = self.steps.iter().position(|step| step.id == *id);
        let step = number.and_then(|number| self.steps.get(number).map(|step| (number, step)));
        let (number, step) =
            step.ok_or_else(|| StepFailure::structural(format!("there is no step `{id}`")))?;
        match part {
            StepPart::OutputTo => {
                let path = step.output_to.as_ref().map(|path| Value::from(path.as_str()));
                path.ok_or_else(|| StepFailure::structural(format!("the step `{id}` has no `output_to`")))
            }
            StepPart::Result(path) => {
                let output = self.output(number, id)?;
                if path.is_empty() {
                    return Ok(Value::from(output.text.as_str()));
                }
                let value = output.value_at(path);
                value.map_err(|error| StepFailure::data(format!("the step `{id}`: {error}")))
            }
        }
    }
}

/// The sources of inputs.
pub(crate) struct InputReader<'a> {
    pub(crate) settings: &'a WispSettings,
    pub(crate) memory: &'a WispMemory,
    pub(crate) folder: Option<&'a SharedFolder>,
    pub(crate) wisp: &'a str,
}

impl InputReader<'_> {
    /// Returns the whole input of a step; `None` if it has none.
    ///
    /// # Errors
    /// If an earlier step has no result, or a file cannot be read.
    async fn read(
        &self,
        step: &WispStep,
        earlier: &EarlierOutputs<'_>,
    ) -> Result<Option<String>, StepFailure> {
        let Some(source) = &step.input_from else { return Ok(None) };
        let limit = self.settings.output_bytes;
        let text = match source {
            InputSource::Template(text) => filled_text(text, earlier)?,
            InputSource::Step(number) => {
                let id = earlier.steps.get(*number).map_or("", |step| &step.id);
                earlier.output(*number, id)?.text.clone()
            }
            InputSource::File(path) => match self.folder {
                Some(folder) => folder.read(path, limit).await?,
                None => return Err(StepFailure::structural("input_from: the gateway has no shared folder")),
            },
        };
        check_size("the input has", text.len(), limit)?;
        Ok(Some(text))
    }

    /// Returns an action with its references filled and its input added.
    ///
    /// # Errors
    /// If a reference has no value, or the input does not fit the action.
    pub(crate) async fn filled_action(
        &self,
        step: &WispStep,
        action: &DirectAction,
        earlier: &EarlierOutputs<'_>,
    ) -> Result<DirectAction, StepFailure> {
        let input = self.read(step, earlier).await?;
        let filled = match action.clone() {
            DirectAction::Mcp { server, tool, params } => {
                let params = with_defaults(filled_members(&params, earlier)?, input)?;
                DirectAction::Mcp { server, tool, params }
            }
            DirectAction::Web { tool, params } => {
                DirectAction::Web { tool, params: with_defaults(filled_members(&params, earlier)?, input)? }
            }
            DirectAction::Script { language, params } => {
                let mut params = filled_members(&params, earlier)?;
                if let Some(input) = input {
                    params.entry("input_data").or_insert(Value::String(input));
                }
                DirectAction::Script { language, params }
            }
            DirectAction::A2a { agent, skill, message } => {
                let mut message = filled_text(&message, earlier)?;
                if let Some(input) = input {
                    message = format!("{message}\n\n{input}");
                }
                DirectAction::A2a { agent, skill, message }
            }
        };
        Ok(filled)
    }

    /// Returns the prompt of a step with its input: in chunks if it is long. Without an input, it has the results of the
    /// earlier steps, each of which is cut.
    ///
    /// # Errors
    /// If a reference has no value, or working memory refuses a long input.
    pub(crate) async fn filled_prompt(
        &self,
        step: &WispStep,
        prompt: &str,
        earlier: &EarlierOutputs<'_>,
    ) -> Result<String, StepFailure> {
        let prompt = filled_text(prompt, earlier)?;
        let prompt = match self.read(step, earlier).await? {
            Some(input) if input.chars().nth(self.settings.input_chars).is_none() => {
                format!("{prompt}\n\n## Input\n\n{input}")
            }
            Some(input) => {
                let stored = self.memory.save_input(self.wisp, &step.id, &input, self.settings.ttl).await;
                let why =
                    |why| StepFailure::data(format!("the input cannot be put into working memory: {why}"));
                format!("{prompt}\n\n## Input\n\n{}", stored.map_err(why)?)
            }
            None => self.with_results(prompt, earlier),
        };
        check_size("the prompt has", prompt.len(), self.settings.output_bytes.saturating_mul(2))?;
        Ok(prompt)
    }

    fn with_results(&self, mut prompt: String, earlier: &EarlierOutputs<'_>) -> String {
        let most = self.settings.prior_chars;
        for (number, (step, output)) in earlier.done().enumerate() {
            if number == 0 {
                prompt.push_str("\n\n## Results of earlier steps");
            }
            let (text, omitted) = cut(&output.text, most);
            prompt.push_str(&format!("\n\n### {}\n\n{text}", step.id));
            if omitted > 0 {
                let key = output_key(self.wisp, &step.id);
                prompt.push_str(&format!(
                    "\n[truncated — {omitted} chars omitted; the whole result is at key `{key}`]"
                ));
            }
        }
        prompt
    }
}

/// Returns the beginning of a text, and the number of characters that are left out.
pub(crate) fn cut(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], text[end..].chars().count()),
        None => (text, 0),
    }
}

/// Checks the size of data in bytes. `subject` begins the message, such as `the output has`.
///
/// # Errors
/// If it is above the limit.
pub(crate) fn check_size(subject: &str, bytes: usize, limit: usize) -> Result<(), StepFailure> {
    match bytes <= limit {
        true => Ok(()),
        false => Err(StepFailure::data(format!(
            "{subject} {bytes} bytes, and the limit is {limit}: select a part of it, or ask the tool for less"
        ))),
    }
}

/// Adds the members of an input to arguments that do not have them.
fn with_defaults(
    mut params: Map<String, Value>,
    input: Option<String>,
) -> Result<Map<String, Value>, StepFailure> {
    let Some(input) = input else { return Ok(params) };
    let members = StepOutput::object(&input).ok_or_else(|| {
        StepFailure::data(
            "input_from: the input of this step is no JSON object with parameters. Put it into one parameter with \
             {{steps.ID.result}} instead",
        )
    })?;
    for (name, value) in members {
        params.entry(name).or_insert(value);
    }
    Ok(params)
}
