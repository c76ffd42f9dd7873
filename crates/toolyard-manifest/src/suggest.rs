//! "Did you mean?"

use crate::problem::quoted;

/// The nearest of `candidates`, if it is near enough to be what the author meant.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&written, &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        // One slip in three characters; more is another word.
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint for what [`nearest`] found.
pub(crate) fn did_you_mean(candidate: &str) -> String {
    format!("did you mean {}?", quoted(candidate))
}
