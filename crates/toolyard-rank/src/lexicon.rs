//! What is known of English beforehand: which words say nothing, which have one stem, and which mean the same.
//!
//! The tables beside this file are about software and everyday life in general, and know nothing of any catalog of tools.

use std::collections::{HashMap, HashSet};

use frostem::{Algorithm, Stemmer};

use crate::query::LONGEST_QUERY;
use crate::words;

/// Words of English, and how they hang together. It is read once, and shared.
pub struct Lexicon {
    stemmer: Stemmer,
    stop: HashSet<&'static str>,
    faint: HashSet<String>,
    synonyms: Relatives,
    abbreviations: Relatives,
}

/// The stems that stand for a stem.
type Relatives = HashMap<String, Vec<String>>;

impl Lexicon {
    /// English, which most tools are described in. Words of other languages are found as they are written.
    pub fn english() -> Self {
        let stemmer = Stemmer::new(Algorithm::English);
        let groups = |table: &'static str| -> Vec<Vec<String>> {
            let stem = |word: &str| stemmer.stem(word).into_owned();
            rows(table).map(|row| row.split_whitespace().map(stem).collect()).collect()
        };
        let stop = rows(include_str!("lexicon/stop.txt")).flat_map(str::split_whitespace).collect();
        let faint = groups(include_str!("lexicon/faint.txt")).into_iter().flatten().collect();
        let synonyms = synonyms(&groups(include_str!("lexicon/synonyms.txt")));
        let abbreviations = abbreviations(&groups(include_str!("lexicon/abbreviations.txt")));
        Self { stop, faint, synonyms, abbreviations, stemmer }
    }

    /// Gives the stem of each word of a text that says something to `take`.
    pub(crate) fn each_term(&self, text: &str, mut take: impl FnMut(&str)) {
        words::each(text, |word| {
            if !self.stop.contains(word) {
                take(&self.stemmer.stem(word));
            }
        });
    }

    /// The words of a text that say something, in lower case, with a blank between them. Of a very long one the first 4,096 bytes
    /// are read.
    pub fn telling(&self, text: &str) -> String {
        let mut telling = String::new();
        words::each(words::cut(text, LONGEST_QUERY), |word| {
            if !self.stop.contains(word) {
                let blank = if telling.is_empty() { "" } else { " " };
                telling.extend([blank, word]);
            }
        });
        telling
    }

    /// Whether this is said around what is asked for.
    pub(crate) fn is_faint(&self, term: &str) -> bool {
        self.faint.contains(term)
    }

    /// What may stand for a term.
    pub(crate) fn synonyms(&self, term: &str) -> &[String] {
        self.synonyms.get(term).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a term is short for, and what it is shortened to.
    pub(crate) fn abbreviations(&self, term: &str) -> &[String] {
        self.abbreviations.get(term).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A row of a table is about one thing. Rows that begin with `#` are for people.
fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|row| !row.starts_with('#'))
}

/// In a group each stands for each other.
fn synonyms(groups: &[Vec<String>]) -> Relatives {
    let mut synonyms = Relatives::new();
    for group in groups {
        for term in group {
            relate(&mut synonyms, term, group);
        }
    }
    synonyms
}

/// The first of a group is short for all others together. Back it goes from one only: a part of a name is not the name.
fn abbreviations(groups: &[Vec<String>]) -> Relatives {
    let mut abbreviations = Relatives::new();
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

fn relate(relatives: &mut Relatives, term: &str, others: &[String]) {
    let known = relatives.entry(term.to_owned()).or_default();
    for other in others {
        if other != term && !known.contains(other) {
            known.push(other.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut terms = Vec::new();
        Lexicon::english().each_term(text, |term| terms.push(term.to_owned()));
        assert_eq!(terms.join(" "), expected);
    }

    #[test]
    fn terms_are_stems_of_words_that_say_something() {
        check("Could you please list all of my repositories?", "list repositori");
        check("listRepositories", "list repositori");
        check("the and of", "");
        check("生成 图", "生 成 图");
    }

    #[test]
    fn words_that_say_something() {
        let check = |text: &str, expected: &str| assert_eq!(Lexicon::english().telling(text), expected);
        check("Could you please list all of my Repositories?", "list repositories");
        check("listRepositories", "list repositories");
        check("the and of", "");
        assert!(Lexicon::english().telling(&"word ".repeat(10_000)).len() < 4_100);
    }

    #[test]
    fn synonyms_go_both_ways_and_abbreviations_back_from_one_word_only() {
        let lexicon = Lexicon::english();
        let has = |terms: &[String], term: &str| terms.iter().any(|one| one == term);
        assert!(has(lexicon.synonyms("film"), "movi") && has(lexicon.synonyms("movi"), "film"));
        assert!(has(lexicon.abbreviations("db"), "databas") && has(lexicon.abbreviations("databas"), "db"));
        assert!(has(lexicon.abbreviations("ml"), "machin") && !has(lexicon.abbreviations("machin"), "ml"));
        assert!(!has(lexicon.synonyms("film"), "film"));
    }

    #[test]
    fn no_table_has_a_row_that_does_nothing() {
        let lexicon = Lexicon::english();
        for row in rows(include_str!("lexicon/synonyms.txt")) {
            let stems: HashSet<_> = row.split_whitespace().map(|word| lexicon.stemmer.stem(word)).collect();
            assert!(stems.len() > 1, "{row}");
        }
        for row in rows(include_str!("lexicon/abbreviations.txt")) {
            assert!(row.split_whitespace().count() > 1, "{row}");
        }
    }
}
