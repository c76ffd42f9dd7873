//! The section `builtins.memory`.

use std::time::Duration;

use crate::{
    cursor::KeywordChoice,
    field_type::{CountField, KeywordField, SizeField, TimeoutField},
    section::{nested, section},
};

/// With less not even one page of a text fits.
const MIN_BYTES: usize = 4 << 10;

section! {
    /// Working memory. `entries`, `bytes`, `valueBytes` and the lifetimes apply to one namespace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MemorySettings: Default = "memory" {
        /// Maximum number of entries of one namespace, which belongs to a session, a key or a user; more are refused.
        pub entries: usize = "entries", CountField, default 500;
        /// Maximum size of all entries of a namespace together, at least 4 KiB.
        pub bytes: usize = "bytes", SizeField(MIN_BYTES), default 32 << 20;
        /// Maximum size of one value, at least 4 KiB.
        pub value_bytes: usize = "valueBytes", SizeField(MIN_BYTES), default 4 << 20;
        /// Lifetime of an entry that is saved without one.
        pub ttl: Duration = "ttl", TimeoutField, default Duration::from_secs(5 * 60);
        /// Maximum lifetime of an entry.
        pub longest_ttl: Duration = "longestTtl", TimeoutField, default Duration::from_secs(24 * 60 * 60);
        /// Maximum size of all namespaces together, at least 4 KiB.
        pub total_bytes: usize = "totalBytes", SizeField(MIN_BYTES), default 1 << 30;
        /// Part of `totalBytes` for all callers without a key together. Default: a tenth.
        ///
        /// What they save pushes out older entries of theirs, and never those of a key.
        pub keyless_bytes: Option<usize> = "keylessBytes", SizeField(MIN_BYTES), optional;
        /// Part of it for callers without a key at one IP address, or in one IPv6 network of 64 bits. Default: a quarter.
        pub keyless_address_bytes: Option<usize> = "keylessAddressBytes", SizeField(MIN_BYTES), optional;
        /// Callers that share one namespace: `none`, or with `loopback` all that connect to a loopback address without a
        /// key.
        ///
        /// With a proxy on the gateway's machine these are all of its clients.
        pub shared: SharedMemory = "shared", KeywordField(&SHARED), default SharedMemory::None;
        /// Limits of `query_working_memory`.
        pub query: QuerySettings = "query", nested::<QuerySettings>(), described QuerySettings::default();
        /// Limits of reading lines, and lines that match a pattern.
        pub read: ReadSettings = "read", nested::<ReadSettings>(), described ReadSettings::default();
    }
}

section! {
    /// Limits of `get_from_working_memory` with `lines` or `grep`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReadSettings: Default = "memoryRead" {
        /// Maximum number of matches in a result; the number of the others is stated.
        pub matches: usize = "matches", CountField, default 40;
        /// Maximum length of a result, in characters.
        pub result_chars: usize = "resultChars", CountField, default 20_000;
        /// Time limit of a search, which then returns what it has found.
        pub time: Duration = "time", TimeoutField, default Duration::from_secs(5);
        /// Maximum number of running searches.
        pub concurrent: usize = "concurrent", CountField, default 2;
    }
}

impl MemorySettings {
    /// Returns the maximum size of all entries of callers without a key.
    #[must_use]
    pub fn keyless_bytes(&self) -> usize {
        self.keyless_bytes.unwrap_or(self.total_bytes / 10).min(self.total_bytes)
    }

    /// Returns the maximum size of all entries of callers without a key at one address.
    #[must_use]
    pub fn keyless_address_bytes(&self) -> usize {
        let whole = self.keyless_bytes();
        self.keyless_address_bytes.unwrap_or(whole / 4).min(whole)
    }
}

/// Callers without a key that share one namespace of working memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedMemory {
    /// `none`: no callers.
    #[default]
    None,
    /// `loopback`: all that connect to a loopback address.
    Loopback,
}

const SHARED: KeywordChoice<SharedMemory> = KeywordChoice {
    noun: "kind of shared memory",
    words: &[("none", SharedMemory::None), ("loopback", SharedMemory::Loopback)],
    unsupported: &[],
};

section! {
    /// Limits of `query_working_memory`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct QuerySettings: Default = "memoryQuery" {
        /// Maximum size of the JSON that is queried, at least 4 KiB.
        pub input_bytes: usize = "inputBytes", SizeField(MIN_BYTES), default 4 << 20;
        /// Maximum number of values and names in it.
        pub input_values: usize = "inputValues", CountField, default 500_000;
        /// Maximum number of values that an expression may create.
        pub values: usize = "values", CountField, default 4_000_000;
        /// Maximum length of the result, in characters.
        pub result_chars: usize = "resultChars", CountField, default 64_000;
        /// Time limit of a query.
        pub time: Duration = "time", TimeoutField, default Duration::from_secs(5);
        /// Maximum number of running queries.
        pub concurrent: usize = "concurrent", CountField, default 2;
    }
}
