//! Puts results that do not fit into a model's context window into working memory, in chunks, and tells the model their
//! keys.
//!
//! - [`rules`]: the length above which a result is large, and its chunks;
//! - `content`: the texts of a result, and the result with other content;
//! - `places`: the text that is stored with each chunk, so that nothing of the whole is lost;
//! - [`message`]: the text that the model reads instead.
//!
//! [`LargeResults`] is a layer. It surrounds the layers that retry a call, so that only the final result is stored, and
//! does nothing for callers that see no working memory. Results that are short enough pass without being parsed.

mod content;
pub mod message;
mod places;
pub mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;
use toolyard_core::layers::{CallResult, Layer, NextLayer};
use toolyard_core::{
    Call, CallOutput, CallTarget, Caller, Json, Object, Outcome, Registry, RegistryEntry, TaskAction,
};
use toolyard_manifest::ResultSettings;

use crate::chunk::{self, TextChunk};
use crate::guides::GuideDocument;
use crate::memory::chunk_keys as keys;
use crate::memory::tools::NAMES;
use crate::memory::{
    MemoryCaller, MemoryError, MemoryNamespace, NewEntry, RoomPolicy, SESSION_META, WorkingMemory,
};
use content::LargeContent;
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
    /// Working memory that stores the results.
    pub memory: WorkingMemory,
    /// Handler that has the tools of that memory. Results of these tools pass at any length: a chunk that is read must
    /// not be stored again.
    pub handler: Arc<str>,
    /// Limits and thresholds.
    pub options: ResultSettings,
}

/// Facts about a call that its result needs.
struct ChunkingPlan {
    settings: Arc<LargeSettings>,
    threshold: usize,
    caller: Caller,
    named_session: Option<Json>,
    tool: Arc<str>,
    /// True if the structured content must stay unchanged.
    keeps_structure: bool,
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
        Some(ChunkingPlan {
            threshold: rules::threshold(&settings.options, &entry.chunking, grant, model.as_deref()),
            caller: call.caller.clone(),
            named_session: call.meta.get(SESSION_META).cloned(),
            tool: entry.name.clone(),
            keeps_structure: rules::has_output_schema(entry) && entry.chunking.structured != Some(true),
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
        let content = LargeContent::longer_than(output, plan.threshold, plan.keeps_structure).await?;
        if !self.sees_memory(plan) {
            return None;
        }
        let body = output.body.clone();
        Some(match plan.keep(&content).await {
            Ok(message) => content.with_message(body, &message),
            Err(why) => content.truncated(body, plan.threshold, &why),
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
    /// Puts a text into working memory. Returns the message for the model, or else the reason for the failure.
    async fn keep(&self, content: &LargeContent) -> Result<String, String> {
        let LargeSettings { memory, options, .. } = &*self.settings;
        let namespace = self.memory_caller().namespace().ok_or(message::NO_SESSION)?;
        // Checked before the text is split, which takes longer the less fits.
        let (needed, limit) = (content.size(), memory.limits().bytes);
        if needed > limit {
            return Err(message::larger_than_memory(needed, limit));
        }
        let text = content.text();
        let chunks = rules::chunks(options, &text, self.threshold);
        let stored = async {
            match self.put(&namespace, &text, &chunks, RoomPolicy::Refuse).await {
                // With fewer entries, several sections share a chunk.
                Err(MemoryError::TooManyEntries { .. }) => {
                    let chunks = chunk::packed_chunks(&text, rules::chunk_size(options, self.threshold));
                    self.put(&namespace, &text, &chunks, RoomPolicy::DropResults).await
                }
                Err(MemoryError::TooManyBytes { .. }) => {
                    self.put(&namespace, &text, &chunks, RoomPolicy::DropResults).await
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
        namespace: &MemoryNamespace,
        text: &str,
        chunks: &[TextChunk<'_>],
        room: RoomPolicy,
    ) -> Result<String, MemoryError> {
        let LargeSettings { memory, options, .. } = &*self.settings;
        let base = keys::new_base(namespace, &self.tool);
        let pieces = message::pieces(&base, chunks);
        let outline = message::outline(&pieces, chunks);
        let index = keys::index_key(&base);
        let (category, ttl) = (Some(message::CATEGORY), Some(options.ttl));
        let stored = StoredChunks::new(text, chunks);
        let entries = pieces
            .iter()
            .zip(stored)
            .map(|(piece, (value, place))| NewEntry { place, ..NewEntry::new(&piece.key, value) });
        let index_entry = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &outline) };
        let entries: Vec<_> =
            entries.chain([index_entry]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        memory.save_with(namespace, &entries, room).await?;
        Ok(message::message(&self.tool, text, &pieces, &index))
    }

    fn memory_caller(&self) -> MemoryCaller {
        MemoryCaller::new(
            &self.caller,
            self.named_session.as_ref().and_then(Json::to_str).map(Cow::into_owned),
        )
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
