//! Puts results that do not fit into a model's context window into working memory, in chunks, and tells the model their
//! keys.
//!
//! - [`rules`]: the length above which a result is large, and its chunks;
//! - `blocks`: the blocks of a result by what they are for a model;
//! - `content`: the parts of a result, and the result without some of them;
//! - [`document`]: documents that a tool stores by itself;
//! - `entry_results`: results of the tools of working memory;
//! - `members`: `_meta` and other members beside the content;
//! - `peer_error`: errors of servers that are too long;
//! - `mirror`: texts that repeat the structured content;
//! - `places`: the text that is stored with each chunk, so that nothing of the whole is lost;
//! - `preparation`: the work that takes time in proportion to the length of a result;
//! - `storage`: puts the chunks into working memory;
//! - [`message`]: the text that the model reads instead;
//! - `shape`: the shape of JSON in that text.
//!
//! [`LargeResults`] is a layer. It surrounds the layers that retry a call, so that only the final result is stored. Callers
//! that see no working memory get the beginning of a large result. Results that are short enough pass without being
//! parsed.

mod blocks;
mod content;
pub mod document;
mod entry_results;
mod members;
pub mod message;
mod mirror;
mod peer_error;
pub(crate) mod places;
mod preparation;
pub mod rules;
mod shape;
mod storage;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::layers::{CallResult, Layer, NextLayer};
use toolyard_core::long_work::StopSignal;
use toolyard_core::output_schema::OutputSchemaMode;
use toolyard_core::{
    Call, CallOutput, CallTarget, Caller, ErrorCode, Json, LongWork, Object, Outcome, Registry,
    RegistryEntry, TaskAction, ToolError,
};
use toolyard_manifest::ResultSettings;

use crate::guides::GuideDocument;
use crate::memory::session_handles::set_handle;
use crate::memory::tools::{NAMES, RESULT_CHARS_META};
use crate::memory::{MemoryCaller, MemoryError, RoomPolicy, SESSION_META, WorkingMemory};
use content::ResultLimit;
use preparation::{MemoryTarget, PreparedResult, ResultPreparation, SplitResult};
pub use rules::MODEL_META;
use storage::{MemoryRefusal, ResultPlace};

/// Guide to working with large results.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "large-results",
    "Work with tool results that were too large to be shown and were put into working memory in chunks",
    include_str!("large/guide.md"),
);

/// The layer that puts large results into working memory.
pub struct LargeResults {
    settings: watch::Receiver<Option<Arc<LargeSettings>>>,
    registry: watch::Receiver<Arc<Registry>>,
    long_work: Option<LongWork>,
}

/// Settings of the layer, until the manifest changes.
#[derive(Debug)]
pub struct LargeSettings {
    /// Working memory that stores the results. `None`: they are truncated.
    pub memory: Option<WorkingMemory>,
    /// Handler that has the tools of that memory. Results of these tools are cut: a chunk that is read must not be stored
    /// again.
    pub handler: Arc<str>,
    /// Limits and thresholds.
    pub options: ResultSettings,
}

/// Facts about a call that its result needs.
struct ChunkingPlan {
    settings: Arc<LargeSettings>,
    limit: ResultLimit,
    /// Maximum length of a result of a tool of working memory, which is cut and not stored. `None` for other tools.
    entry_bound: Option<usize>,
    caller: Caller,
    /// Origin of the call, from which the owner of long work follows.
    origin: Option<Arc<dyn Any + Send + Sync>>,
    long_work: Option<LongWork>,
    /// Session that the request names.
    named_session: Option<String>,
    tool: Arc<str>,
    /// True for `tasks/get`, false for a tool call.
    is_task: bool,
}

impl LargeResults {
    /// Returns the layer. It does nothing while there are no settings. The registry tells which callers see working
    /// memory.
    #[must_use]
    pub const fn new(
        settings: watch::Receiver<Option<Arc<LargeSettings>>>,
        registry: watch::Receiver<Arc<Registry>>,
    ) -> Self {
        Self { settings, registry, long_work: None }
    }

