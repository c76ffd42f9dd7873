//! From which length on results are put into working memory, and which.

use std::collections::BTreeMap;
use std::time::Duration;

use toolyard_core::Entry;
use toolyard_core::access::Grant;
use toolyard_core::overrides::Chunking;

/// The member of a request's `_meta` in which a host names its model.
pub const MODEL_META: &str = "toolyard/model";

/// What is said of a model in particular.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelBehavior {
    /// From how many characters on results are large.
    pub tool_result_chunking_threshold: Option<usize>,
}

/// What is said of models, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelBehaviors(BTreeMap<String, ModelBehavior>);

impl FromIterator<(String, ModelBehavior)> for ModelBehaviors {
    fn from_iter<T: IntoIterator<Item = (String, ModelBehavior)>>(models: T) -> Self {
        Self(models.into_iter().map(|(id, behavior)| (id.to_lowercase(), behavior)).collect())
    }
}

impl ModelBehaviors {
    /// What is said of a model: under its id, else under the longest beginning of it that something is said of. Case does
    /// not count.
    #[must_use]
    pub fn of(&self, model: &str) -> ModelBehavior {
        let model = model.to_lowercase();
        let fits = self.0.iter().filter(|(id, _)| model.starts_with(id.as_str()));
        fits.max_by_key(|(id, _)| id.len()).map(|(_, behavior)| *behavior).unwrap_or_default()
    }
}

/// What is large, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeOptions {
    /// From how many characters on a result is large, where nothing else is said. Only what is longer is.
    pub threshold: usize,
    /// Characters of a piece at least, where the threshold is lower: few large ones are read sooner than many small ones.
    pub least_chunk: usize,
    /// How many pieces one for each section may come to; of more, several sections share one.
    pub most_chunks: usize,
    /// How long pieces live.
    pub ttl: Duration,
    /// How long the store may take to keep them.
    pub store_time: Duration,
    /// What is said of models.
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
    /// From how many characters on a result is large: as its tool says, else its caller, else as is said of the model.
    #[must_use]
    pub fn threshold(&self, tool: &Chunking, caller: Option<&Grant>, model: Option<&str>) -> usize {
        let of_caller = caller.and_then(|grant| grant.chunk_threshold);
        let model = model.or_else(|| caller?.model.as_deref());
        let of_model = || self.models.of(model?).tool_result_chunking_threshold;
        tool.threshold.or(of_caller).or_else(of_model).unwrap_or(self.threshold)
    }
}

/// Whether a tool promises the structure of its results.
#[must_use]
pub fn has_output_schema(entry: &Entry) -> bool {
    entry.tool.as_ref().is_some_and(|tool| tool.definition.get("outputSchema").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_that_of_the_tool_then_the_caller_then_the_model() {
        let behavior = |threshold| ModelBehavior { tool_result_chunking_threshold: threshold };
        let models = [
            ("openrouter/deepseek".to_owned(), behavior(Some(32_000))),
            ("openrouter/".to_owned(), behavior(Some(40_000))),
            ("openrouter/unsaid".to_owned(), behavior(None)),
        ];
        let options = LargeOptions { models: models.into_iter().collect(), ..LargeOptions::default() };
        let check =
            |tool: Option<usize>, caller: Option<usize>, own: Option<&str>, said: Option<&str>, expected| {
                let tool = Chunking { threshold: tool, ..Chunking::default() };
                let caller =
                    Grant { chunk_threshold: caller, model: own.map(Into::into), ..Grant::default() };
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
