//! Okapi BM25, plain and tuned: the baseline of our ranker. It equals the Python program beside the sets, and shares
//! nothing with our ranker but the stemmer.

use std::collections::{BTreeMap, HashMap};

use frostem::{Algorithm, Stemmer};

use super::sets::CatalogTool;

const K1: f64 = 1.5;
const B: f64 = 0.75;

const STOP_WORDS: &str = "a an the of to in for and or on at by with from is are be was were it its this that these those as i me my we our you \
    your can could would will shall should do does did have has had not no if then than so such into about all any some more most \
    please want need like also what which who how when where there here up out am im";

/// The indexed text of a tool.
pub(super) enum BaselineReading {
    /// Name and description, as plain words.
    Plain,
    /// Also server and parameters; identifiers split, stop words removed, words stemmed.
    Tuned(Stemmer),
}

impl BaselineReading {
    pub(super) fn tuned() -> Self {
        Self::Tuned(Stemmer::new(Algorithm::English))
    }

    fn text(&self, tool: &CatalogTool) -> String {
        let mut text = format!("{} {}", tool.name, tool.description());
        if let Self::Tuned(_) = self {
            text += &format!(" {}", tool.server());
            for (name, description) in tool.parameters() {
                text += &format!(" {name} {description}");
            }
        }
        text
    }

    fn terms(&self, text: &str) -> Vec<String> {
        match self {
            Self::Plain => words(text, |char| char.is_alphanumeric() || char == '_'),
            Self::Tuned(stemmer) => {
                let mut words = words(&split_identifiers(text), char::is_alphanumeric);
                words.retain(|word| !STOP_WORDS.split_whitespace().any(|stop| stop == word));
                words.iter().map(|word| stemmer.stem(word).into_owned()).collect()
            }
        }
    }
}

fn words(text: &str, is_in_word: impl Fn(char) -> bool) -> Vec<String> {
    let lowered = text.to_lowercase();
    let words = lowered.split(|char| !is_in_word(char)).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Inserts a blank where a word begins within an identifier: `get User`, `HTTP Server`.
fn split_identifiers(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut split = String::new();
    for (at, char) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let is_after = |is: fn(&char) -> bool| before.as_ref().is_some_and(is);
        let is_before_lower = chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let ends_word = is_after(char::is_ascii_lowercase) || is_after(char::is_ascii_digit);
        if char.is_ascii_uppercase() && (ends_word || (is_after(char::is_ascii_uppercase) && is_before_lower))
        {
            split.push(' ');
        }
        split.push(*char);
    }
    split
}

/// A BM25 index of tools.
pub(super) struct BaselineBm25<'t> {
    reading: BaselineReading,
    tools: &'t [CatalogTool],
    lengths: Vec<f64>,
    mean_length: f64,
    postings: HashMap<String, Vec<(usize, f64)>>,
}

impl<'t> BaselineBm25<'t> {
    pub(super) fn new(reading: BaselineReading, tools: &'t [CatalogTool]) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (at, tool) in tools.iter().enumerate() {
            let terms = reading.terms(&reading.text(tool));
            lengths.push(terms.len() as f64);
            let mut counts = BTreeMap::new();
            terms.into_iter().for_each(|term| *counts.entry(term).or_insert(0.0) += 1.0);
            for (term, count) in counts {
                postings.entry(term).or_default().push((at, count));
            }
        }
        let mean_length = lengths.iter().sum::<f64>() / tools.len().max(1) as f64;
        Self { reading, tools, lengths, mean_length, postings }
    }

    /// The IDs of the best tools. A repeated word of the query counts repeatedly.
    pub(super) fn rank(&self, query: &str, limit: usize) -> Vec<String> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for term in self.reading.terms(query) {
            let hits = self.postings.get(&term).map(Vec::as_slice).unwrap_or_default();
            let (tools, having) = (self.tools.len() as f64, hits.len() as f64);
            let rarity = (1.0 + (tools - having + 0.5) / (having + 0.5)).ln();
            for (at, count) in hits {
                let damping = K1 * (1.0 - B + B * self.lengths[*at] / self.mean_length);
                *scores.entry(*at).or_default() += rarity * count * (K1 + 1.0) / (count + damping);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked.iter().take(limit).map(|(at, _)| self.tools[*at].id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reading: &BaselineReading, text: &str, expected: &str) {
        assert_eq!(reading.terms(text).join(" "), expected);
    }

    /// The same terms as in the Python program.
    #[test]
    fn terms_equal_those_of_the_python_program() {
        check(&BaselineReading::Plain, "getUserByID get_user, x2", "getuserbyid get_user x2");
        check(&BaselineReading::tuned(), "getUserByID get_users", "get user id get user");
        check(&BaselineReading::tuned(), "HTTPServer k8sPod", "http server k8s pod");
        check(&BaselineReading::tuned(), "What is the forecasting of this?", "forecast");
    }
}
