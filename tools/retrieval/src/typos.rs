//! Typing errors in words that the wanted tool has, which a ranking must recognise.

use std::collections::HashSet;

use super::figures::SetFigures;
use super::sets::{RetrievalQuery, RetrievalSet};
use super::variants::{self, Misspelling, SeededNumbers};

/// Number of queries of a set.
const QUERIES: usize = 200;
/// The errors, in turns.
const MISSPELLINGS: [Misspelling; 2] = [variants::replace_letter, variants::swap_letters];

/// The queries of a set that have a word of a tool that they need, without and with an error in such a word.
pub(super) struct TypoQueries {
    pub(super) without: RetrievalSet,
    pub(super) with: RetrievalSet,
}

impl TypoQueries {
    pub(super) fn new(set: &RetrievalSet) -> Self {
        let set = set.sample(usize::MAX, QUERIES);
        let misspelled = set.queries.iter().enumerate().filter_map(|(at, query)| {
            let words = wanted_words(&set, query);
            let is_wanted = |word: &str| words.contains(&word.to_lowercase());
            let numbers = &mut SeededNumbers::new(&query.text);
            let misspelling = MISSPELLINGS[at % MISSPELLINGS.len()];
            let text = variants::misspell(&query.text, numbers, misspelling, is_wanted);
            (text != query.text).then(|| (query.clone(), RetrievalQuery { text, ..query.clone() }))
        });
        let (without, with) = misspelled.unzip();
        let of = |queries| RetrievalSet { name: set.name.clone(), tools: set.tools.clone(), queries };
        Self { without: of(without), with: of(with) }
    }

    /// The points of nDCG@10 that the errors cost.
    pub(super) fn loss(&self, measure: impl Fn(&RetrievalSet) -> SetFigures) -> f64 {
        measure(&self.without).all.ndcg_at_10 - measure(&self.with).all.ndcg_at_10
    }
}

/// The words of the tools that a query needs, in lower case.
fn wanted_words(set: &RetrievalSet, query: &RetrievalQuery) -> HashSet<String> {
    let relevant: HashSet<&str> = query.relevant.iter().flatten().map(String::as_str).collect();
    let mut words = HashSet::new();
    for tool in set.tools.iter().filter(|tool| relevant.contains(&*tool.id)) {
        let parameters = tool.parameters().into_iter().flat_map(|(name, text)| [name, text]);
        for text in [tool.name.clone(), tool.description().to_owned()].into_iter().chain(parameters) {
            let text = text.to_lowercase();
            words.extend(text.split(|char: char| !char.is_alphanumeric()).map(str::to_owned));
        }
    }
    words
}
