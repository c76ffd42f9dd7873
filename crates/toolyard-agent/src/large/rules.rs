//! The length above which a result is large, and its chunks.

use toolyard_core::RegistryEntry;
use toolyard_core::access::AccessGrant;
use toolyard_core::output_schema::OutputSchemaMode;
use toolyard_core::overrides::ChunkingPolicy;
use toolyard_manifest::ResultSettings;

use crate::chunk::{self, TextChunk};

/// Member of a request's `_meta` in which a host names its model.
pub const MODEL_META: &str = "toolyard/model";

/// Bound that messages, errors and results of working memory have at least, in characters.
pub(super) const MIN_BOUND: usize = 2000;

/// Number of chunks of one section each for every heading without text.
const EMPTY_SHARE: usize = 4;

/// Returns the threshold in characters: that of the tool, or else of the caller, or else of the model.
#[must_use]
pub fn threshold(
    settings: &ResultSettings,
    tool: &ChunkingPolicy,
    caller: Option<&AccessGrant>,
    model: Option<&str>,
) -> usize {
    let of_caller = caller.and_then(|grant| grant.chunk_threshold);
    let model = model.or_else(|| caller?.model.as_deref());
    let of_model = || model_threshold(settings, model?);
    tool.threshold.or(of_caller).or_else(of_model).unwrap_or(settings.threshold)
}

/// Returns the threshold of a model: that of its id, or else that of the longest configured prefix of it. Ignores case.
fn model_threshold(settings: &ResultSettings, model: &str) -> Option<usize> {
    let fits = settings.models.iter().filter(|(id, _)| begins_with(model, id));
    fits.max_by_key(|(id, _)| id.len()).map(|(_, threshold)| *threshold)
}

/// Returns `true` if a text has a prefix, ignoring case.
fn begins_with(text: &str, prefix: &str) -> bool {
    let mut text = text.chars().flat_map(char::to_lowercase);
    prefix.chars().flat_map(char::to_lowercase).all(|c| text.next() == Some(c))
}

/// Returns the maximum length of a chunk in characters.
pub(super) fn chunk_size(settings: &ResultSettings, threshold: usize) -> usize {
    threshold.max(settings.least_chunk)
}

/// Splits a text into a chunk per section. Packs several sections into each chunk if there are too many of them, or if
/// one in [`EMPTY_SHARE`] is empty: then lines that look like headings are none.
pub(super) fn chunks<'a>(settings: &ResultSettings, text: &'a str, threshold: usize) -> Vec<TextChunk<'a>> {
    let (max, most) = (chunk_size(settings, threshold), settings.most_chunks);
    let chunks: Vec<_> = chunk::chunks(text, max).take(most + 1).collect();
    let fits = chunks.len() <= most && chunk::empty_sections(text) * EMPTY_SHARE <= chunks.len();
    if fits { chunks } else { chunk::packed_chunks(text, max) }
}

/// Returns the treatment of a tool's output schema; `None` if it has none.
#[must_use]
pub fn output_schemas(settings: &ResultSettings, entry: &RegistryEntry) -> Option<OutputSchemaMode> {
    entry.tool.as_ref()?.output_schema()?;
    Some(entry.chunking.output_schemas(settings.output_schemas))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_precedence_is_tool_caller_model() {
        let models = [("openrouter/deepseek", 32_000), ("OpenRouter/", 40_000)];
        let models = models.map(|(id, threshold)| (id.to_owned(), threshold)).to_vec();
        let settings = ResultSettings { models, ..ResultSettings::default() };
        let check = |tool: Option<usize>,
                     caller: Option<usize>,
                     own: Option<&str>,
                     said: Option<&str>,
                     expected| {
            let tool = ChunkingPolicy { threshold: tool, ..ChunkingPolicy::default() };
            let caller =
                AccessGrant { chunk_threshold: caller, model: own.map(Into::into), ..AccessGrant::default() };
            let threshold = threshold(&settings, &tool, Some(&caller), said);
            assert_eq!(threshold, expected, "{tool:?} {caller:?} {said:?}");
        };
        let (deepseek, other) = (Some("openrouter/deepseek"), Some("local/llama"));
        check(None, None, None, None, 64_000);
        check(None, None, None, deepseek, 32_000);
        check(None, None, None, Some("OpenRouter/DeepSeek-Chat"), 32_000);
        check(None, None, None, Some("OPENROUTER/OTHER"), 40_000);
        check(None, None, None, Some("openrouter"), 64_000);
        check(None, None, None, other, 64_000);
        check(None, None, deepseek, None, 32_000);
        check(None, None, deepseek, other, 64_000);
        check(None, Some(10), deepseek, None, 10);
        check(Some(7), Some(10), None, deepseek, 7);
    }
}
