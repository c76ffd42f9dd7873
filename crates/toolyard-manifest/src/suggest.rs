//! Suggestions for misspelled names.

use crate::problem::quoted;

/// Words of other programs, and ours for the same thing.
const SYNONYMS: &[(&str, &str)] = &[
    ("http", "streamable-http"),
    ("streamablehttp", "streamable-http"),
    ("http-stream", "streamable-http"),
    ("remote", "streamable-http"),
    ("local", "stdio"),
    ("rest", "http"),
    ("swagger", "openapi"),
    ("url", "endpoint"),
    ("serverurl", "endpoint"),
    ("cwd", "workDir"),
];

/// Returns the nearest of `candidates`, if it is similar enough to be a misspelling or a synonym.
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = written.to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&text, &candidate.to_lowercase());
    let plain = text.replace(['_', ' '], "-");
    let synonym = SYNONYMS.iter().find(|(word, _)| *word == plain).map(|(_, word)| *word);
    let candidates: Vec<_> = candidates.into_iter().collect();
    if let Some(candidate) = candidates.iter().find(|candidate| Some(**candidate) == synonym) {
        return Some(candidate);
    }
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
