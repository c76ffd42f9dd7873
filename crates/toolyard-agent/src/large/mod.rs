//! Results that do not fit into a model's window: they are put into working memory in pieces, and the model is told where.
//!
//! - [`rules`]: from which length on;
//! - `content`: the texts of a result, and the result without them;
//! - [`message`]: how the model is told where the pieces are.
//!
//! [`LargeResults`] is a layer: it stands outside of whatever repeats a call, so that only the final result is kept, and has
//! nothing to do for callers that see no working memory. What is short enough passes without being opened.

mod content;
pub mod message;
pub mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;
use toolyard_core::layers::{Answer, Layer, Next};
use toolyard_core::{Call, Caller, Entry, Json, Object, Outcome, Output, Registry, Target, TaskAction};

use crate::chunk::{self, Chunk};
use crate::guides::Guide;
use crate::memory::chunked as keys;
use crate::memory::tools::NAMES;
use crate::memory::{MemoryError, Namespace, NewEntry, SESSION_META, Who, WorkingMemory};
use content::Content;
pub use rules::{LargeOptions, MODEL_META, ModelBehavior, ModelBehaviors};

/// How to work with large results, for a model.
pub const GUIDE: Guide = Guide::new(
    "large-results",
    "Work with tool results that were too large to be shown and were put into working memory in chunks",
    include_str!("guide.md"),
);

/// The layer that puts large results into working memory.
pub struct LargeResults {
    settings: watch::Receiver<Option<Arc<LargeSettings>>>,
    registry: watch::Receiver<Arc<Registry>>,
}

/// What the layer goes by, for as long as nobody edits it.
#[derive(Debug)]
pub struct LargeSettings {
    /// Where results are put.
    pub memory: WorkingMemory,
    /// The handler that has the tools of that memory. What these give passes however long it is: what is read from there would be
    /// put there again.
    pub handler: Arc<str>,
    /// What is large.
    pub options: LargeOptions,
}

/// What is known of a call when its result comes.
struct Plan {
    settings: Arc<LargeSettings>,
    threshold: usize,
    caller: Caller,
    named: Option<Json>,
    tool: Arc<str>,
    /// Whether its structured content has to stay what it is.
    keeps_structure: bool,
    /// Whether a task is asked for, and not the tool called.
    is_task: bool,
}

impl LargeResults {
    /// The layer, which does nothing while there are no settings. Who sees the tools of working memory the registry says.
    #[must_use]
    pub const fn new(
        settings: watch::Receiver<Option<Arc<LargeSettings>>>,
        registry: watch::Receiver<Arc<Registry>>,
    ) -> Self {
        Self { settings, registry }
    }

    /// `None`: whatever comes of this call passes.
    fn plan(&self, call: &Call, entry: &Entry) -> Option<Plan> {
        let is_task = match &call.target {
            Target::Tool(_) => false,
            Target::Task(task) if task.action == TaskAction::Get => true,
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
        Some(Plan {
            threshold: settings.options.threshold(&entry.chunking, grant, model.as_deref()),
            caller: call.caller.clone(),
            named: call.meta.get(SESSION_META).cloned(),
            tool: entry.name.clone(),
            keeps_structure: rules::has_output_schema(entry) && entry.chunking.structured != Some(true),
            is_task,
            settings,
        })
    }

    /// Whether the caller could read what is put into working memory.
    fn sees_memory(&self, plan: &Plan) -> bool {
        Registry::seen_by(self.registry.borrow().clone(), &plan.caller).reads_chunks()
    }

    /// What came of a call, short enough. Of a task it is in what describes the task.
    async fn fitted(&self, mut output: Output, plan: &Plan) -> Output {
        if !plan.is_task {
            let body = self.shortened(&output, plan).await;
            return Output { body: body.unwrap_or(output.body), ..output };
        }
        let result = output.body.get("result").and_then(|result| result.to_object().ok());
        if let Some(body) = result
            && let Some(body) = self.shortened(&Output { body, is_error: false }, plan).await
        {
            output.body.set("result", body.to_json());
        }
        output
    }

    /// A result that is large, as one that is not; `None` where it stays as it is.
    async fn shortened(&self, output: &Output, plan: &Plan) -> Option<Object> {
        let content = Content::over(output, plan.threshold, plan.keeps_structure).await?;
        if !self.sees_memory(plan) {
            return None;
        }
        let body = output.body.clone();
        Some(match plan.keep(&content).await {
            Ok(told) => content.replaced(body, &told),
            Err(why) => content.truncated(body, plan.threshold, &why),
        })
    }
}

impl Layer for LargeResults {
    fn name(&self) -> &'static str {
        "large_results"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let Some(plan) = self.plan(&call, next.entry) else { return next.run(call) };
        Box::pin(async move {
            match next.run(call).await? {
                Outcome::Done(output) => Ok(Outcome::Done(self.fitted(output, &plan).await)),
                other => Ok(other),
            }
        })
    }
}

