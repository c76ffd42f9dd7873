//! Which tools a sentence asks for.
//!
//! An [`Index`] is a snapshot of all tools; a [`Change`] of one server's makes another one, which shares with it what stayed. It
//! is searched by words alone: there is no model, no I/O and no lock. [`Ranking`] says what counts how much, and
//! `docs/search.md` what that is worth on data.
//!
//! [`Bm25Ranker`] is another one, for texts of any kind, with the order and the scores of the software that it comes from.

mod bm25;
mod index;
mod lexicon;
mod pairs;
#[cfg(test)]
mod properties;
mod query;
mod ranking;
mod search;
mod shelf;
mod tool;
mod words;

pub use bm25::{Bm25Ranker, Bm25Texts};
pub use index::{Change, Index};
pub use lexicon::Lexicon;
pub use ranking::{Field, Ranking, Weight};
pub use search::Hit;
pub use tool::Tool;