    /// Sets where the work on long results is done, which would block a thread of connections.
    #[must_use]
    pub fn with_long_work(self, long_work: Option<LongWork>) -> Self {
        Self { long_work, ..self }
    }

    /// Returns `None` if the result of this call passes unchanged.
    fn plan(&self, call: &Call, entry: &RegistryEntry) -> Option<ChunkingPlan> {
        let is_task = match &call.target {
            CallTarget::Tool(_) => false,
            CallTarget::Task(task) if task.action == TaskAction::Get => true,
            _ => return None,
        };
        if !call.client.calls_tools() {
            return None;
        }
        let settings = self.settings.borrow().clone()?;
        let is_reading = entry.handler.name == settings.handler && NAMES.contains(&&*entry.own);
        let (grant, model) = (call.caller.grant.as_deref(), call.meta.get_str(MODEL_META));
        let threshold = rules::threshold(&settings.options, &entry.chunking, grant, model.as_deref());
        let entry_bound = is_reading.then(|| {
            let chunk = rules::chunk_size(&settings.options, threshold);
            let threshold = threshold.max(rules::MIN_BOUND);
            entry_results::bound(&call.target, &entry.own, call.arguments(), threshold, chunk)
        });
        let output_schemas = rules::output_schemas(&settings.options, entry);
        Some(ChunkingPlan {
            limit: ResultLimit {
                threshold,
                promises_structure: output_schemas == Some(OutputSchemaMode::Extend),
                keeps_structure: output_schemas == Some(OutputSchemaMode::Keep),
            },
            entry_bound,
            caller: call.caller.clone(),
            origin: call.origin.clone(),
            long_work: self.long_work.clone(),
            named_session: call.meta.get_str(SESSION_META).map(Cow::into_owned),
            tool: entry.name.clone(),
            is_task,
            settings,
        })
    }

    /// Returns `true` if the caller can read working memory.
    fn sees_memory(&self, plan: &ChunkingPlan) -> bool {
        Registry::view_for(self.registry.borrow().clone(), &plan.caller).reads_chunks()
    }

    /// Limits the length of an output. The result of a task is a member of the task's description.
    async fn limit_output(&self, mut output: CallOutput, plan: &ChunkingPlan) -> CallResult {
        let max = plan.least_bound();
        let short = match plan.is_task {
            true => members::task_without_long_members(&output.body, max),
            false => members::without_long_members(&output.body, max),
        };
        if let Some(short) = short {
            output.body = short;
        }
        if let Some(bound) = plan.entry_bound {
            return Ok(Outcome::Done(entry_results::limited(output, bound)));
        }
        if !plan.is_task {
            let body = self.limit_body(&output, plan).await?;
            return Ok(Outcome::Done(CallOutput { body: body.unwrap_or(output.body), ..output }));
        }
        let result = output.body.get("result").and_then(|result| result.to_object().ok());
        if let Some(whole) = result {
            let short = members::without_long_members(&whole, max);
            let result = CallOutput { body: short.clone().unwrap_or(whole), is_error: false };
            if let Some(body) = self.limit_body(&result, plan).await?.or(short) {
                output.body.set("result", body.to_json());
            }
        }
        Ok(Outcome::Done(output))
    }

    /// Returns the shortened body of a large result; `None` if it stays unchanged.
    async fn limit_body(
        &self,
        output: &CallOutput,
        plan: &ChunkingPlan,
    ) -> Result<Option<Object>, ToolError> {
        let size = preparation::size(output);
        // A result with no more bytes than the limit has characters is not parsed.
        if size <= plan.limit.threshold {
            return Ok(None);
        }
        let memory = plan.settings.memory.as_ref().filter(|_| self.sees_memory(plan));
        let place = match memory {
            Some(memory) => Some(plan.place(memory).await),
            None => None,
        };
        let preparation = plan.preparation(output, memory, place.as_ref());
        let split = match plan.run(size, move |stop| preparation.run(&stop)).await? {
            PreparedResult::Unchanged => return Ok(None),
            PreparedResult::Shortened(body) => return Ok(Some(body)),
            PreparedResult::Split(split) => split,
        };
        let (Some(memory), Some(Ok(place))) = (memory, place) else { return Ok(None) };
        let body = output.body.clone();
        Ok(Some(match plan.keep(memory, &place, split).await? {
            (split, Ok(())) => {
                let mut body = split.replaced(body);
                if let Some(handle) = place.handle(memory) {
                    set_handle(&mut body, &handle);
                }
                body
            }
            (split, Err(why)) => split.content.truncated(body, &why),
        }))
    }
}

