//! Working memory, where a model keeps data for a while, and its tools.
//!
//! - [`namespace`]: the namespace of a caller;
//! - [`access`]: the keys that a caller can access, and how it may write them;
//! - [`error`], [`record`]: errors, and the metadata of an entry;
//! - [`working_memory`]: the memory itself, on top of a store;
//! - [`session_ids`]: ids for callers without session and key;
//! - `keyless_ledger`: the part of the memory that callers without a key share;
//! - [`session_handles`]: the layer that hands out handles;
//! - [`chunk_keys`]: the keys of results that are stored in chunks;
//! - [`search`]: finds entries by words;
//! - [`query`]: selects a part of a stored JSON value;
//! - [`reader`]: finds the text of a key: an entry, or a large result in chunks;
//! - [`reading`]: reads lines of a text, by number and by pattern;
//! - `blocking`: runs work on texts beside the threads of connections;
//! - [`tools`], `texts`: the tools, and their results.
//!
//! # Storage
//!
//! Each namespace has one value in the key space `working-memory`: the list of its entries. It is changed by
//! compare-and-swap, so that limits hold and an overwrite is atomic with any number of gateways on one database. The
//! values of entries are in `working-memory-values`, under ids that are never used again, in parts that are small
//! enough for a key-value store. A value is written before its entry is listed and removed after the entry is gone, so
//! every listed entry has its value. All parts have the entry's time to live, and the store removes what has expired,
//! also what a gateway that died in between has left behind. (Blobs have no time to live, so they are not used.)
//!
//! Namespaces of callers without a key have two key spaces of their own, so that neither kind can use the room of the
//! other, and a ledger of all of them.

pub mod access;
mod blocking;
pub mod chunk_keys;
pub mod error;
mod keyless_ledger;
pub mod namespace;
pub mod query;
pub mod reader;
pub mod reading;
pub mod record;
pub mod search;
pub mod session_handles;
pub mod session_ids;
pub(crate) mod texts;
pub mod tools;
pub mod working_memory;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use access::{FullKey, MemoryAccess};
pub use error::MemoryError;
pub use namespace::{MemoryCaller, MemoryNamespace};
pub use record::{ChunkPlace, MemoryRecord, NewEntry, RoomPolicy};
pub use session_handles::{SessionHandleSettings, SessionHandles};
pub use toolyard_core::SESSION_META;
pub use working_memory::{MemoryOverview, NamespaceSummary, WorkingMemory};

use crate::guides::GuideDocument;

/// Guide to using working memory.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "working-memory",
    "Keep notes and intermediate results for a while, find them again, and select parts of stored JSON",
    include_str!("memory/guide.md"),
);
