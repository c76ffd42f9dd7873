//! Parsing of queries. Models and people ask for several things at once, with many filler words.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;

use crate::compounds;
use crate::index::{TermPosting, ToolIndex};
use crate::lexicon::LanguageEvidence;
use crate::values;
use crate::words;

/// Maximum length of a query, in bytes; the rest is ignored.
pub(crate) const MAX_QUERY_BYTES: usize = 4096;
/// Maximum number of different terms, and of bigrams of them; the rest is ignored.
const MAX_TERMS: usize = 64;
/// Maximum number of clauses; later clauses are joined with the last one.
const MAX_CLAUSES: usize = 16;
/// Minimum length of a word that consists of two words, and of each of these, in bytes.
const MIN_COMPOUND_LENGTH: usize = 2 * MIN_PART_LENGTH;
/// Lengths of words that consist of several words of a query, in bytes.
const JOINED_LENGTHS: RangeInclusive<usize> = MIN_COMPOUND_LENGTH..=64;
const MIN_PART_LENGTH: usize = 3;
/// Maximum number of words that are searched for as one word.
const MAX_JOINED_WORDS: usize = 4;

/// Stop words that other languages with Latin letters have as well, such as German, Dutch, Danish, French and Spanish.
const SHARED_STOP_WORDS: [&str; 33] = [
    "a", "all", "also", "am", "an", "as", "at", "be", "by", "can", "do", "for", "had", "have", "i", "im",
    "in", "is", "it", "like", "me", "most", "my", "no", "of", "on", "or", "so", "to", "want", "was", "we",
    "will",
];

/// Characters that end a clause.
const CLAUSE_ENDS: [char; 8] = ['.', '?', '!', ';', ':', '。', '？', '！'];

/// A query, split into clauses.
#[derive(Default)]
pub(crate) struct ParsedQuery<'i> {
    pub(crate) terms: Vec<QueryTerm<'i>>,
    pub(crate) bigrams: Vec<QueryBigram>,
    pub(crate) clauses: Vec<QueryClause>,
    /// True if a stop word is there that only English has.
    has_english_word: bool,
}

/// A word of a query and its variants. Repeated words share one term.
pub(crate) struct QueryTerm<'i> {
    /// The stem of the word.
    stem: String,
    /// The stem of the likeliest correction, if no tool has the word.
    correction: Option<String>,
    /// `true` for a value, such as a number or a quoted text, which tools have in their texts and not in their names.
    pub(crate) is_value: bool,
    /// The occurrences of the word in tools, and of related words.
    pub(crate) variants: Vec<TermVariant<'i>>,
    /// The weight of the term.
    pub(crate) weight: f32,
    /// Number of occurrences in the query.
    occurrences: u16,
    /// Degree to which tools have the word.
    matched: TermMatch,
    language: LanguageEvidence,
}

impl QueryTerm<'_> {
    /// The stem of the word as tools spell it.
    pub(crate) fn spelled(&self) -> &str {
        self.correction.as_deref().unwrap_or(&self.stem)
    }
}

/// The occurrences of a form of a word in tools, and the weight of the form.
pub(crate) struct TermVariant<'i> {
    pub(crate) postings: Cow<'i, [TermPosting]>,
    /// Number of tools by which its inverse document frequency is computed. A compound is at most as rare as the word
    /// that it stands for.
    pub(crate) document_frequency: usize,
    pub(crate) weight: f32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TermMatch {
    /// A tool has the word, its parts or a related word.
    Known,
    /// A tool has a word that is spelled alike.
    Corrected,
    Unknown,
}

/// Two adjacent words.
pub(crate) struct QueryBigram {
    /// The indexes of the two terms.
    pub(crate) terms: [usize; 2],
}

/// A clause of a query: the indexes of its terms and bigrams.
#[derive(Default)]
pub(crate) struct QueryClause {
    pub(crate) terms: Vec<usize>,
    pub(crate) bigrams: Vec<usize>,
}

impl<'i> ParsedQuery<'i> {
    pub(crate) fn new(text: &str, index: &'i ToolIndex) -> Self {
        let text = words::truncate(text, MAX_QUERY_BYTES);
        let has_values = index.ranking.value_in_name < 1.0;
        let mut query = Self::read(text, index, has_values);
        // A query of nothing but a quoted text or a number is a wish.
        if has_values && query.terms.iter().all(|term| term.is_value) {
            query = Self::read(text, index, false);
        }
        query.set_weights(index);
        query
    }

