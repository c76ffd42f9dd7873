//! Puts results that do not fit into a model's context window into working memory, in chunks, and tells the model their
//! keys.
//!
//! - [`rules`]: the length above which a result is large, and its chunks;
//! - `content`: the parts of a result, and the result without some of them;
//! - `mirror`: texts that repeat the structured content;
//! - `places`: the text that is stored with each chunk, so that nothing of the whole is lost;
//! - [`message`]: the text that the model reads instead;
//! - `shape`: the shape of JSON in that text.
//!
//! [`LargeResults`] is a layer. It surrounds the layers that retry a call, so that only the final result is stored. Callers
//! that see no working memory get the beginning of a large result. Results that are short enough pass without being
//! parsed.

mod content;
pub mod message;
mod mirror;
mod places;
pub mod rules;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;
use toolyard_core::layers::{CallResult, Layer, NextLayer};
use toolyard_core::output_schema::{OutputSchemaMode, STRUCTURED, StoredResult};
use toolyard_core::{
    Call, CallOutput, CallTarget, Caller, Object, Outcome, Registry, RegistryEntry, TaskAction,
};
use toolyard_manifest::ResultSettings;

use crate::chunk::{self, TextChunk};
use crate::guides::GuideDocument;
use crate::memory::chunk_keys as keys;
use crate::memory::session_handles::set_handle;
use crate::memory::tools::NAMES;
use crate::memory::{MemoryAccess, MemoryCaller, MemoryError, NewEntry, RoomPolicy, WorkingMemory};
use content::{LargeContent, ResultLimit, WholePart};
use message::{StoredText, VisibleKeys};
use places::StoredChunks;
pub use rules::MODEL_META;

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
}

/// Settings of the layer, until the manifest changes.
#[derive(Debug)]
pub struct LargeSettings {
    /// Working memory that stores the results. `None`: they are truncated.
    pub memory: Option<WorkingMemory>,
    /// Handler that has the tools of that memory. Results of these tools pass at any length: a chunk that is read must
    /// not be stored again.
    pub handler: Arc<str>,
    /// Limits and thresholds.
    pub options: ResultSettings,
}

/// Facts about a call that its result needs.
struct ChunkingPlan {
    settings: Arc<LargeSettings>,
    limit: ResultLimit,
    /// True if results with structured content pass at any length.
    keeps_structure: bool,
    caller: Caller,
    memory_caller: MemoryCaller,
    tool: Arc<str>,
    /// True for `tasks/get`, false for a tool call.
    is_task: bool,
}

/// A result that working memory has.
struct KeptResult {
    stored: StoredText,
    /// Handle for the host, if the caller needs one.
    handle: Option<String>,
}