impl Plan {
    /// Puts a text into working memory; gives what the model is told instead, or else why it is not there.
    async fn keep(&self, content: &Content) -> Result<String, String> {
        let LargeSettings { memory, options, .. } = &*self.settings;
        let namespace = self.who().namespace().ok_or(message::NO_SESSION)?;
        // It is not cut up first: that takes the longer the less room there is.
        let (needed, limit) = (content.size(), memory.limits().bytes);
        if needed > limit {
            return Err(message::larger_than_memory(needed, limit));
        }
        let text = content.text();
        let chunks = options.chunks(&text, self.threshold);
        let kept = async {
            match self.put(&namespace, &text, &chunks).await {
                // Several sections may share a piece, as well.
                Err(MemoryError::TooManyEntries { .. }) => {
                    let chunks = chunk::packed(&text, options.size(self.threshold));
                    self.put(&namespace, &text, &chunks).await
                }
                kept => kept,
            }
        };
        match timeout(options.store_time, kept).await {
            Ok(kept) => kept.map_err(|error| refused(&self.tool, &error)),
            Err(_) => Err(message::TOO_SLOW.to_owned()),
        }
    }

    /// Puts the pieces of a text there, and an outline of them.
    async fn put(
        &self,
        namespace: &Namespace,
        text: &str,
        chunks: &[Chunk<'_>],
    ) -> Result<String, MemoryError> {
        let LargeSettings { memory, options, .. } = &*self.settings;
        let base = keys::fresh(namespace, &self.tool);
        let pieces = message::pieces(&base, chunks);
        let outline = message::outline(&pieces, chunks);
        let index = keys::index(&base);
        let (category, ttl) = (Some(message::CATEGORY), Some(options.ttl));
        let entries =
            pieces.iter().zip(chunks).map(|(piece, chunk)| NewEntry::new(&piece.key, chunk.content));
        let index_entry = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &outline) };
        let entries: Vec<_> =
            entries.chain([index_entry]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        memory.save(namespace, &entries).await?;
        Ok(message::message(&self.tool, text, &pieces, &index))
    }

    fn who(&self) -> Who {
        Who::new(&self.caller, self.named.as_ref().and_then(Json::to_str).map(Cow::into_owned))
    }
}

impl LargeOptions {
    /// How long a piece may be, in characters.
    fn size(&self, threshold: usize) -> usize {
        threshold.max(self.least_chunk)
    }

    /// The pieces of a text, by its sections; where those are too many to be listed, or what looks like headings are lines that
    /// would be lost, with several in each.
    fn chunks<'a>(&self, text: &'a str, threshold: usize) -> Vec<Chunk<'a>> {
        let (max, most) = (self.size(threshold), self.most_chunks);
        let chunks: Vec<_> = chunk::chunks(text, max).take(most + 1).collect();
        let fits = chunks.len() <= most && !chunk::has_empty_sections(text);
        if fits { chunks } else { chunk::packed(text, max) }
    }
}

/// Why working memory does not take a result, for the model; trouble with the store is for the log as well.
fn refused(tool: &str, error: &MemoryError) -> String {
    if let MemoryError::Store(cause) = error {
        tracing::warn!(
            tool,
            error = cause as &dyn std::error::Error,
            "a large result is not kept: it is truncated"
        );
    }
    error.to_string()
}