    fn read(text: &str, index: &'i ToolIndex, has_values: bool) -> Self {
        let mut query = Self::default();
        for clause in clauses(text) {
            let mut reader = ClauseReader {
                query: &mut query,
                index,
                terms: Vec::new(),
                before: VecDeque::new(),
                names: names(clause),
            };
            let parts = if has_values { values::parts(clause) } else { vec![(clause, false)] };
            for (part, is_value) in parts {
                words::each_word(part, |word| reader.word(word, is_value));
            }
            let terms = reader.terms;
            if !terms.is_empty() {
                query.add_clause(&terms);
            }
        }
        query
    }

    /// Returns `true` if tools have a word of the query, or if at least half of the words are misspelled words of
    /// tools. Single words of another language may look like misspelled ones.
    pub(crate) fn is_understood(&self) -> bool {
        let count = |matched| self.terms.iter().filter(|term| term.matched == matched).count();
        count(TermMatch::Known) > 0 || 2 * count(TermMatch::Corrected) >= self.terms.len()
    }

    /// Returns `true` if fewer than half of the words are words of tools, or half of them and another one is a function
    /// word of another language, unless a stop word is there that only English has: the query may be in another
    /// language, of which single words occur by accident. Names count for neither side.
    pub(crate) fn may_be_foreign(&self) -> bool {
        let count = |language| self.terms.iter().filter(|term| term.language == language).count();
        let is_known = |term: &&QueryTerm<'_>| {
            term.matched == TermMatch::Known && term.language == LanguageEvidence::Open
        };
        let known = self.terms.iter().filter(is_known).count();
        let foreign = count(LanguageEvidence::Foreign);
        let words = count(LanguageEvidence::Open) + foreign;
        !self.has_english_word && (2 * known < words || foreign > 0 && 2 * known == words)
    }

    fn set_weights(&mut self, index: &ToolIndex) {
        let ranking = &index.ranking;
        for term in &mut self.terms {
            let occurrences = f32::from(term.occurrences);
            let repeated = occurrences * (ranking.k3 + 1.0) / (occurrences + ranking.k3);
            let filler = if index.lexicon.is_filler(term.spelled()) { ranking.filler } else { 1.0 };
            term.weight = repeated * filler;
        }
    }

    fn add_clause(&mut self, terms: &[usize]) {
        let bigrams: Vec<usize> =
            terms.windows(2).filter_map(|terms| self.bigram([terms[0], terms[1]])).collect();
        if self.clauses.len() < MAX_CLAUSES {
            self.clauses.push(QueryClause::default());
        }
        if let Some(clause) = self.clauses.last_mut() {
            add_missing(&mut clause.terms, terms);
            add_missing(&mut clause.bigrams, &bigrams);
        }
    }

    fn bigram(&mut self, terms: [usize; 2]) -> Option<usize> {
        if let Some(index) = self.bigrams.iter().position(|other| other.terms == terms) {
            return Some(index);
        }
        if self.bigrams.len() == MAX_TERMS {
            return None;
        }
        self.bigrams.push(QueryBigram { terms });
        Some(self.bigrams.len() - 1)
    }
}

/// Reads the words of a clause.
struct ClauseReader<'q, 'i> {
    query: &'q mut ParsedQuery<'i>,
    index: &'i ToolIndex,
    /// The indexes of the terms of the clause, in order.
    terms: Vec<usize>,
    /// The words before, with their terms unless they are stop words.
    before: VecDeque<(String, Option<usize>)>,
    /// The words that are written like names.
    names: HashSet<String>,
}

impl ClauseReader<'_, '_> {
    fn word(&mut self, word: &str, is_value: bool) {
        let is_stop = self.index.lexicon.is_stop(word);
        self.query.has_english_word |= is_stop && !SHARED_STOP_WORDS.contains(&word);
        let term = if is_stop { None } else { self.term(word, is_value) };
        self.terms.extend(term);
        self.before.push_back((word.to_owned(), term));
        if self.before.len() > MAX_JOINED_WORDS {
            self.before.pop_front();
        }
        if !is_value {
            (0..self.before.len() - 1).for_each(|start| self.join(start));
        }
    }

