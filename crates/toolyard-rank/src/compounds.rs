//! Names of tools that are written as one word: `getuserprofile`, and several words that are searched for as one.

use std::collections::HashSet;

use crate::lexicon::SearchLexicon;
use crate::tool_document::ToolDocument;
use crate::words;

/// Minimum and maximum length of a word that is split, in bytes.
const SPLIT_LENGTHS: std::ops::RangeInclusive<usize> = 6..=40;
/// Minimum length of a part, in bytes, unless it is a stop word, such as `of`.
const MIN_PART_LENGTH: usize = 3;
/// Maximum length of a description that is read for words, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// Begins the terms of several words that are searched for as one, which no word does.
const MARK: char = '+';

/// Returns the term in the index for several words of a tool that are searched for as one word, of which this is the stem.
pub(crate) fn term(stem: &str) -> String {
    format!("{MARK}{stem}")
}

/// Returns the parts of the words of a tool's name that consist of several words of its description or of the lexicon,
/// separated by spaces.
pub(crate) fn split_words(tool: &ToolDocument, lexicon: &SearchLexicon) -> String {
    let mut names = Vec::new();
    words::each_word(words::truncate(&tool.name, MAX_DESCRIPTION_BYTES), |word| {
        let is_long = SPLIT_LENGTHS.contains(&word.len()) && word.is_ascii();
        if is_long && !lexicon.is_word(word) {
            names.push(word.to_owned());
        }
    });
    if names.is_empty() {
        return String::new();
    }
    let description = words::truncate(&tool.description, MAX_DESCRIPTION_BYTES).to_ascii_lowercase();
    let described: HashSet<&str> = description.split(|char: char| !char.is_ascii_alphanumeric()).collect();
    let is_word = |word: &str| {
        let is_long = word.len() >= MIN_PART_LENGTH && (lexicon.is_word(word) || described.contains(word));
        is_long || lexicon.is_stop(word) && word.len() > 1
    };
    let mut split = String::new();
    for part in
        names.iter().filter(|name| !described.contains(name.as_str())).filter_map(|name| parts(name, is_word))
    {
        split.push_str(&part);
        split.push(' ');
    }
    split
}

/// The fewest words that form this word when they are joined, separated by spaces.
fn parts(word: &str, is_word: impl Fn(&str) -> bool) -> Option<String> {
    let mut best: Vec<Option<(usize, String)>> = vec![None; word.len() + 1];
    best[0] = Some((0, String::new()));
    for end in 1..=word.len() {
        let splits = (0..end).rev().filter_map(|start| {
            let (count, before) = best[start].as_ref()?;
            let part = &word[start..end];
            is_word(part).then(|| (count + 1, format!("{before} {part}")))
        });
        best[end] = splits.min_by_key(|(count, _)| *count);
    }
    best.pop()??.1.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, description: &str, expected: &str) {
        let tool = ToolDocument {
            name: name.to_owned(),
            description: description.to_owned(),
            ..ToolDocument::default()
        };
        let split = split_words(&tool, &SearchLexicon::english());
        assert_eq!(split.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{name}");
    }

    #[test]
    fn joined_names_are_split_into_known_words() {
        check("searchproducts", "Finds products", "search products");
        check("searchproduct", "", "search product");
        check("getuserprofile", "Returns the profile of a user", "get user profile");
        check("listofdevices", "All devices", "list of devices");
        check("getWeatherforecast", "", "weather forecast");
    }

    #[test]
    fn words_and_unknown_names_are_not_split() {
        check("download", "", "");
        check("notebooks", "Lists notebooks", "");
        check("frobnicate", "", "");
        check("getzorkprofile", "", "");
        check(&"get".repeat(100), "", "");
        check("", "", "");
    }
}
