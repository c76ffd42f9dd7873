//! What a model puts aside for a while: working memory, and the tools for it.
//!
//! - [`namespace`]: whose memory it is;
//! - [`reach`]: which keys a caller reaches, and what it means by them;
//! - [`limits`], [`record`]: how much there may be, and what is known of an entry;
//! - [`working`]: the memory itself, over a store;
//! - [`chunked`]: the keys of results that were put there in pieces;
//! - [`search`]: entries by their words;
//! - [`query`]: a part of a stored JSON value;
//! - [`tools`], `texts`: what a model calls, and what it reads.
//!
//! # How it is kept
//!
//! Each namespace has one value in the space `working-memory`: the list of its entries, which is changed by
//! compare-and-swap, so that the bounds hold and an overwrite is whole, by however many gateways on one database. What
//! entries hold is in `working-memory-values`, under ids that are never used again, in parts that are small enough for a
//! key-value store. It is written before it is listed and removed after: who finds an entry finds its value. All of it has
//! the entry's time to live, and the store removes what has expired, also what a gateway left behind that died in
//! between. (Blobs have no such time. That is why none are used.)

pub mod chunked;
pub mod limits;
pub mod namespace;
pub mod query;
pub mod reach;
pub mod record;
pub mod search;
mod texts;
pub mod tools;
pub mod working;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use limits::{MemoryError, MemoryLimits};
pub use namespace::{Namespace, SESSION_META, Who};
pub use reach::{FullKey, Reach};
pub use record::{NewEntry, Record};
pub use working::WorkingMemory;

use crate::guides::Guide;

/// How to use working memory, for a model.
pub const GUIDE: Guide = Guide::new(
    "working-memory",
    "Keep notes and intermediate results for a while, find them again, and select parts of stored JSON",
    include_str!("guide.md"),
);