    /// Returns the index of the term of a word, which is added unless there are too many.
    fn term(&mut self, word: &str, is_value: bool) -> Option<usize> {
        let stem = self.index.lexicon.stem(word).into_owned();
        if let Some(at) = self.query.terms.iter().position(|other| other.stem == stem) {
            let occurrences = self.query.terms[at].occurrences.saturating_add(1);
            // What is a word anywhere in the query is no value.
            if self.query.terms[at].is_value && !is_value {
                self.query.terms[at] = query_term(word, stem, self.index);
            }
            self.query.terms[at].occurrences = occurrences;
            return Some(at);
        }
        if self.query.terms.len() == MAX_TERMS {
            return None;
        }
        let mut term =
            if is_value { value_term(stem, self.index) } else { query_term(word, stem, self.index) };
        if self.names.contains(word) {
            term.language = LanguageEvidence::Neutral;
        }
        self.query.terms.push(term);
        Some(self.query.terms.len() - 1)
    }

    /// Relates the words from `start` on to the word that they form together, if a tool has it: `git hub` to `github`.
    fn join(&mut self, start: usize) {
        let words = || self.before.iter().skip(start);
        let length: usize = words().map(|(word, _)| word.len()).sum();
        let weight = self.index.ranking.compound;
        if weight == 0.0 || !JOINED_LENGTHS.contains(&length) {
            return;
        }
        let joined: String = words().map(|(word, _)| word.as_str()).collect();
        let postings = self.index.postings(&self.index.lexicon.stem(&joined));
        if !postings.is_empty() {
            for term in words().filter_map(|(_, term)| *term) {
                let term = &mut self.query.terms[term];
                term.matched = TermMatch::Known;
                let document_frequency = postings.len().max(self.index.postings(&term.stem).len());
                term.variants.push(TermVariant {
                    postings: Cow::Borrowed(postings),
                    document_frequency,
                    weight,
                });
            }
        }
    }
}

/// The term of a word with the variants that tools have.
fn query_term<'i>(word: &str, stem: String, index: &'i ToolIndex) -> QueryTerm<'i> {
    let (lexicon, ranking) = (&index.lexicon, &index.ranking);
    let mut variants = Vec::new();
    let mut add = |postings: Cow<'i, [TermPosting]>, weight: f32| {
        if weight > 0.0 && !postings.is_empty() {
            let document_frequency = postings.len();
            variants.push(TermVariant { postings, document_frequency, weight });
        }
    };
    let borrow = |stem: &str| Cow::Borrowed(index.postings(stem));
    add(borrow(&stem), 1.0);
    lexicon.abbreviations(&stem).iter().for_each(|other| add(borrow(other), ranking.abbreviation));
    lexicon.synonyms(&stem).iter().for_each(|other| add(borrow(other), ranking.synonym));
    if ranking.compound > 0.0 {
        let joined = index.postings(&compounds::term(&stem));
        if !joined.is_empty() {
            let document_frequency = joined.len().max(index.postings(&stem).len());
            let postings = Cow::Borrowed(joined);
            variants.push(TermVariant { postings, document_frequency, weight: ranking.compound });
        }
        for [one, other] in splits(word, index) {
            let postings = index.adjacent(&one, &other);
            if !postings.is_empty() {
                let document_frequency = postings.len().max(index.postings(&stem).len());
                let postings = Cow::Owned(postings);
                variants.push(TermVariant { postings, document_frequency, weight: ranking.compound });
            }
        }
    }
    let (mut matched, mut correction) = (TermMatch::Known, None);
    if variants.is_empty() && ranking.spelling > 0.0 {
        matched = TermMatch::Corrected;
        for other in index.vocabulary.corrections(word) {
            let stem = lexicon.stem(other).into_owned();
            let postings = Cow::Borrowed(index.postings(&stem));
            let document_frequency = postings.len();
            variants.push(TermVariant { postings, document_frequency, weight: ranking.spelling });
            correction.get_or_insert(stem);
        }
    }
    if variants.is_empty() {
        matched = TermMatch::Unknown;
    }
    let language = lexicon.language(word);
    QueryTerm { stem, correction, is_value: false, variants, weight: 1.0, occurrences: 1, matched, language }
}

/// The term of a word in a value, which has no other form and no language.
fn value_term(stem: String, index: &ToolIndex) -> QueryTerm<'_> {
    let postings = index.postings(&stem);
    let document_frequency = postings.len();
    let variant = TermVariant { postings: Cow::Borrowed(postings), document_frequency, weight: 1.0 };
    let matched = if postings.is_empty() { TermMatch::Unknown } else { TermMatch::Known };
    QueryTerm {
        stem,
        correction: None,
        is_value: true,
        variants: vec![variant],
        weight: 1.0,
        occurrences: 1,
        matched,
        language: LanguageEvidence::Neutral,
    }
}

