//! What a sentence asks for. Models and people ask for several things at once, and say a lot around them.

use crate::lexicon::Lexicon;
use crate::pairs;
use crate::ranking::Ranking;
use crate::words;

/// More is not read of a query, in bytes.
pub(crate) const LONGEST_QUERY: usize = 4096;
/// More different words are not looked for, and as many pairs of them.
const MOST_TERMS: usize = 64;
/// More parts are not told apart: what comes later belongs to the last one.
const MOST_CLAUSES: usize = 16;

/// Words that begin a part of a query.
const LINKS: [&str; 9] =
    ["then", "also", "additionally", "furthermore", "moreover", "finally", "lastly", "next", "afterwards"];
/// Words that do so after a comma.
const LINKS_AFTER_COMMA: [&str; 2] = ["and", "but"];

/// A query, in parts.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) terms: Vec<Term>,
    pub(crate) pairs: Vec<SideBySide>,
    pub(crate) clauses: Vec<Clause>,
}

/// What stands for one word of a query. Who says a word twice seldom asks for it twice.
pub(crate) struct Term {
    /// The word itself first; what each counts.
    pub(crate) variants: Vec<(String, f32)>,
    /// What all of it counts.
    pub(crate) weight: f32,
}

/// Two words that stand side by side.
pub(crate) struct SideBySide {
    /// As tools have it.
    pub(crate) number: u32,
    /// Which of the query's words they are.
    pub(crate) terms: [usize; 2],
}

/// A part of a query: which of its words and pairs are in it.
#[derive(Default)]
pub(crate) struct Clause {
    pub(crate) terms: Vec<usize>,
    pub(crate) pairs: Vec<usize>,
}

impl Query {
    pub(crate) fn new(text: &str, lexicon: &Lexicon, ranking: &Ranking) -> Self {
        let mut query = Self::default();
        for clause in clauses(words::cut(text, LONGEST_QUERY)) {
            let mut terms = Vec::new();
            lexicon.each_term(clause, |term| terms.extend(query.term(term, lexicon, ranking)));
            if !terms.is_empty() {
                query.clause(&terms);
            }
        }
        query
    }

    /// Which of the query's words this is, unless it is one too many.
    fn term(&mut self, term: &str, lexicon: &Lexicon, ranking: &Ranking) -> Option<usize> {
        let weight = if lexicon.is_faint(term) { ranking.faint } else { 1.0 };
        if let Some(known) = self.terms.iter().position(|known| known.variants[0].0 == term) {
            self.terms[known].weight += ranking.repeat * weight;
            return Some(known);
        }
        if self.terms.len() == MOST_TERMS {
            return None;
        }
        let mut variants = vec![(term.to_owned(), 1.0)];
        let abbreviations = lexicon.abbreviations(term).iter().map(|other| (other, ranking.abbreviation));
        let synonyms = lexicon.synonyms(term).iter().map(|other| (other, ranking.synonym));
        for (other, weight) in abbreviations.chain(synonyms) {
            if weight > 0.0 && !variants.iter().any(|(known, _)| known == other) {
                variants.push((other.clone(), weight));
            }
        }
        self.terms.push(Term { variants, weight });
        Some(self.terms.len() - 1)
    }

    fn clause(&mut self, said: &[usize]) {
        let pairs: Vec<usize> = said.windows(2).filter_map(|pair| self.pair([pair[0], pair[1]])).collect();
        if self.clauses.len() < MOST_CLAUSES {
            self.clauses.push(Clause::default());
        }
        if let Some(clause) = self.clauses.last_mut() {
            extend(&mut clause.terms, said);
            extend(&mut clause.pairs, &pairs);
        }
    }

    fn pair(&mut self, terms: [usize; 2]) -> Option<usize> {
        if let Some(known) = self.pairs.iter().position(|known| known.terms == terms) {
            return Some(known);
        }
        if self.pairs.len() == MOST_TERMS {
            return None;
        }
        let [one, other] = terms.map(|term| self.terms[term].variants[0].0.as_str());
        self.pairs.push(SideBySide { number: pairs::number(one, other), terms });
        Some(self.pairs.len() - 1)
    }
}

/// Adds what is not there.
fn extend(all: &mut Vec<usize>, more: &[usize]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// The parts of a text: sentences, and what words like `then` begin.
fn clauses(text: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let (mut rest, mut before) = (text, "");
    for word in text.split_whitespace() {
        // A word is a slice of the text: where it is, is how far it is from the begin.
        let at = word.as_ptr() as usize - rest.as_ptr() as usize;
        if begins(before, word) {
            let (clause, next) = rest.split_at(at);
            clauses.push(clause);
            rest = next;
        }
        before = word;
    }
    clauses.push(rest);
    clauses
}

/// Whether a part begins with this word, after that one.
fn begins(before: &str, word: &str) -> bool {
    let bare = word.trim_matches(|char: char| !char.is_alphanumeric());
    let is_one_of = |links: &[&str]| links.iter().any(|link| link.eq_ignore_ascii_case(bare));
    before.ends_with(['.', '?', '!', ';', ':', '。', '？', '！'])
        || is_one_of(&LINKS)
        || (before.ends_with(',') && is_one_of(&LINKS_AFTER_COMMA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let trimmed: Vec<&str> = clauses(text).into_iter().map(str::trim).collect();
        assert_eq!(trimmed, expected);
    }

    #[test]
    fn a_query_is_told_apart_where_another_wish_begins() {
        check("Find a hotel. Book it!", &["Find a hotel.", "Book it!"]);
        check("Find a hotel, and book it", &["Find a hotel,", "and book it"]);
        check("salt and pepper", &["salt and pepper"]);
        check("read the file then send it", &["read the file", "then send it"]);
        check("read the file, Then, send it", &["read the file,", "Then, send it"]);
        check("What is example.com?", &["What is example.com?"]);
        check("", &[""]);
    }

    #[test]
    fn the_words_of_a_query_are_bounded() {
        let query = |text: &str| Query::new(text, &Lexicon::english(), &Ranking::default());
        let many: String = (0..1000).map(|number| format!("w{number}. ")).collect();
        let many = query(&many);
        assert_eq!((many.terms.len(), many.clauses.len()), (MOST_TERMS, MOST_CLAUSES));
        assert!(query(&"ab ".repeat(10_000)).terms.len() == 1);
        let said: Vec<usize> = query("copy file. copy folder. the. delete file")
            .clauses
            .iter()
            .map(|clause| clause.terms.len())
            .collect();
        assert_eq!(said, [2, 2, 2]);
    }
}