impl LargeResults {
    /// Returns the layer. It does nothing while there are no settings. The registry tells which callers see working
    /// memory.
    #[must_use]
    pub const fn new(
        settings: watch::Receiver<Option<Arc<LargeSettings>>>,
        registry: watch::Receiver<Arc<Registry>>,
    ) -> Self {
        Self { settings, registry }
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
        if entry.handler.name == settings.handler && NAMES.contains(&&*entry.own) {
            return None;
        }
        let (grant, model) = (call.caller.grant.as_deref(), call.meta.get_str(MODEL_META));
        let output_schemas = rules::output_schemas(&settings.options, entry);
        Some(ChunkingPlan {
            limit: ResultLimit {
                threshold: rules::threshold(&settings.options, &entry.chunking, grant, model.as_deref()),
                promises_structure: output_schemas == Some(OutputSchemaMode::Extend),
            },
            keeps_structure: output_schemas == Some(OutputSchemaMode::Keep),
            caller: call.caller.clone(),
            memory_caller: MemoryCaller::of_call(call),
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
    async fn limit_output(&self, mut output: CallOutput, plan: &ChunkingPlan) -> CallOutput {
        if !plan.is_task {
            let body = self.limit_body(&output, plan).await;
            return CallOutput { body: body.unwrap_or(output.body), ..output };
        }
        let result = output.body.get("result").and_then(|result| result.to_object().ok());
        if let Some(body) = result
            && let Some(body) = self.limit_body(&CallOutput { body, is_error: false }, plan).await
        {
            output.body.set("result", body.to_json());
        }
        output
    }

    /// Returns the shortened body of a large result; `None` if it stays unchanged.
    async fn limit_body(&self, output: &CallOutput, plan: &ChunkingPlan) -> Option<Object> {
        if plan.keeps_structure && output.body.get(STRUCTURED).is_some() {
            return None;
        }
        let content = LargeContent::longer_than(output, plan.limit).await?;
        let body = output.body.clone();
        if let Some(shortened) = content.without_structure(&body) {
            return Some(shortened);
        }
        let kept = match (&plan.settings.memory, self.sees_memory(plan)) {
            (Some(memory), true) => plan.keep(memory, &content).await,
            _ => Err(message::NO_READER.to_owned()),
        };
        Some(match kept {
            Ok(KeptResult { stored, handle }) => {
                let note = stored.note();
                let place = Some((&*stored.index, stored.pieces.len()));
                let reference = StoredResult { stored: place, chars: stored.chars, note: &note }.to_json();
                let room = content.room().saturating_sub(reference.as_bytes().len());
                let mut message = stored.message(room);
                if content.whole_part() == Some(WholePart::Structure) {
                    message.push_str(message::STRUCTURE_IS_WHOLE);
                }
                let mut body = content.with_message(body, &message, reference);
                if let Some(handle) = handle {
                    set_handle(&mut body, &handle);
                }
                body
            }
            Err(why) => content.truncated(body, &why),
        })
    }
}

impl Layer for LargeResults {
    fn name(&self) -> &'static str {
        "large_results"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let Some(plan) = self.plan(&call, next.entry) else { return next.run(call) };
        Box::pin(async move {
            match next.run(call).await? {
                Outcome::Done(output) => Ok(Outcome::Done(self.limit_output(output, &plan).await)),
                other => Ok(other),
            }
        })
    }
}

impl ChunkingPlan {
    /// Puts a text into working memory. Fails with the reason, for the model.
    async fn keep(&self, memory: &WorkingMemory, content: &LargeContent) -> Result<KeptResult, String> {
        let options = &self.settings.options;
        // Checked before the text is split, which takes longer the less fits.
        let (needed, limit) = (content.size(), memory.limits().bytes);
        if needed > limit {
            return Err(message::larger_than_memory(needed, limit));
        }
        let text = content.text();
        let chunks = rules::chunks(options, &text, self.limit.threshold);
        let stored = async {
            let access = memory.access(self.memory_caller.clone()).await?;
            match self.put(memory, &access, &text, &chunks, RoomPolicy::Refuse).await {
                // With fewer entries, several sections share a chunk.
                Err(MemoryError::TooManyEntries { .. }) => {
                    let size = rules::chunk_size(options, self.limit.threshold);
                    let chunks = chunk::packed_chunks(&text, size);
                    self.put(memory, &access, &text, &chunks, RoomPolicy::DropResults).await
                }
                Err(MemoryError::TooManyBytes { .. }) => {
                    self.put(memory, &access, &text, &chunks, RoomPolicy::DropResults).await
                }
                result => result,
            }
        };
        match timeout(options.store_time, stored).await {
            Ok(result) => result.map_err(|error| refusal_text(&self.tool, &error)),
            Err(_) => Err(message::TOO_SLOW.to_owned()),
        }
    }

    /// Stores the chunks of a text and their outline.
    async fn put(
        &self,
        memory: &WorkingMemory,
        access: &MemoryAccess,
        text: &str,
        chunks: &[TextChunk<'_>],
        room: RoomPolicy,
    ) -> Result<KeptResult, MemoryError> {
        let options = &self.settings.options;
        let result = access.result_namespace();
        let base = keys::new_base(&result.namespace, &self.tool);
        // The keys that the caller reads differ from the stored ones if they carry an id.
        let visible =
            VisibleKeys { base: access.visible_base(&result, &base, options.ttl), has_id: result.is_new };
        let pieces = message::pieces(&visible, chunks);
        let outline = message::outline(&visible, &pieces, chunks);
        let index = keys::index_key(&base);
        let (category, ttl) = (Some(message::CATEGORY), Some(options.ttl));
        let stored_keys: Vec<_> = (0..chunks.len()).map(|number| keys::chunk_key(&base, number)).collect();
        let entries = stored_keys
            .iter()
            .zip(StoredChunks::new(text, chunks))
            .map(|(key, (value, place))| NewEntry { place, ..NewEntry::new(key, value) });
        let index_entry = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &outline) };
        let entries: Vec<_> =
            entries.chain([index_entry]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        memory.save_with(&access.address(), &result.namespace, &entries, room).await?;
        let stored = StoredText::new(self.tool.clone(), text, pieces, &visible);
        Ok(KeptResult { stored, handle: access.handle_of(&result.namespace, memory.limits().longest_ttl) })
    }
}

/// Returns the reason why working memory refuses a result, for the model; logs failures of the store.
fn refusal_text(tool: &str, error: &MemoryError) -> String {
    if let MemoryError::Store(cause) = error {
        tracing::warn!(
            tool,
            error = cause as &dyn std::error::Error,
            "failed to store a large result, truncating it"
        );
    }
    error.to_string()
}
