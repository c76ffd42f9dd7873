//! Options of large results.

use std::collections::BTreeMap;
use std::time::Duration;

use toolyard_core::RegistryEntry;
use toolyard_core::access::AccessGrant;
use toolyard_core::overrides::ChunkingPolicy;

/// Member of a request's `_meta` in which a host names its model.
pub const MODEL_META: &str = "toolyard/model";

/// Settings of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelBehavior {
    /// Length in characters above which a result is large.
    pub tool_result_chunking_threshold: Option<usize>,
}

/// Settings of models by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelBehaviors(BTreeMap<String, ModelBehavior>);

impl FromIterator<(String, ModelBehavior)> for ModelBehaviors {
    fn from_iter<T: IntoIterator<Item = (String, ModelBehavior)>>(models: T) -> Self {
        Self(models.into_iter().map(|(id, behavior)| (id.to_lowercase(), behavior)).collect())
    }
}

impl ModelBehaviors {
    /// Returns the settings of a model: those of its id, or else those of the longest configured prefix of it. Ignores
    /// case.
    #[must_use]
    pub fn of(&self, model: &str) -> ModelBehavior {
        let model = model.to_lowercase();
        let fits = self.0.iter().filter(|(id, _)| model.starts_with(id.as_str()));
        fits.max_by_key(|(id, _)| id.len()).map(|(_, behavior)| *behavior).unwrap_or_default()
    }
}

/// Options of large results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeOptions {
    /// Length in characters above which a result is large, unless the tool, the caller or the model has its own.
    pub threshold: usize,
    /// Minimum length of a chunk in characters, if the threshold is lower. Few long chunks take fewer calls to read.
    pub least_chunk: usize,
    /// Maximum number of chunks with one section each. Above it, several sections share a chunk.
    pub most_chunks: usize,
    /// Time to live of chunks.
    pub ttl: Duration,
    /// Maximum time for storing a result.
    pub store_time: Duration,
    /// Settings of models.
    pub models: ModelBehaviors,
}

impl Default for LargeOptions {
    fn default() -> Self {
        Self {
            threshold: 64_000,
            least_chunk: 20_000,
            most_chunks: 100,
            ttl: Duration::from_secs(20 * 60),
            store_time: Duration::from_secs(10),
            models: ModelBehaviors::default(),
        }
    }
}

impl LargeOptions {
    /// Returns the threshold in characters: that of the tool, or else of the caller, or else of the model.
    #[must_use]
    pub fn threshold(
        &self,
        tool: &ChunkingPolicy,
        caller: Option<&AccessGrant>,
        model: Option<&str>,
    ) -> usize {
        let of_caller = caller.and_then(|grant| grant.chunk_threshold);
        let model = model.or_else(|| caller?.model.as_deref());
        let of_model = || self.models.of(model?).tool_result_chunking_threshold;
        tool.threshold.or(of_caller).or_else(of_model).unwrap_or(self.threshold)
    }
}

/// Returns `true` if a tool declares an output schema.
#[must_use]
pub fn has_output_schema(entry: &RegistryEntry) -> bool {
    entry.tool.as_ref().is_some_and(|tool| tool.definition.get("outputSchema").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_precedence_is_tool_caller_model() {
        let behavior = |threshold| ModelBehavior { tool_result_chunking_threshold: threshold };
        let models = [
            ("openrouter/deepseek".to_owned(), behavior(Some(32_000))),
            ("openrouter/".to_owned(), behavior(Some(40_000))),
            ("openrouter/unsaid".to_owned(), behavior(None)),
        ];
        let options = LargeOptions { models: models.into_iter().collect(), ..LargeOptions::default() };
        let check = |tool: Option<usize>,
                     caller: Option<usize>,
                     own: Option<&str>,
                     said: Option<&str>,
                     expected| {
            let tool = ChunkingPolicy { threshold: tool, ..ChunkingPolicy::default() };
            let caller =
                AccessGrant { chunk_threshold: caller, model: own.map(Into::into), ..AccessGrant::default() };
            let threshold = options.threshold(&tool, Some(&caller), said);
            assert_eq!(threshold, expected, "{tool:?} {caller:?} {said:?}");
        };
        let (deepseek, other) = (Some("openrouter/deepseek"), Some("local/llama"));
        check(None, None, None, None, 64_000);
        check(None, None, None, deepseek, 32_000);
        check(None, None, None, Some("OpenRouter/DeepSeek-Chat"), 32_000);
        check(None, None, None, Some("openrouter/other"), 40_000);
        check(None, None, None, Some("openrouter/unsaid"), 64_000);
        check(None, None, deepseek, None, 32_000);
        check(None, None, deepseek, other, 64_000);
        check(None, Some(10), deepseek, None, 10);
        check(Some(7), Some(10), None, deepseek, 7);
    }
}
