//! Finds tools and services among more than a model can be shown.
//!
//! - [`tool_finder`], `indexed_tool`: the index of all tools, which follows the registry;
//! - `search_reply`: the result of `search_tools`;
//! - [`embeddings`]: vectors of all tools, if an endpoint computes them, and their fusion with the index;
//! - [`call_tool`]: calls of tools by their names;
//! - [`services`]: the search for services, with results in the form that agents know;
//! - [`hints`]: suggests the services that a message is about;
//! - [`tools`]: the tools themselves.
//!
//! Each search uses the registry as its caller sees it: it neither finds nor names what a caller may not use.

pub mod call_tool;
pub mod embeddings;
pub mod hints;
mod indexed_tool;
mod search_reply;
pub mod services;
pub mod tool_finder;
pub mod tools;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use toolyard_rank::SearchLexicon;

pub use call_tool::CallToolBackend;
pub use embeddings::{EmbeddingReport, EmbeddingRequests, TextEmbedder, TextEmbedderError, ToolEmbeddings};
pub use hints::{PROMPT, ServiceHint};
pub use services::{AgentIndex, FoundService, KnownService, ServiceIndex, ServiceKind};
pub use tool_finder::{FinderHit, ToolFinder};
pub use tools::{CALL, NAMES, SEARCH, SERVICES, ToolSearch, add};

/// Returns the English lexicon, which is loaded on first use.
fn english() -> Arc<SearchLexicon> {
    static ENGLISH: LazyLock<Arc<SearchLexicon>> = LazyLock::new(|| Arc::new(SearchLexicon::english()));
    ENGLISH.clone()
}
