//! The state of a batch as it runs. Its JSON is the summary in working memory.

use serde::Serialize;

use crate::definition::{DirectAction, StepAction, WispDefinition, WispStep};
use crate::failure::StepFailure;
use crate::memory::output_key;

/// The state of a batch.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchReport {
    pub(crate) batch_id: String,
    pub(crate) state: BatchState,
    /// Note for a reader of the summary of a batch that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    pub(crate) started_at: String,
    /// Time at which the batch ends at the latest.
    pub(crate) ends_by: String,
    pub(crate) total: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) wisps: Vec<WispReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BatchState {
    Running,
    Completed,
}

/// The state of a wisp.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WispReport {
    pub(crate) wisp_id: String,
    pub(crate) description: String,
    pub(crate) state: WispState,
    pub(crate) milliseconds: u64,
    /// The failure that has ended the wisp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<StepFailure>,
    pub(crate) steps: Vec<StepReport>,
    /// Output of the last step that has succeeded, for the result of the call.
    #[serde(skip)]
    pub(crate) output: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WispState {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

/// The state of a step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepReport {
    pub(crate) id: String,
    pub(crate) state: StepState,
    /// Tool or model of the step, for readers.
    pub(crate) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<StepFailure>,
    /// Key of the output in working memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_key: Option<String>,
    /// File of the output in the shared folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// Reason why the output is not in working memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StepState {
    Waiting,
    Running,
    Succeeded,
    Failed,
    Skipped,
}

impl BatchReport {
    /// Returns the numbers of steps that have ended, and of all.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let steps = || self.wisps.iter().flat_map(|wisp| &wisp.steps);
        let has_ended = |step: &&StepReport| {
            matches!(step.state, StepState::Succeeded | StepState::Failed | StepState::Skipped)
        };
        (steps().filter(has_ended).count(), steps().count())
    }

    /// Counts the wisps that have ended.
    pub(crate) fn recount(&mut self) {
        let count = |state| self.wisps.iter().filter(|wisp| wisp.state == state).count();
        (self.succeeded, self.failed) = (count(WispState::Succeeded), count(WispState::Failed));
    }
}

impl WispReport {
    /// Returns the report of a wisp that waits.
    pub(crate) fn new(wisp_id: String, definition: &WispDefinition) -> Self {
        Self {
            wisp_id,
            description: definition.description.clone(),
            state: WispState::Waiting,
            milliseconds: 0,
            failure: None,
            steps: definition.steps.iter().map(StepReport::new).collect(),
            output: None,
        }
    }

    /// Records the failure of the wisp. A step that was running has failed with it, and the steps after it do not run.
    pub(crate) fn fail(&mut self, failure: StepFailure) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.state == StepState::Running) {
            step.state = StepState::Failed;
            step.failure = Some(failure.clone());
        }
        for step in self.steps.iter_mut().filter(|step| step.state == StepState::Waiting) {
            step.state = StepState::Skipped;
        }
        self.state = WispState::Failed;
        self.failure = Some(failure);
    }

    /// Records a step that has succeeded. `unsaved` is the reason why its output is not in working memory.
    pub(crate) fn succeed(
        &mut self,
        number: usize,
        step: &WispStep,
        unsaved: Option<String>,
        has_file: bool,
    ) {
        let key = output_key(&self.wisp_id, &step.id);
        let Some(report) = self.steps.get_mut(number) else { return };
        report.state = StepState::Succeeded;
        report.output_key = Some(key).filter(|_| unsaved.is_none());
        report.note = unsaved;
        report.file = step.output_to.as_ref().map(ToString::to_string).filter(|_| has_file);
    }

    /// Returns the last step that has failed.
    pub(crate) fn failed_step(&self) -> Option<&StepReport> {
        self.steps.iter().rev().find(|step| step.state == StepState::Failed)
    }
}

impl StepReport {
    fn new(step: &WispStep) -> Self {
        Self {
            id: step.id.clone(),
            state: StepState::Waiting,
            tool: tool_of(step),
            failure: None,
            output_key: None,
            file: None,
            note: None,
        }
    }
}

/// Returns the tool of a step for readers.
fn tool_of(step: &WispStep) -> String {
    match &step.action {
        StepAction::Llm(_) => "llm".to_owned(),
        StepAction::Direct(DirectAction::Mcp { server, tool, .. }) => format!("{server}/{tool}"),
        StepAction::Direct(DirectAction::A2a { agent, .. }) => format!("invoke_agent {agent}"),
        StepAction::Direct(DirectAction::Script { language, .. }) => format!("execute_{language}_script"),
        StepAction::Direct(DirectAction::Web { tool, .. }) => tool.name().to_owned(),
    }
}
