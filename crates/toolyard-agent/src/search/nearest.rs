//! Suggests tools for a name that no tool has.

use std::sync::Arc;

use toolyard_core::Registry;
use toolyard_core::registry::EntryKind;

use super::tool_finder::ToolFinder;

/// Maximum number of suggestions.
const MAX_RESULTS: usize = 3;

/// Minimum similarity of names that differ by a typing error, from 0 to 1.
const ALIKE: f64 = 0.9;

/// Maximum number of compared characters. The time for each tool grows with the square of it.
const MAX_LENGTH: usize = 128;

/// Returns the closest names: similar ones first, then those of tools that match its words.
pub(super) async fn nearest(finder: &ToolFinder, view: &Registry, name: &str) -> Vec<Arc<str>> {
    let lowered: String = name.chars().take(MAX_LENGTH).collect::<String>().to_lowercase();
    let likeness = |other: &str| strsim::jaro_winkler(&lowered, &other.to_lowercase());
    let entries = view.entries(EntryKind::Tools).iter();
    let alike =
        entries.map(|entry| (likeness(&entry.name), &entry.name)).filter(|(likeness, _)| *likeness > ALIKE);
    let mut alike: Vec<_> = alike.collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut names: Vec<_> = alike.into_iter().take(MAX_RESULTS).map(|(_, name)| name.clone()).collect();
    for entry in finder.search(view, &lowered, MAX_RESULTS).await {
        if names.len() < MAX_RESULTS && !names.contains(&entry.name) {
            names.push(entry.name.clone());
        }
    }
    names
}
