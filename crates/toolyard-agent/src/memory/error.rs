//! Errors of working memory.

use toolyard_core::store::StoreError;

use super::namespace::MemoryNamespace;

/// Error of working memory. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The namespace has too many entries.
    #[error(
        "Working memory is full: `{namespace}` may have {limit} entries. Delete some, or wait until they expire."
    )]
    TooManyEntries {
        /// The namespace.
        namespace: MemoryNamespace,
        /// Maximum number of entries.
        limit: usize,
    },
    /// The namespace has too many bytes.
    #[error(
        "Working memory is full: `{namespace}` may hold {limit} bytes, {used} are taken, and this needs {needed}. Delete \
         some entries, or wait until they expire."
    )]
    TooManyBytes {
        /// The namespace.
        namespace: MemoryNamespace,
        /// Maximum number of bytes.
        limit: usize,
        /// Bytes of its other entries.
        used: usize,
        /// Bytes of the new entries.
        needed: usize,
    },
    /// All namespaces together have too many bytes.
    #[error("Working memory is full: all namespaces together may hold {limit} bytes. Try again later.")]
    Full {
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The part of callers without a key is used up, and nothing of it may be dropped.
    #[error(
        "Working memory is full: callers without a key may hold {limit} bytes from one address, and this needs {needed}. \
         Ask the tool for less."
    )]
    KeylessFull {
        /// Maximum number of bytes.
        limit: usize,
        /// Bytes of the caller's namespace with the new entries.
        needed: usize,
    },
    /// The caller has no namespace.
    #[error(
        "This call has no namespace in working memory: it has neither a session nor a key. The `_meta` of this result has a \
         handle, `toolyard/session`, which the host sends back in the `_meta` of its requests. Keys that a tool's result \
         shows can be read without it."
    )]
    NoSession,
    /// The caller's handle is not valid.
    #[error(
        "The `toolyard/session` of this request is no valid handle: it has expired, or belongs to another key. The `_meta` \
         of this result has a new one, which the host sends back in the `_meta` of its requests."
    )]
    InvalidHandle,
    /// A value is too long.
    #[error(
        "The value has {bytes} bytes, and an entry of working memory may have {limit}. Save it in parts."
    )]
    TooLong {
        /// Bytes of the value.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// A key, a category or a tag is invalid.
    #[error("{0}")]
    BadKey(&'static str),
    /// Concurrent writers change the namespace too often.
    #[error("Others are writing to this namespace at the same time. Try again.")]
    Contended,
    /// The store failed.
    #[error("Working memory cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
