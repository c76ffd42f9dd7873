//! Runs a batch of wisps within the call that has spawned them.
//!
//! All wisps run in the future of the call: dropping it ends them and the calls of their steps.

mod step;
mod wisp;

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Duration, Instant};
use toolyard_agent::memory::MemoryCaller;
use toolyard_core::Call;
use toolyard_core::random::{NoRandomness, hex, random_bytes};
use toolyard_core::timestamp::iso_8601;

use crate::definition::WispDefinition;
use crate::memory::{WispMemory, reason, summary_key};
use crate::repeats::RepeatLimit;
use crate::report::{BatchReport, BatchState, WispReport};
use crate::shared_folder::SharedFolder;
use crate::tools::Wisps;

/// Time between the end of a batch and that of its call, in which the result is written: at most this, and at most a tenth
/// of the time that the call has.
const MARGIN: Duration = Duration::from_secs(2);

/// Number of hexadecimal digits of ids.
const BATCH_DIGITS: usize = 12;
const WISP_DIGITS: usize = 11;

/// Note in the summary of a batch that is running.
const RUNNING: &str = "Steps are recorded as they end. If the time `endsBy` has passed, the batch does not run any more: its \
call was cancelled, or the gateway was stopped. Then only steps that have succeeded here are done.";

/// Runs batches.
pub(crate) struct BatchRunner {
    pub(crate) wisps: Wisps,
    pub(crate) repeats: RepeatLimit,
    /// Permits of running wisps.
    pub(crate) running: Semaphore,
    pub(crate) folder: Option<SharedFolder>,
}

/// A batch that runs.
pub(crate) struct Batch<'a> {
    runner: &'a BatchRunner,
    call: &'a Call,
    definitions: &'a [WispDefinition],
    memory: WispMemory,
    report: watch::Sender<BatchReport>,
    deadline: Instant,
}

/// The result of a batch.
pub(crate) struct BatchResult {
    pub(crate) report: BatchReport,
    /// Key of the summary, or the reason why working memory does not have it.
    pub(crate) summary: Result<String, String>,
    pub(crate) took: Duration,
}

impl BatchRunner {
    /// Returns a runner for the tool.
    pub(crate) fn new(wisps: Wisps) -> Self {
        let settings = &wisps.settings;
        Self {
            repeats: RepeatLimit::new(settings.repeats, settings.repeat_window),
            running: Semaphore::new(settings.concurrent.min(Semaphore::MAX_PERMITS)),
            folder: settings.shared_folder.clone().map(|path| SharedFolder::new(path, settings.shared_bytes)),
            wisps,
        }
    }

    /// Runs wisps for a call. `on_progress` gets the numbers of steps that have ended, and of all.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) async fn run(
        &self,
        call: &Call,
        caller: MemoryCaller,
        definitions: &[WispDefinition],
        on_progress: impl Fn(usize, usize),
    ) -> Result<BatchResult, NoRandomness> {
        let started = Instant::now();
        let deadline = self.deadline(call, started);
        let batch_id = format!("batch-{}", random_digits::<BATCH_DIGITS>()?);
        let wisps = definitions.iter().map(|definition| {
            let id = format!("wisp-{}", random_digits::<WISP_DIGITS>()?);
            Ok(WispReport::new(id, definition))
        });
        let now = SystemTime::now();
        let report = BatchReport {
            batch_id,
            state: BatchState::Running,
            note: Some(RUNNING.to_owned()),
            started_at: iso_8601(now),
            ends_by: iso_8601(now + deadline.saturating_duration_since(started)),
            total: definitions.len(),
            succeeded: 0,
            failed: 0,
            wisps: wisps.collect::<Result<_, _>>()?,
        };
        let memory = WispMemory::new(self.wisps.memory.clone(), caller);
        let report = watch::Sender::new(report);
        let batch = Batch { runner: self, call, definitions, memory, report, deadline };
        let summary = batch.run(&on_progress).await;
        let report = batch.report.borrow().clone();
        Ok(BatchResult { report, summary, took: started.elapsed() })
    }

    /// Returns the time at which the batch of a call ends.
    fn deadline(&self, call: &Call, now: Instant) -> Instant {
        let own = now + self.wisps.settings.timeout;
        let Some(limit) = call.deadline else { return own };
        let margin = (limit.saturating_duration_since(now) / 10).min(MARGIN);
        own.min(limit.checked_sub(margin).unwrap_or(limit))
    }
}

impl Batch<'_> {
    /// Runs all wisps, and returns the key of the summary.
    async fn run(&self, on_progress: &impl Fn(usize, usize)) -> Result<String, String> {
        // The first summary is there before the first step, so that an agent finds it whatever happens.
        let mut summary = self.save_summary().await;
        // Subscribed before the wisps run: a change before it would not be noticed.
        let changes = self.report.subscribe();
        let wisps = join_all((0..self.definitions.len()).map(|number| self.run_wisp(number)));
        tokio::select! {
            _ = wisps => {}
            () = self.save_summaries(changes, on_progress) => {}
        }
        self.report.send_modify(|report| {
            (report.state, report.note) = (BatchState::Completed, None);
        });
        let last = self.save_summary().await;
        if summary.is_err() || last.is_err() {
            summary = last;
        }
        summary
    }

    /// Saves the summary at each change, the latest state only. Never ends.
    async fn save_summaries(
        &self,
        mut changes: watch::Receiver<BatchReport>,
        on_progress: &impl Fn(usize, usize),
    ) {
        while changes.changed().await.is_ok() {
            let (ended, all) = changes.borrow_and_update().progress();
            on_progress(ended, all);
            if let Err(error) = self.save_summary().await {
                tracing::debug!(error, "the summary of a batch is not saved");
            }
        }
    }

    /// Saves the summary and returns its key, or the reason why working memory refuses it.
    async fn save_summary(&self) -> Result<String, String> {
        let (key, text) = {
            let report = self.report.borrow();
            let text = serde_json::to_string(&*report).map_err(|error| error.to_string())?;
            (summary_key(&report.batch_id), text)
        };
        let saved = self.memory.save(&[(&key, &text)], self.runner.wisps.settings.ttl).await;
        saved.map(|()| key).map_err(|error| reason(&error))
    }
}

/// Returns random hexadecimal digits.
fn random_digits<const DIGITS: usize>() -> Result<String, NoRandomness> {
    let mut digits = hex(&random_bytes::<8>()?);
    digits.truncate(DIGITS);
    Ok(digits)
}

/// Creates a runner that the handlers of a tool share.
pub(crate) fn shared(wisps: Wisps) -> Arc<BatchRunner> {
    Arc::new(BatchRunner::new(wisps))
}
