//! The tools that may be meant by a name that no tool has.

use std::sync::Arc;

use toolyard_core::Registry;
use toolyard_core::registry::Kind;

use super::finder::Finder;

/// How many are named.
const MOST: usize = 3;

/// How much alike names are that differ by a slip, from 0 to 1.
const ALIKE: f64 = 0.9;

/// How much of a name is compared, in characters: it takes the longer by the square of that, for each tool.
const LONGEST: usize = 128;

/// The names that come closest: those that are spelt almost so, then those of tools that have its words.
pub(super) async fn nearest(finder: &Finder, view: &Registry, name: &str) -> Vec<Arc<str>> {
    let lowered: String = name.chars().take(LONGEST).collect::<String>().to_lowercase();
    let likeness = |other: &str| strsim::jaro_winkler(&lowered, &other.to_lowercase());
    let entries = view.entries(Kind::Tools).iter();
    let alike =
        entries.map(|entry| (likeness(&entry.name), &entry.name)).filter(|(likeness, _)| *likeness > ALIKE);
    let mut alike: Vec<_> = alike.collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut names: Vec<_> = alike.into_iter().take(MOST).map(|(_, name)| name.clone()).collect();
    for entry in finder.search(view, &lowered, MOST).await {
        if names.len() < MOST && !names.contains(&entry.name) {
            names.push(entry.name.clone());
        }
    }
    names
}
