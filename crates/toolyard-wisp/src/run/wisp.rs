//! The steps of a wisp, in order.

use tokio::time::{Duration, Instant, timeout_at};

use super::Batch;
use super::step::StepRunner;
use crate::definition::{FailureReaction, WispDefinition, WispStep};
use crate::failure::StepFailure;
use crate::input::{EarlierOutputs, EarlierStep};
use crate::memory::output_key;
use crate::report::{StepState, WispReport, WispState};

impl Batch<'_> {
    /// Runs the wisp of this number, and records its end.
    pub(super) async fn run_wisp(&self, number: usize) {
        let Some(definition) = self.definitions.get(number) else { return };
        let started = Instant::now();
        let ended = match self.runner.repeats.count(&self.call.caller, &definition.digest) {
            Ok(()) => match timeout_at(self.deadline, self.run_steps(number, definition)).await {
                Ok(ended) => ended,
                Err(_) => Err(self.out_of_time(started)),
            },
            Err(refused) => Err(refused),
        };
        let took = started.elapsed();
        self.report.send_modify(|report| {
            if let Some(wisp) = report.wisps.get_mut(number) {
                wisp.milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                match ended {
                    Ok(()) => wisp.state = WispState::Succeeded,
                    Err(failure) => wisp.fail(failure),
                }
            }
            report.recount();
        });
    }

    fn out_of_time(&self, started: Instant) -> StepFailure {
        let limit = self.deadline.saturating_duration_since(started).as_secs();
        StepFailure::external(format!(
            "not done within the {limit} s that the call had: spawn fewer or shorter wisps at once"
        ))
    }

    /// Runs the steps of a wisp.
    ///
    /// # Errors
    /// The failure of the step that has ended the wisp.
    async fn run_steps(&self, number: usize, definition: &WispDefinition) -> Result<(), StepFailure> {
        let permit = self.runner.running.acquire().await;
        let _permit = permit.map_err(|_| StepFailure::external("the gateway is stopping"))?;
        let wisp_id = self.change(number, |wisp| {
            wisp.state = WispState::Running;
            wisp.wisp_id.clone()
        });
        let runner = StepRunner::new(self, definition, wisp_id.unwrap_or_default());
        let mut earlier = EarlierOutputs { steps: &definition.steps, states: Vec::new() };
        let (mut next, mut is_whole) = (0, true);
        for (at, step) in definition.steps.iter().enumerate() {
            if at < next {
                self.set_step(number, at, StepState::Skipped, None);
                earlier.states.push(EarlierStep::Skipped);
                continue;
            }
            self.set_step(number, at, StepState::Running, None);
            match runner.run(step, &earlier).await {
                Ok(done) => {
                    self.change(number, |wisp| {
                        wisp.succeed(at, step, done.unsaved, runner.has_folder());
                        wisp.output = Some(done.output.text.clone());
                    });
                    earlier.states.push(EarlierStep::Done(done.output));
                }
                Err(failure) => {
                    let FailureReaction::SkipTo(target) = step.on_failure else { return Err(failure) };
                    self.set_step(number, at, StepState::Failed, Some(failure));
                    earlier.states.push(EarlierStep::Failed);
                    (next, is_whole) = (target, false);
                }
            }
        }
        if is_whole {
            self.shorten_outputs(&runner.wisp_id, &earlier).await;
        }
        Ok(())
    }

    /// Gives the outputs of a wisp whose steps have all succeeded a shorter lifetime.
    async fn shorten_outputs(&self, wisp_id: &str, earlier: &EarlierOutputs<'_>) {
        let keys: Vec<_> =
            earlier.steps.iter().map(|step: &WispStep| output_key(wisp_id, &step.id)).collect();
        let texts = earlier.states.iter().filter_map(|state| match state {
            EarlierStep::Done(output) => Some(output.text.as_str()),
            EarlierStep::Failed | EarlierStep::Skipped => None,
        });
        let entries: Vec<_> = keys.iter().map(String::as_str).zip(texts).collect();
        let settings = &self.runner.wisps.settings;
        let ttl: Duration = settings.success_ttl.min(settings.ttl);
        if let Err(error) = self.memory.save(&entries, ttl).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "outputs of a wisp keep their lifetime");
        }
    }

    fn set_step(&self, number: usize, at: usize, state: StepState, failure: Option<StepFailure>) {
        self.change(number, |wisp| {
            if let Some(step) = wisp.steps.get_mut(at) {
                (step.state, step.failure) = (state, failure);
            }
        });
    }

    /// Changes the report of a wisp.
    fn change<T>(&self, number: usize, change: impl FnOnce(&mut WispReport) -> T) -> Option<T> {
        let mut changed = None;
        self.report.send_modify(|report| changed = report.wisps.get_mut(number).map(change));
        changed
    }
}
