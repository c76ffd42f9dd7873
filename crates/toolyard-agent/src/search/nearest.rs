//! Suggests tools for a name that no tool has.

use std::sync::Arc;

use toolyard_core::Registry;
use toolyard_core::nearest::{MAX_SUGGESTIONS, nearest_tools};

use super::tool_finder::ToolFinder;

/// Maximum number of characters that are searched for.
const MAX_LENGTH: usize = 128;

/// Returns the closest names: similar ones first, then those of tools that match its words.
pub(super) async fn nearest(finder: &ToolFinder, view: &Registry, name: &str) -> Vec<Arc<str>> {
    let mut names = nearest_tools(view, name);
    let words: String = name.chars().take(MAX_LENGTH).collect();
    for entry in finder.search(view, &words, MAX_SUGGESTIONS).await {
        if names.len() < MAX_SUGGESTIONS && !names.contains(&entry.name) {
            names.push(entry.name.clone());
        }
    }
    names
}
