//! Search for the tools that a sentence asks for.
//!
//! A [`ToolIndex`] is a snapshot of all tools; an [`IndexChange`] of one server's tools creates another one, which
//! shares the unchanged parts. The search uses words only: there is no model, no I/O and no lock. [`RankingWeights`]
//! has the weights of the ranking, and `docs/search.md` their effect on data.
//!
//! A [`VectorIndex`] ranks the same tools by embeddings, which another program computes, and [`fuse`] combines two
//! rankings.
//!
//! [`Bm25Ranker`] is a separate ranker for texts of any kind, with the order and the scores of the software that it
//! replaces.

mod bigrams;
mod bm25;
mod compounds;
mod embeddings;
mod fusion;
mod index;
mod lexicon;
#[cfg(test)]
mod property_tests;
mod query;
#[cfg(test)]
mod query_tests;
mod ranking;
mod schema_text;
mod search;
mod server_index;
mod tool_document;
mod values;
mod vocabulary;
mod words;

pub use bm25::{Bm25Ranker, Bm25Texts};
pub use embeddings::{
    EmbeddingError, EmbeddingVector, MAX_DIMENSIONS, VectorIndex, embedded_query, embedded_text,
    parse_embeddings, response_limit,
};
pub use fusion::{FUSED_RANKS, VECTOR_WEIGHT, fuse};
pub use index::{IndexChange, ToolIndex};
pub use lexicon::SearchLexicon;
pub use ranking::{FieldWeight, RankingWeights, ToolField};
pub use schema_text::schema_parameters;
pub use search::SearchHit;
pub use tool_document::ToolDocument;