impl Layer for LargeResults {
    fn name(&self) -> &'static str {
        "large_results"
    }

    fn call<'a>(&'a self, mut call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let Some(plan) = self.plan(&call, next.entry) else { return next.run(call) };
        if plan.entry_bound.is_some() {
            call.meta.set(RESULT_CHARS_META, Json::unsigned(plan.least_bound() as u64));
        }
        Box::pin(async move {
            match next.run(call).await {
                Ok(Outcome::Done(output)) => self.limit_output(output, &plan).await,
                Ok(other) => Ok(other),
                Err(error) => Err(peer_error::limited(error, plan.least_bound())),
            }
        })
    }
}

impl ChunkingPlan {
    /// Returns the bound of what is neither content nor stored, in characters.
    fn least_bound(&self) -> usize {
        self.limit.threshold.max(rules::MIN_BOUND)
    }

    /// Returns a place for the result. Fails with the reason, for the model.
    async fn place(&self, memory: &WorkingMemory) -> Result<ResultPlace, String> {
        let options = &self.settings.options;
        let caller = MemoryCaller::new(&self.caller, self.named_session.clone());
        let place = ResultPlace::new(memory, caller, &self.tool, options.ttl);
        storage::in_time(options.store_time, place).await.map_err(|refusal| refusal.text(&self.tool))
    }

    fn preparation(
        &self,
        output: &CallOutput,
        memory: Option<&WorkingMemory>,
        place: Option<&Result<ResultPlace, String>>,
    ) -> ResultPreparation {
        let target = memory.zip(place).map(|(memory, place)| MemoryTarget {
            max_bytes: memory.limits().bytes,
            keys: place.as_ref().map(|place| place.keys.clone()).map_err(Clone::clone),
        });
        let (settings, tool) = (self.settings.clone(), self.tool.clone());
        ResultPreparation { output: output.clone(), limit: self.limit, settings, tool, target }
    }

    /// Runs work on a result of this size: at once if it is brief, or else when the owner of the call has a turn.
    async fn run<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let Some(long_work) = self.long_work.as_ref().filter(|_| size > preparation::MAX_INLINE_BYTES) else {
            return Ok(work(StopSignal::default()));
        };
        let (caller, origin) = (self.caller.clone(), self.origin.clone());
        let call = Call { caller, origin, ..Call::tool(self.tool.clone(), Json::null()) };
        long_work.run(&call, work).await.map_err(|aborted| {
            ToolError::new(ErrorCode::ExecutionFailed, "The result could not be split").caused_by(aborted)
        })
    }

    /// Puts a result into working memory. Also returns the reason why it refuses, for the model.
    async fn keep(
        &self,
        memory: &WorkingMemory,
        place: &ResultPlace,
        mut split: Box<SplitResult>,
    ) -> Result<(Box<SplitResult>, Result<(), String>), ToolError> {
        let options = &self.settings.options;
        let put = async |split: &SplitResult, room| {
            let put = place.put(memory, split, options.ttl, room);
            storage::in_time(options.store_time, put).await
        };
        let mut outcome = put(&split, RoomPolicy::Refuse).await;
        if let Err(MemoryRefusal::Error(MemoryError::TooManyBytes { .. })) = outcome {
            outcome = put(&split, RoomPolicy::DropResults).await;
        } else if let Err(MemoryRefusal::Error(MemoryError::TooManyEntries { .. })) = outcome {
            // With fewer entries, several sections share a chunk.
            split = self.run(split.size(), move |_| split.packed()).await?;
            outcome = put(&split, RoomPolicy::DropResults).await;
        }
        Ok((split, outcome.map_err(|refusal| refusal.text(&self.tool))))
    }
}
