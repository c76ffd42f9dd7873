//! A budget of steps that ends work beyond it.
//!
//! A validator is a tree of recursive functions without a way out, so it is ended by an unwinding of the stack that
//! begins in [`StepMeter::spend`] and is caught in [`StepMeter::run`]. The unwinding reaches no panic hook, and only
//! the validator outlives it, which has no state between checks.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stack that a check may use. Threads have at least 2 MiB, of which the callers use a small part.
pub(super) const STACK_BYTES: usize = 768 * 1024;

/// Stack that a check may use on a thread without other callers.
pub(super) const BACKGROUND_STACK_BYTES: usize = 1536 * 1024;

/// Counts the steps of a check, and ends it if they are used up, the stack is used up, or it is stopped.
pub(super) struct StepMeter {
    left: Cell<u64>,
    stack_begin: usize,
    stack_bytes: usize,
    stop: Option<Arc<AtomicBool>>,
    pub(super) weights: StepWeights,
}

/// The steps of one access to a value, for the patterns and branches of a schema. See
/// [`SchemaSurvey`](super::survey::SchemaSurvey).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StepWeights {
    /// For a member or an item that is visited.
    pub(super) child: u64,
    /// For the name of a member.
    pub(super) name: u64,
    /// For the text of a name.
    pub(super) name_text: TextWeight,
    /// For a string.
    pub(super) text: TextWeight,
}

/// The steps of reading a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TextWeight {
    /// For 64 bytes, where an engine reads them once.
    pub(super) linear: u64,
    /// Number of patterns that backtrack.
    pub(super) backtracking: u64,
}

/// Backtracks of one match after which its pattern counts as undecided.
pub(super) const BACKTRACKS: usize = 2000;

/// The work ran out of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutOfSteps;

impl StepMeter {
    pub(super) fn new(steps: u64, stop: Option<Arc<AtomicBool>>, weights: StepWeights) -> Self {
        let stack_bytes = STACK_BYTES;
        Self { left: Cell::new(steps), stack_begin: stack_pointer(), stack_bytes, stop, weights }
    }

    /// Changes the limit of the stack.
    pub(super) fn with_stack(self, stack_bytes: usize) -> Self {
        Self { stack_bytes, ..self }
    }

    /// Runs the work until it is done or has spent its steps.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, OutOfSteps> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<OutOfSteps>() {
            Ok(end) => *end,
            Err(panic) => resume_unwind(panic),
        })
    }

    /// Spends some steps.
    #[inline]
    pub(super) fn spend(&self, steps: u64) {
        let left = self.left.get().checked_sub(steps);
        let stack = self.stack_begin.abs_diff(stack_pointer());
        let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        match left {
            Some(left) if stack < self.stack_bytes && !stopped => self.left.set(left),
            _ => end(),
        }
    }

    /// Spends the steps of reading a text.
    #[inline]
    pub(super) fn spend_on_text(&self, bytes: usize, weight: TextWeight) {
        let bytes = bytes as u64;
        let backtracks = weight.backtracking.saturating_mul(BACKTRACKS as u64 + bytes);
        let each = weight.linear.saturating_add(backtracks);
        self.spend((bytes.saturating_mul(each) / 64).saturating_add(1));
    }

    /// Restores the steps of a budget.
    pub(super) fn refill(&self, steps: u64) {
        self.left.set(steps);
    }

    /// Returns the steps that are left.
    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }
}

#[cold]
fn end() -> ! {
    resume_unwind(Box::new(OutOfSteps))
}

/// Returns an address near the end of the stack.
#[inline]
fn stack_pointer() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here) as usize
}
