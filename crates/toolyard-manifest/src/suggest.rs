//! Suggestions for misspelled names.

use crate::problem::quoted;

/// Returns the nearest of `candidates`, if it is similar enough to be a misspelling.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = written.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&text, &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        // One typo in three characters; more is another word.
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint with a suggestion.
pub(crate) fn did_you_mean(candidate: &str) -> String {
    format!("did you mean {}?", quoted(candidate))
}
