//! Tables of the English language: stop words, filler words, synonyms and abbreviations, all compared by their stems.
//!
//! The tables beside this file cover software and everyday life in general, and are not derived from any catalog of
//! tools.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use frostem::{Algorithm, Stemmer};

use crate::query::MAX_QUERY_BYTES;
use crate::words;

/// Stemming and the relations between English words. It is loaded once and shared.
pub struct SearchLexicon {
    stemmer: Stemmer,
    stop: HashSet<&'static str>,
    /// All words of the tables.
    words: HashSet<&'static str>,
    filler: HashSet<String>,
    synonyms: RelatedStems,
    abbreviations: RelatedStems,
    /// Function words of other languages, and those that are used in English texts too.
    foreign: HashSet<&'static str>,
    neutral: HashSet<&'static str>,
}

/// Evidence of a word for the language of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LanguageEvidence {
    /// The word is a function word of another language.
    Foreign,
    /// The word is used in several languages.
    Neutral,
    /// The word may be English.
    Open,
}

/// Related stems of a stem.
type RelatedStems = HashMap<String, Vec<String>>;

impl SearchLexicon {
    /// The lexicon for English, the language of most descriptions. Words of other languages are not stemmed.
    pub fn english() -> Self {
        let stemmer = Stemmer::new(Algorithm::English);
        let groups = |table: &'static str| -> Vec<Vec<String>> {
            let stem = |word: &str| stemmer.stem(word).into_owned();
            rows(table).map(|row| row.split_whitespace().map(stem).collect()).collect()
        };
        let set = |table: &'static str| rows(table).flat_map(str::split_whitespace).collect();
        let stop = set(include_str!("lexicon/stop.txt"));
        let foreign = set(include_str!("lexicon/foreign.txt"));
        let neutral = set(include_str!("lexicon/neutral.txt"));
        let filler = groups(include_str!("lexicon/filler.txt")).into_iter().flatten().collect();
        let synonyms = synonyms(&groups(include_str!("lexicon/synonyms.txt")));
        let abbreviations = abbreviations(&groups(include_str!("lexicon/abbreviations.txt")));
        let tables = [
            include_str!("lexicon/stop.txt"),
            include_str!("lexicon/filler.txt"),
            include_str!("lexicon/synonyms.txt"),
            include_str!("lexicon/abbreviations.txt"),
        ];
        let words = tables.into_iter().flat_map(rows).flat_map(str::split_whitespace).collect();
        Self { stop, words, filler, synonyms, abbreviations, foreign, neutral, stemmer }
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        self.stemmer.stem(word)
    }

    /// True for stop words, which say nothing about the request.
    pub(crate) fn is_stop(&self, word: &str) -> bool {
        self.stop.contains(word)
    }

    /// Returns the evidence of a word for the language of a text.
    pub(crate) fn language(&self, word: &str) -> LanguageEvidence {
        match (self.foreign.contains(word), self.neutral.contains(word)) {
            (true, _) => LanguageEvidence::Foreign,
            (false, true) => LanguageEvidence::Neutral,
            (false, false) => LanguageEvidence::Open,
        }
    }

    /// Returns the words of a text that are not stop words, in lower case and separated by spaces. Only the first 4,096
    /// bytes of the text are read.
    pub fn content_words(&self, text: &str) -> String {
        let mut words = String::new();
        words::each_word(words::truncate(text, MAX_QUERY_BYTES), |word| {
            if !self.stop.contains(word) {
                let space = if words.is_empty() { "" } else { " " };
                words.extend([space, word]);
            }
        });
        words
    }

    /// True for words of the tables.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// True for filler words, which surround the actual request.
    pub(crate) fn is_filler(&self, term: &str) -> bool {
        self.filler.contains(term)
    }

    /// The synonyms of a term.
    pub(crate) fn synonyms(&self, term: &str) -> &[String] {
        self.synonyms.get(term).map(Vec::as_slice).unwrap_or_default()
    }

    /// The abbreviations of a term, and the terms that it abbreviates.
    pub(crate) fn abbreviations(&self, term: &str) -> &[String] {
        self.abbreviations.get(term).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The rows of a table. Rows that begin with `#` are comments.
fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|row| !row.starts_with('#'))
}

/// Relates all terms of a group to each other.
fn synonyms(groups: &[Vec<String>]) -> RelatedStems {
    let mut synonyms = RelatedStems::new();
    for group in groups {
        for term in group {
            relate(&mut synonyms, term, group);
        }
    }
    synonyms
}

/// Relates the first term of a group to all others. The reverse holds for a single other term only: a part of a name
/// does not stand for the name.
fn abbreviations(groups: &[Vec<String>]) -> RelatedStems {
    let mut abbreviations = RelatedStems::new();
    for group in groups {
        if let [short, long @ ..] = group.as_slice() {
            relate(&mut abbreviations, short, long);
            if let [long] = long {
                relate(&mut abbreviations, long, std::slice::from_ref(short));
            }
        }
    }
    abbreviations
}

fn relate(relatives: &mut RelatedStems, term: &str, others: &[String]) {
    let related = relatives.entry(term.to_owned()).or_default();
    for other in others {
        if other != term && !related.contains(other) {
            related.push(other.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut terms = Vec::new();
        let lexicon = SearchLexicon::english();
        words::each_word(text, |word| {
            if !lexicon.is_stop(word) {
                terms.push(lexicon.stem(word).into_owned());
            }
        });
        assert_eq!(terms.join(" "), expected);
    }

    #[test]
    fn terms_are_stems_of_content_words() {
        check("Could you please list all of my repositories?", "list repositori");
        check("listRepositories", "list repositori");
        check("the and of", "");
        check("生成 图", "生成 图");
    }

    #[test]
    fn stop_words_are_removed() {
        let check =
            |text: &str, expected: &str| assert_eq!(SearchLexicon::english().content_words(text), expected);
        check("Could you please list all of my Repositories?", "list repositories");
        check("listRepositories", "list repositories");
        check("the and of", "");
        assert!(SearchLexicon::english().content_words(&"word ".repeat(10_000)).len() < 4_100);
    }

    #[test]
    fn abbreviations_are_reversed_for_single_words_only() {
        let lexicon = SearchLexicon::english();
        let has = |terms: &[String], term: &str| terms.iter().any(|one| one == term);
        assert!(has(lexicon.synonyms("film"), "movi") && has(lexicon.synonyms("movi"), "film"));
        assert!(has(lexicon.abbreviations("db"), "databas") && has(lexicon.abbreviations("databas"), "db"));
        assert!(has(lexicon.abbreviations("ml"), "machin") && !has(lexicon.abbreviations("machin"), "ml"));
        assert!(!has(lexicon.synonyms("film"), "film"));
    }

    #[test]
    fn function_words_of_other_languages_are_neither_stop_words_nor_neutral() {
        let lexicon = SearchLexicon::english();
        let both = |word: &&&str| lexicon.neutral.contains(**word) || lexicon.stop.contains(**word);
        assert_eq!(lexicon.foreign.iter().filter(both).collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn every_table_row_has_an_effect() {
        let lexicon = SearchLexicon::english();
        for row in rows(include_str!("lexicon/synonyms.txt")) {
            let stems: HashSet<_> = row.split_whitespace().map(|word| lexicon.stemmer.stem(word)).collect();
            assert!(stems.len() > 1, "{row}");
        }
        for row in rows(include_str!("lexicon/abbreviations.txt")) {
            assert!(row.split_whitespace().count() > 1, "{row}");
        }
    }
}
