//! The reader of `builtins.memory`.

use std::time::Duration;

use crate::cursor::ValueCursor;

/// Limits of working memory. All but the last two apply to one namespace: a session's, or a key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// `entries`: maximum number of entries. Default: 500.
    pub entries: usize,
    /// `bytes`: maximum size of all entries together. Default: 32 MiB.
    pub bytes: usize,
    /// `valueBytes`: maximum size of one value. Default: 4 MiB.
    pub value_bytes: usize,
    /// `ttl`: lifetime of an entry that is saved without one. Default: 5 min.
    pub ttl: Duration,
    /// `longestTtl`: maximum lifetime of an entry. Default: 24 h.
    pub longest_ttl: Duration,
    /// `totalBytes`: maximum size of all namespaces together. Default: 1 GiB.
    pub total_bytes: usize,
    /// `query`: limits of queries.
    pub query: QuerySettings,
}

/// Limits of `query_working_memory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySettings {
    /// `inputBytes`: maximum size of the JSON that is queried. Default: 4 MiB.
    pub input_bytes: usize,
    /// `inputValues`: maximum number of values and names in it. Default: 500,000.
    pub input_values: usize,
    /// `values`: maximum number of values that an expression may create. Default: 4,000,000.
    pub values: usize,
    /// `resultChars`: maximum length of the result, in characters. Default: 64,000.
    pub result_chars: usize,
    /// `time`: time limit of a query. Default: 5 s.
    pub time: Duration,
    /// `concurrent`: maximum number of running queries. Default: 2.
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
const MIN_BYTES: usize = 4 << 10;

/// Reads the object `memory`; `enabled: false` becomes `None`.
pub(super) fn memory(cursor: ValueCursor<'_>) -> Option<Option<MemorySettings>> {
    let mut fields = cursor.fields()?;
    let default = MemorySettings::default();
    let bytes = |cursor: ValueCursor<'_>| cursor.size(MIN_BYTES);
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let memory = MemorySettings {
        entries: fields.with_default("entries", ValueCursor::count, default.entries),
        bytes: fields.with_default("bytes", bytes, default.bytes),
        value_bytes: fields.with_default("valueBytes", bytes, default.value_bytes),
        ttl: fields.with_default("ttl", ValueCursor::timeout, default.ttl),
        longest_ttl: fields.with_default("longestTtl", ValueCursor::timeout, default.longest_ttl),
        total_bytes: fields.with_default("totalBytes", bytes, default.total_bytes),
        query: fields.with_default("query", query, default.query),
    };
    fields.finish();
    Some(enabled.then_some(memory))
}

fn query(cursor: ValueCursor<'_>) -> Option<QuerySettings> {
    let mut fields = cursor.fields()?;
    let default = QuerySettings::default();
    let query = QuerySettings {
        input_bytes: fields.with_default("inputBytes", |cursor| cursor.size(MIN_BYTES), default.input_bytes),
        input_values: fields.with_default("inputValues", ValueCursor::count, default.input_values),
        values: fields.with_default("values", ValueCursor::count, default.values),
        result_chars: fields.with_default("resultChars", ValueCursor::count, default.result_chars),
        time: fields.with_default("time", ValueCursor::timeout, default.time),
        concurrent: fields.with_default("concurrent", ValueCursor::count, default.concurrent),
    };
    fields.finish();
    Some(query)
}
