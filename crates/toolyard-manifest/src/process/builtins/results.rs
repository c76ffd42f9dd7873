//! The reader of `builtins.results`.

use std::time::Duration;

use crate::{cursor::Cursor, forms};

/// What becomes of results that are too large for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSettings {
    /// `threshold`: characters from which on a result is large, where nothing else is said. 64,000.
    pub threshold: usize,
    /// `leastChunk`: characters of a piece at least, where the threshold is lower. 20,000.
    pub least_chunk: usize,
    /// `mostChunks`: how many pieces one for each section may come to; of more, several sections share one. 100.
    pub most_chunks: usize,
    /// `ttl`: how long pieces live. 20 min.
    pub ttl: Duration,
    /// `storeTime`: how long the store may take to keep them. 10 s.
    pub store_time: Duration,
    /// `models`: the threshold of a model, by the id that requests name, or the beginning of such ids.
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

/// Reads the object `results`; one that is switched off is none.
pub(super) fn results(cursor: Cursor<'_>) -> Option<Option<ResultSettings>> {
    let mut fields = cursor.fields()?;
    let default = ResultSettings::default();
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let models = |cursor: Cursor<'_>| cursor.entries(forms::some_name, model);
    let results = ResultSettings {
        threshold: fields.with_default("threshold", Cursor::count, default.threshold),
        least_chunk: fields.with_default("leastChunk", Cursor::count, default.least_chunk),
        most_chunks: fields.with_default("mostChunks", Cursor::count, default.most_chunks),
        ttl: fields.with_default("ttl", Cursor::timeout, default.ttl),
        store_time: fields.with_default("storeTime", Cursor::timeout, default.store_time),
        models: fields.with_default("models", models, default.models),
    };
    fields.finish();
    Some(enabled.then_some(results))
}

/// What is said of one model.
fn model(cursor: Cursor<'_>) -> Option<usize> {
    let mut fields = cursor.fields()?;
    let threshold = fields.required("threshold", Cursor::count);
    fields.finish();
    threshold
}
