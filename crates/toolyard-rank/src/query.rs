//! Parsing of queries. Models and people ask for several things at once, with many filler words.

use crate::lexicon::SearchLexicon;
use crate::ranking::RankingWeights;
use crate::term_pairs;
use crate::words;

/// Maximum length of a query, in bytes; the rest is ignored.
pub(crate) const MAX_QUERY_BYTES: usize = 4096;
/// Maximum number of different terms, and of pairs of them; the rest is ignored.
const MAX_TERMS: usize = 64;
/// Maximum number of clauses; later clauses are joined with the last one.
const MAX_CLAUSES: usize = 16;

/// Words that start a clause.
const CLAUSE_STARTERS: [&str; 9] =
    ["then", "also", "additionally", "furthermore", "moreover", "finally", "lastly", "next", "afterwards"];
/// Words that start a clause after a comma.
const STARTERS_AFTER_COMMA: [&str; 2] = ["and", "but"];

/// A query, split into clauses.
#[derive(Default)]
pub(crate) struct ParsedQuery {
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) pairs: Vec<QueryPair>,
    pub(crate) clauses: Vec<QueryClause>,
}

/// A word of a query and its variants. Repeated words share one term, because a repetition seldom adds meaning.
pub(crate) struct QueryTerm {
    /// The word itself first, then its variants, with the weight of each.
    pub(crate) variants: Vec<(String, f32)>,
    /// The weight of the term.
    pub(crate) weight: f32,
}

/// Two adjacent words.
pub(crate) struct QueryPair {
    /// The hash of the pair, as in the tools.
    pub(crate) number: u32,
    /// The indexes of the two terms.
    pub(crate) terms: [usize; 2],
}

/// A clause of a query: the indexes of its terms and pairs.
#[derive(Default)]
pub(crate) struct QueryClause {
    pub(crate) terms: Vec<usize>,
    pub(crate) pairs: Vec<usize>,
}

impl ParsedQuery {
    pub(crate) fn new(text: &str, lexicon: &SearchLexicon, ranking: &RankingWeights) -> Self {
        let mut query = Self::default();
        for clause in clauses(words::truncate(text, MAX_QUERY_BYTES)) {
            let mut terms = Vec::new();
            lexicon.each_term(clause, |term| terms.extend(query.term(term, lexicon, ranking)));
            if !terms.is_empty() {
                query.clause(&terms);
            }
        }
        query
    }

    /// Returns the index of a term, which is added unless there are too many.
    fn term(&mut self, term: &str, lexicon: &SearchLexicon, ranking: &RankingWeights) -> Option<usize> {
        let weight = if lexicon.is_filler(term) { ranking.filler } else { 1.0 };
        if let Some(index) = self.terms.iter().position(|other| other.variants[0].0 == term) {
            self.terms[index].weight += ranking.repetition * weight;
            return Some(index);
        }
        if self.terms.len() == MAX_TERMS {
            return None;
        }
        let mut variants = vec![(term.to_owned(), 1.0)];
        let abbreviations = lexicon.abbreviations(term).iter().map(|other| (other, ranking.abbreviation));
        let synonyms = lexicon.synonyms(term).iter().map(|other| (other, ranking.synonym));
        for (other, weight) in abbreviations.chain(synonyms) {
            if weight > 0.0 && !variants.iter().any(|(variant, _)| variant == other) {
                variants.push((other.clone(), weight));
            }
        }
        self.terms.push(QueryTerm { variants, weight });
        Some(self.terms.len() - 1)
    }

    fn clause(&mut self, terms: &[usize]) {
        let pairs: Vec<usize> = terms.windows(2).filter_map(|pair| self.pair([pair[0], pair[1]])).collect();
        if self.clauses.len() < MAX_CLAUSES {
            self.clauses.push(QueryClause::default());
        }
        if let Some(clause) = self.clauses.last_mut() {
            add_missing(&mut clause.terms, terms);
            add_missing(&mut clause.pairs, &pairs);
        }
    }

    fn pair(&mut self, terms: [usize; 2]) -> Option<usize> {
        if let Some(index) = self.pairs.iter().position(|other| other.terms == terms) {
            return Some(index);
        }
        if self.pairs.len() == MAX_TERMS {
            return None;
        }
        let [one, other] = terms.map(|term| self.terms[term].variants[0].0.as_str());
        self.pairs.push(QueryPair { number: term_pairs::pair_hash(one, other), terms });
        Some(self.pairs.len() - 1)
    }
}

/// Adds the elements that are missing.
fn add_missing(all: &mut Vec<usize>, more: &[usize]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// Splits a text into clauses: sentences, and parts that begin with a word like `then`.
fn clauses(text: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let (mut rest, mut before) = (text, "");
    for word in text.split_whitespace() {
        // A word is a slice of the text, so its offset is the distance of the pointers.
        let at = word.as_ptr() as usize - rest.as_ptr() as usize;
        if starts_clause(before, word) {
            let (clause, next) = rest.split_at(at);
            clauses.push(clause);
            rest = next;
        }
        before = word;
    }
    clauses.push(rest);
    clauses
}

/// True if `word` starts a clause after the word `before`.
fn starts_clause(before: &str, word: &str) -> bool {
    let bare = word.trim_matches(|char: char| !char.is_alphanumeric());
    let is_one_of = |links: &[&str]| links.iter().any(|link| link.eq_ignore_ascii_case(bare));
    before.ends_with(['.', '?', '!', ';', ':', '。', '？', '！'])
        || is_one_of(&CLAUSE_STARTERS)
        || (before.ends_with(',') && is_one_of(&STARTERS_AFTER_COMMA))
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
    fn query_is_split_into_clauses() {
        check("Find a hotel. Book it!", &["Find a hotel.", "Book it!"]);
        check("Find a hotel, and book it", &["Find a hotel,", "and book it"]);
        check("salt and pepper", &["salt and pepper"]);
        check("read the file then send it", &["read the file", "then send it"]);
        check("read the file, Then, send it", &["read the file,", "Then, send it"]);
        check("What is example.com?", &["What is example.com?"]);
        check("", &[""]);
    }

    #[test]
    fn size_of_a_query_is_limited() {
        let query =
            |text: &str| ParsedQuery::new(text, &SearchLexicon::english(), &RankingWeights::default());
        let many: String = (0..1000).map(|number| format!("w{number}. ")).collect();
        let many = query(&many);
        assert_eq!((many.terms.len(), many.clauses.len()), (MAX_TERMS, MAX_CLAUSES));
        assert!(query(&"ab ".repeat(10_000)).terms.len() == 1);
        let lengths: Vec<usize> = query("copy file. copy folder. the. delete file")
            .clauses
            .iter()
            .map(|clause| clause.terms.len())
            .collect();
        assert_eq!(lengths, [2, 2, 2]);
    }
}
