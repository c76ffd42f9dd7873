//! The reader of `builtins.results`.

use std::time::Duration;

use crate::{cursor::ValueCursor, formats};

/// Treatment of results that are too large for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSettings {
    /// `threshold`: length from which a result is large, in characters, unless another setting applies. Default:
    /// 64,000.
    pub threshold: usize,
    /// `leastChunk`: minimum length of a chunk if the threshold is lower, in characters. Default: 20,000.
    pub least_chunk: usize,
    /// `mostChunks`: maximum number of chunks with one section each; beyond it several sections share a chunk. Default:
    /// 100.
    pub most_chunks: usize,
    /// `ttl`: lifetime of chunks. Default: 20 min.
    pub ttl: Duration,
    /// `storeTime`: time limit for saving chunks. Default: 10 s.
    pub store_time: Duration,
    /// `models`: thresholds of models, by the id in requests or a prefix of it.
    pub models: Vec<(String, usize)>,
}

impl Default for ResultSettings {
    fn default() -> Self {
        Self {
            threshold: 64_000,
            least_chunk: 20_000,
            most_chunks: 100,
            ttl: Duration::from_secs(20 * 60),
            store_time: Duration::from_secs(10),
            models: Vec::new(),
        }
    }
}

/// Reads the object `results`; `enabled: false` becomes `None`.
pub(super) fn results(cursor: ValueCursor<'_>) -> Option<Option<ResultSettings>> {
    let mut fields = cursor.fields()?;
    let default = ResultSettings::default();
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let models = |cursor: ValueCursor<'_>| cursor.entries(formats::non_empty_name, model_threshold);
    let results = ResultSettings {
        threshold: fields.with_default("threshold", ValueCursor::count, default.threshold),
        least_chunk: fields.with_default("leastChunk", ValueCursor::count, default.least_chunk),
        most_chunks: fields.with_default("mostChunks", ValueCursor::count, default.most_chunks),
        ttl: fields.with_default("ttl", ValueCursor::timeout, default.ttl),
        store_time: fields.with_default("storeTime", ValueCursor::timeout, default.store_time),
        models: fields.with_default("models", models, default.models),
    };
    fields.finish();
    Some(enabled.then_some(results))
}

/// Reads the entry of one model.
fn model_threshold(cursor: ValueCursor<'_>) -> Option<usize> {
    let mut fields = cursor.fields()?;
    let threshold = fields.required("threshold", ValueCursor::count);
    fields.finish();
    threshold
}
