//! The reader of `builtins.memory`.

use std::time::Duration;

use crate::cursor::Cursor;

/// How much working memory there is. All bounds but the last two are those of one namespace: a session's, or a key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// `entries`. 500.
    pub entries: usize,
    /// `bytes`: of all entries together. 32 MiB.
    pub bytes: usize,
    /// `valueBytes`: of one value. 4 MiB.
    pub value_bytes: usize,
    /// `ttl`: how long an entry lives whose saver does not say. 5 min.
    pub ttl: Duration,
    /// `longestTtl`: how long one may live. 24 h.
    pub longest_ttl: Duration,
    /// `totalBytes`: of all namespaces together. 1 GiB.
    pub total_bytes: usize,
    /// `query`: what queries may take.
    pub query: QuerySettings,
}

/// What `query_working_memory` may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySettings {
    /// `inputBytes`: of the JSON that is looked into. 4 MiB.
    pub input_bytes: usize,
    /// `inputValues`: values and names in it. 500,000.
    pub input_values: usize,
    /// `values`: that an expression may make. 4,000,000.
    pub values: usize,
    /// `resultChars`: characters of what is given. 64,000.
    pub result_chars: usize,
    /// `time`: how long anybody waits for one. 5 s.
    pub time: Duration,
    /// `concurrent`: queries that run at a time. 2.
    pub concurrent: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            entries: 500,
            bytes: 32 << 20,
            value_bytes: 4 << 20,
            ttl: Duration::from_secs(5 * 60),
            longest_ttl: Duration::from_secs(24 * 60 * 60),
            total_bytes: 1 << 30,
            query: QuerySettings::default(),
        }
    }
}

impl Default for QuerySettings {
    fn default() -> Self {
        Self {
            input_bytes: 4 << 20,
            input_values: 500_000,
            values: 4_000_000,
            result_chars: 64_000,
            time: Duration::from_secs(5),
            concurrent: 2,
        }
    }
}

/// With less not even one page of a text fits.
const LEAST_BYTES: usize = 4 << 10;

/// Reads the object `memory`; one that is switched off is none.
pub(super) fn memory(cursor: Cursor<'_>) -> Option<Option<MemorySettings>> {
    let mut fields = cursor.fields()?;
    let default = MemorySettings::default();
    let bytes = |cursor: Cursor<'_>| cursor.size(LEAST_BYTES);
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let memory = MemorySettings {
        entries: fields.with_default("entries", Cursor::count, default.entries),
        bytes: fields.with_default("bytes", bytes, default.bytes),
        value_bytes: fields.with_default("valueBytes", bytes, default.value_bytes),
        ttl: fields.with_default("ttl", Cursor::timeout, default.ttl),
        longest_ttl: fields.with_default("longestTtl", Cursor::timeout, default.longest_ttl),
        total_bytes: fields.with_default("totalBytes", bytes, default.total_bytes),
        query: fields.with_default("query", query, default.query),
    };
    fields.finish();
    Some(enabled.then_some(memory))
}

fn query(cursor: Cursor<'_>) -> Option<QuerySettings> {
    let mut fields = cursor.fields()?;
    let default = QuerySettings::default();
    let query = QuerySettings {
        input_bytes: fields.with_default(
            "inputBytes",
            |cursor| cursor.size(LEAST_BYTES),
            default.input_bytes,
        ),
        input_values: fields.with_default("inputValues", Cursor::count, default.input_values),
        values: fields.with_default("values", Cursor::count, default.values),
        result_chars: fields.with_default("resultChars", Cursor::count, default.result_chars),
        time: fields.with_default("time", Cursor::timeout, default.time),
        concurrent: fields.with_default("concurrent", Cursor::count, default.concurrent),
    };
    fields.finish();
    Some(query)
}
