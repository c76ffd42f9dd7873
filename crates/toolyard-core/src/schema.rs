//! Validation with schemas from untrusted sources, within limits.
//!
//! A schema of a kilobyte can be made to take years to compile or to validate a small value, or all memory, or the
//! stack. Two limits prevent that:
//!
//! - before a schema is compiled, `survey` computes an upper bound on the cost of compilation and of validation without
//!   an
//!   access to the value. A schema beyond the limits is [`TooCostly`];
//! - during validation, `metered` counts every access to the value, and `meter` ends the validation when its steps are
//!   spent.
//!
//! So the steps bound time and memory, whatever the schema and the value are, and the limit is the same on every
//! machine.

mod costly;
mod faults;
mod keywords;
mod meter;
mod metered;
mod pattern;
mod survey;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use meter::{BACKGROUND_STACK_BYTES, BACKTRACKS, OutOfSteps, STACK_BYTES, StepMeter, StepWeights};
use metered::{MeteredNode, MeteredValue};
use survey::SchemaSurvey;

pub use survey::TooCostly;

/// Steps of every validation; one takes about ten nanoseconds.
const STEPS: u64 = 4_000_000;

/// Additional steps for each byte of a value. A value of a thousand items against a union of three hundred forms takes
/// less.
const STEPS_PER_BYTE: u64 = 32;

/// Maximum steps of the largest validation: below a second.
const MAX_STEPS: u64 = 64_000_000;

/// Maximum steps of describing faults. A fault takes 64 steps and half a kilobyte.
const MAX_FAULT_STEPS: u64 = 1_000_000;

/// Steps of a validation on the thread of a connection: below a millisecond.
const BRIEF_STEPS: u64 = 20_000;

/// Memory of one compiled pattern: patterns within the limits of [`pattern`] need less.
const PATTERN_BYTES: usize = 10 << 20;

/// A compiled schema.
pub struct CompiledSchema {
    validator: Validator<MeteredValue>,
    weights: StepWeights,
}

/// The reason why a schema cannot be used for validation.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSchema {
    /// It exceeds a limit.
    #[error("it costs too much to check: {0}")]
    TooCostly(#[from] TooCostly),
    /// It is not a schema.
    #[error("it does not compile: {0}")]
    Invalid(String),
}

/// The reason why a value was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// The value does not match. The text describes the first faults, in at most [`MAX_TEXT`] bytes.
    #[error("{0}")]
    Faults(String),
    /// Validation, or the description of faults, ran out of steps.
    #[error("too large or too deeply nested to be checked against the schema")]
    OutOfSteps,
}

/// Maximum length of the text about the faults of a value.
pub const MAX_TEXT: usize = 4096;

/// The budget of a validation.
#[derive(Debug, Clone)]
pub struct ValidationBudget {
    steps: u64,
    stack_bytes: usize,
    stop: Option<Arc<AtomicBool>>,
}

impl ValidationBudget {
    /// Returns the budget for a value of this size.
    #[must_use]
    pub const fn of(bytes: usize) -> Self {
        let steps = STEPS.saturating_add((bytes as u64).saturating_mul(STEPS_PER_BYTE));
        let steps = if steps < MAX_STEPS { steps } else { MAX_STEPS };
        Self { steps, stack_bytes: STACK_BYTES, stop: None }
    }

    /// Returns the budget of a validation that blocks its thread for less than a millisecond.
    #[must_use]
    pub const fn brief() -> Self {
        Self { steps: BRIEF_STEPS, stack_bytes: STACK_BYTES, stop: None }
    }

    /// Returns the maximum steps, including those for describing faults.
    #[must_use]
    pub const fn most_steps(&self) -> u64 {
        let faults = if self.steps < MAX_FAULT_STEPS { self.steps } else { MAX_FAULT_STEPS };
        self.steps.saturating_add(faults.saturating_mul(2))
    }

    /// Returns the same budget for a thread without other callers, which has more stack left; the validation ends when
    /// `stop` becomes `true`.
    #[must_use]
    pub fn until(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), stack_bytes: BACKGROUND_STACK_BYTES, ..self }
    }
}

impl CompiledSchema {
    /// Compiles a schema. A pattern that costs too much leaves its own values unchecked.
    ///
    /// # Errors
    /// If it exceeds a limit, or is not a schema.
    pub fn compile(schema: &Value) -> Result<Self, InvalidSchema> {
        let schema = &*costly::without_costly_patterns(schema);
        let weights = SchemaSurvey::weights(schema)?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS).size_limit(PATTERN_BYTES);
        let options = jsonschema::options_for::<MeteredValue>().with_pattern_options(patterns);
        let validator =
            options.build(schema).map_err(|error| InvalidSchema::Invalid(faults::of_schema(&error)))?;
        Ok(Self { validator, weights })
    }

    /// Returns the limit that a schema exceeds, without compiling it.
    #[must_use]
    pub fn cost(schema: &Value) -> Option<TooCostly> {
        SchemaSurvey::weights(&costly::without_costly_patterns(schema)).err()
    }

    /// Validates a value.
    ///
    /// # Errors
    /// If it does not match, or if validation exceeds the budget.
    pub fn check(&self, value: &Value, budget: &ValidationBudget) -> Result<(), SchemaMismatch> {
        self.check_counting(value, budget).0
    }

    /// Validates a value and returns the number of steps, at most the budget, or three times the budget with faults.
    pub fn check_counting(
        &self,
        value: &Value,
        budget: &ValidationBudget,
    ) -> (Result<(), SchemaMismatch>, u64) {
        let meter =
            |steps| StepMeter::new(steps, budget.stop.clone(), self.weights).with_stack(budget.stack_bytes);
        let meters = [budget.steps, budget.steps.min(MAX_FAULT_STEPS), budget.steps.min(MAX_FAULT_STEPS)];
        let meters = meters.map(meter);
        let before: u64 = meters.iter().map(StepMeter::left).sum();
        let checked = self.check_by(value, &meters);
        let after: u64 = meters.iter().map(StepMeter::left).sum();
        (checked, before - after)
    }

    fn check_by(&self, value: &Value, [whole, faults, first]: &[StepMeter; 3]) -> Result<(), SchemaMismatch> {
        if whole.run(|| self.validator.is_valid(MeteredNode::root(value, whole)))? {
            return Ok(());
        }
        let all = || faults::first(self.validator.iter_errors(MeteredNode::root(value, faults)));
        let one = || faults::first(self.validator.validate(MeteredNode::root(value, first)).err());
        // Most values have few faults; otherwise the first one is described.
        let named = faults.run(all).or_else(|_| first.run(one))?;
        Err(SchemaMismatch::Faults(named))
    }
}

impl From<OutOfSteps> for SchemaMismatch {
    fn from(_: OutOfSteps) -> Self {
        Self::OutOfSteps
    }
}

impl std::fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledSchema").field("weights", &self.weights).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