/// The words of a clause, after its first one, that begin with a capital letter, in lower case.
fn names(clause: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    let later = clause.split_whitespace().skip(1);
    for name in later
        .filter(|word| word.chars().find(|char| char.is_alphabetic()).is_some_and(|char| char.is_uppercase()))
    {
        words::each_word(name, |word| {
            names.insert(word.to_owned());
        });
    }
    names
}

/// The stems of two words of tools that form this word when they are joined.
fn splits(word: &str, index: &ToolIndex) -> Vec<[String; 2]> {
    if word.len() < MIN_COMPOUND_LENGTH || !word.is_ascii() {
        return Vec::new();
    }
    let parts = (MIN_PART_LENGTH..=word.len() - MIN_PART_LENGTH).map(|at| word.split_at(at).into());
    let stems = parts.map(|parts: [&str; 2]| parts.map(|part| index.lexicon.stem(part).into_owned()));
    stems.filter(|stems| stems.iter().all(|stem| !index.postings(stem).is_empty())).collect()
}

/// Adds the elements that are missing.
fn add_missing(all: &mut Vec<usize>, more: &[usize]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// Splits a text into clauses, which are its sentences and the items of its lists.
fn clauses(text: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let (mut rest, mut before) = (text, "");
    for word in text.split_whitespace() {
        // A word is a slice of the text, so its offset is the distance of the pointers.
        let at = word.as_ptr() as usize - rest.as_ptr() as usize;
        if before.ends_with(CLAUSE_ENDS) {
            let (clause, next) = rest.split_at(at);
            clauses.push(clause);
            rest = next;
        }
        before = word;
    }
    clauses.push(rest);
    clauses
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{RankingWeights, SearchLexicon};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let trimmed: Vec<&str> = clauses(text).into_iter().map(str::trim).collect();
        assert_eq!(trimmed, expected);
    }

    #[test]
    fn query_is_split_into_clauses() {
        check("Find a hotel. Book it!", &["Find a hotel.", "Book it!"]);
        check("Find a hotel, then book it", &["Find a hotel, then book it"]);
        check("Tasks: find a hotel; book it", &["Tasks:", "find a hotel;", "book it"]);
        check("What is example.com?", &["What is example.com?"]);
        check("", &[""]);
    }

    #[test]
    fn size_of_a_query_is_limited() {
        let index = ToolIndex::new(Arc::new(SearchLexicon::english()), RankingWeights::default());
        let query = |text: &str| ParsedQuery::new(text, &index);
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

    #[test]
    fn queries_in_other_languages_are_doubtful() {
        let tool = |name: &str, description: &str| crate::ToolDocument {
            key: name.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            ..crate::ToolDocument::default()
        };
        let tools = vec![
            tool("get_weather", "Returns the weather forecast of a city, such as Paris or Berlin."),
            tool("create_event", "Creates an event in the calendar, such as a meeting in a hotel."),
            tool("search_files", "Finds files by their names."),
            tool("translate", "Translates a text, such as el tiempo, between languages: en, de, es"),
        ];
        let put = crate::IndexChange::Put { server: "office".to_owned(), tools };
        let index =
            ToolIndex::new(Arc::new(SearchLexicon::english()), RankingWeights::default()).apply([put]);
        let check = |query: &str, expected: bool| {
            assert_eq!(index.may_be_foreign(query), expected, "{query}");
        };
        for query in [
            "Wetter in Paris morgen",
            "Wie wird das Wetter am Freitag in Berlin?",
            "Quel temps fera-t-il à Paris demain",
            "Reserva un hotel para mañana por la noche",
            "prenota un hotel per domani",
            // Words that happen to be in a tool, and names, are no evidence.
            "el tiempo en Madrid",
            "meteo a Paris",
            "el vuelo de Madrid",
            "envoyer Slack",
            "Hvordan bliver vejret i Paris for os",
        ] {
            check(query, true);
        }
        for query in [
            "weather in Paris tomorrow",
            "weather Gotham",
            "get_weather",
            "weather in Paris and the Frobnitz of Zorkmid with Gunther",
            "weahter forecast Paris",
            "translate en to es",
            "weather in Los Angeles",
            "Search Files In Dropbox",
            "create event Kickoff",
            "",
        ] {
            check(query, false);
        }
    }

    #[test]
    fn shared_stop_words_are_stop_words() {
        let lexicon = SearchLexicon::english();
        let others: Vec<_> = SHARED_STOP_WORDS.iter().filter(|word| !lexicon.is_stop(word)).collect();
        assert_eq!(others, [&""; 0]);
    }
}
