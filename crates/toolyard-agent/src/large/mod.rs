//! Results that do not fit into a model's window: they are put into working memory in pieces, and the model is told where.
//!
//! - [`rules`]: for whom, and from which length on;
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

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::timeout;
use toolyard_core::layers::{Answer, Layer, Next};
use toolyard_core::{Call, Caller, Entry, Json, Outcome, Output, Target};

use crate::chunk::{self, Chunk};
use crate::guides::Guide;
use crate::memory::chunked as keys;
use crate::memory::{MemoryError, NewEntry, SESSION_META, Who, WorkingMemory};
use content::Content;
pub use rules::{CallerRule, LargeOptions, MODEL_META, ModelBehavior, ModelBehaviors, Rules, ToolRule};

/// How to work with large results, for a model.
pub const GUIDE: Guide = Guide::new(
    "large-results",
    "Work with tool results that were too large to be shown and were put into working memory in chunks",
    include_str!("guide.md"),
);

/// The layer that puts large results into working memory.
pub struct LargeResults {
    memory: WorkingMemory,
    rules: Arc<dyn Rules>,
    options: LargeOptions,
}

/// What is known of a call when its result comes.
struct Plan {
    threshold: usize,
    caller: Caller,
    named: Option<Json>,
    tool: Arc<str>,
    /// Whether its structured content has to stay what it is.
    keeps_structure: bool,
}

impl LargeResults {
    /// The layer over a memory. Who sees that memory, and what is large, is for `rules` to say.
    #[must_use]
    pub fn new(memory: WorkingMemory, rules: Arc<dyn Rules>, options: LargeOptions) -> Self {
        Self { memory, rules, options }
    }

    /// `None`: whatever comes of this call passes.
    fn plan(&self, call: &Call, entry: &Entry) -> Option<Plan> {
        let is_tool = matches!(call.target, Target::Tool(_));
        if !is_tool || !self.rules.sees_memory(call) || self.rules.is_exempt(entry) {
            return None;
        }
        let (tool, caller) = (self.rules.of_tool(entry), self.rules.of_caller(&call.caller));
        Some(Plan {
            threshold: self.options.threshold(&tool, &caller, call.meta.get_str(MODEL_META).as_deref()),
            caller: call.caller.clone(),
            named: call.meta.get(SESSION_META).cloned(),
            tool: entry.name.clone(),
            keeps_structure: rules::has_output_schema(entry) && !tool.chunk_structured,
        })
    }

    /// A result that is short enough.
    async fn fitted(&self, output: Output, plan: &Plan) -> Output {
        let Some(content) = Content::over(&output, plan.threshold, plan.keeps_structure).await else {
            return output;
        };
        let body = match self.keep(&content, plan).await {
            Ok(told) => content.replaced(output.body, &told),
            Err(why) => content.truncated(output.body, plan.threshold, &why),
        };
        Output { body, ..output }
    }

    /// Puts a text into working memory; gives what the model is told instead, or else why it is not there.
    async fn keep(&self, content: &Content, plan: &Plan) -> Result<String, String> {
        let namespace = plan.who().namespace().ok_or(message::NO_SESSION)?;
        // It is not cut up first: that takes the longer the less room there is.
        let (needed, limit) = (content.size(), self.memory.limits().bytes);
        if needed > limit {
            return Err(message::larger_than_memory(needed, limit));
        }
        let base = keys::fresh(&namespace, &plan.tool);
        let text = content.text();
        let chunks = self.chunks(&text, plan.threshold);
        let pieces = message::pieces(&base, &chunks);
        let outline = message::outline(&pieces, &chunks);
        let index = keys::index(&base);
        let (category, ttl) = (Some(message::CATEGORY), Some(self.options.ttl));
        let entries =
            pieces.iter().zip(&chunks).map(|(piece, chunk)| NewEntry::new(&piece.key, chunk.content));
        let index_entry = NewEntry { chunks: Some(chunks.len()), ..NewEntry::new(&index, &outline) };
        let entries: Vec<_> =
            entries.chain([index_entry]).map(|entry| NewEntry { category, ttl, ..entry }).collect();
        match timeout(self.options.store_time, self.memory.save(&namespace, &entries)).await {
            Ok(Ok(_)) => Ok(message::message(&plan.tool, &text, &pieces, &index)),
            Ok(Err(error)) => Err(refused(&plan.tool, &error)),
            Err(_) => Err(message::TOO_SLOW.to_owned()),
        }
    }

    /// The pieces of a text, by its sections; where those are too many to be listed, or what looks like headings are lines that
    /// would be lost, with several in each.
    fn chunks<'a>(&self, text: &'a str, threshold: usize) -> Vec<Chunk<'a>> {
        let max = threshold.max(self.options.least_chunk);
        let most = self.options.most_chunks;
        let chunks: Vec<_> = chunk::chunks(text, max).take(most + 1).collect();
        let fits = chunks.len() <= most && !chunk::has_empty_sections(text);
        if fits { chunks } else { chunk::packed(text, max) }
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
    fn who(&self) -> Who {
        Who {
            session: self.caller.session.as_deref().map(str::to_owned),
            named: self.named.as_ref().and_then(Json::to_str).map(std::borrow::Cow::into_owned),
            principal: self.caller.principal.as_deref().map(str::to_owned),
        }
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
