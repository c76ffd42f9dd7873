//! How much there may be, and what is said where there is no more room.

use std::time::Duration;

use toolyard_core::store::StoreError;

use super::namespace::Namespace;

/// How much one namespace may hold, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Entries of a namespace.
    pub entries: usize,
    /// Bytes of a namespace: values, keys, categories and tags.
    pub bytes: usize,
    /// Bytes of one value.
    pub value_bytes: usize,
    /// Bytes of the values of all namespaces together. Gateways that save at the same time may go beyond by what they save then.
    pub total_bytes: usize,
    /// How long an entry lives whose saver does not say.
    pub ttl: Duration,
    /// How long one may live at most.
    pub longest_ttl: Duration,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            entries: 500,
            bytes: 32 * 1024 * 1024,
            value_bytes: 4 * 1024 * 1024,
            total_bytes: 1024 * 1024 * 1024,
            ttl: Duration::from_secs(5 * 60),
            longest_ttl: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Why something is not kept, or not found. The texts are for a model.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There would be more entries than there may be.
    #[error(
        "Working memory is full: `{namespace}` may have {limit} entries. Delete some, or wait until they expire."
    )]
    TooManyEntries {
        /// The namespace.
        namespace: Namespace,
        /// Its bound.
        limit: usize,
    },
    /// There would be more bytes than there may be.
    #[error(
        "Working memory is full: `{namespace}` may hold {limit} bytes, {held} are taken, and this needs {needed}. Delete \
         some entries, or wait until they expire."
    )]
    TooManyBytes {
        /// The namespace.
        namespace: Namespace,
        /// Its bound.
        limit: usize,
        /// What its other entries take.
        held: usize,
        /// What the new ones would take.
        needed: usize,
    },
    /// All namespaces together would have more bytes than they may.
    #[error(
        "Working memory is full: all that is kept in it, by others too, may hold {limit} bytes. Try again later."
    )]
    Full {
        /// The bound.
        limit: usize,
    },
    /// One value is larger than values may be.
    #[error(
        "The value has {bytes} bytes, and an entry of working memory may have {limit}. Save it in parts."
    )]
    TooLong {
        /// The value's.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// That cannot be a key, a category or a tag.
    #[error("{0}")]
    BadKey(&'static str),
    /// Others write to the namespace all the time.
    #[error("Working memory is being changed by others all the time. Try again.")]
    Contended,
    /// The store does not do its part.
    #[error("Working memory cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
