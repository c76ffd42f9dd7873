//! Okapi BM25 over unstemmed words, with a bonus for adjacent words: the ranker of earlier agent software.
//!
//! Other software relies on its order and its scores, so they must not change.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

/// The ranker and its two constants.
#[derive(Clone, Copy, Debug)]
pub struct Bm25Ranker {
    /// Saturation of repeated words.
    pub k1: f64,
    /// Penalty for long texts, from 0 to 1.
    pub b: f64,
}

impl Default for Bm25Ranker {
    fn default() -> Self {
        Self { k1: 1.5, b: 0.75 }
    }
}

/// Minimum length of a word.
const SHORTEST_WORD: usize = 3;

/// Weight of a bigram, which is two adjacent words, relative to a single word.
const BIGRAM_WEIGHT: f64 = 2.0;

impl Bm25Ranker {
    /// Returns the candidates whose text matches the query, the best first. Candidates with equal scores keep their
    /// order.
    pub fn rank<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text: impl Fn(&T) -> String,
        query: &str,
    ) -> Vec<T> {
        let ranked = self.rank_with_scores(candidates, text, query);
        ranked.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// Like [`rank`](Self::rank), with scores. Scores are comparable within one result only: divide by the first one
    /// for a relative score.
    pub fn rank_with_scores<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text: impl Fn(&T) -> String,
        query: &str,
    ) -> Vec<(T, f64)> {
        let candidates: Vec<T> = candidates.into_iter().collect();
        let scores = Bm25Texts::new(candidates.iter().map(text)).scores(self, query);
        let mut ranked: Vec<(T, f64)> = candidates.into_iter().zip(scores).collect();
        ranked.retain(|(_, score)| *score > 0.0);
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }
}

/// Indexed texts, for several queries.
pub struct Bm25Texts {
    /// All texts in lower case (ASCII only), each followed by a separator that no bigram contains.
    joined: Vec<u8>,
    /// End of each text in `joined`.
    ends: Vec<usize>,
    /// Number of words of each text.
    lengths: Vec<usize>,
    /// The texts that contain a word, with the number of occurrences.
    words: HashMap<String, Vec<(usize, usize)>>,
}

impl Bm25Texts {
    /// Indexes the texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut index =
            Self { joined: Vec::new(), ends: Vec::new(), lengths: Vec::new(), words: HashMap::new() };
        for text in texts {
            index.add(&text);
        }
        index
    }

    fn add(&mut self, text: &str) {
        let words = words(text);
        self.joined.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
        self.joined.push(0);
        let at = self.ends.len();
        self.ends.push(self.joined.len());
        self.lengths.push(words.len());
        for word in words {
            count(self.words.entry(word).or_default(), at);
        }
    }

    /// Returns the score of each text, in order; 0 for texts that do not match the query.
    pub fn scores(&self, ranker: &Bm25Ranker, query: &str) -> Vec<f64> {
        let all = words(query);
        let mut scores = vec![0.0; self.ends.len()];
        for word in distinct(all.iter().cloned()) {
            let counts = self.words.get(&word).map(Vec::as_slice).unwrap_or_default();
            self.add_scores(&mut scores, ranker, counts, 1.0);
        }
        for bigram in distinct(all.windows(2).map(|words| words.join(" "))) {
            self.add_scores(&mut scores, ranker, &self.bigram_counts(&bigram), BIGRAM_WEIGHT);
        }
        scores
    }

    /// Returns the number of different words of a query that a text has.
    pub fn count_words(&self, text: usize, query: &str) -> usize {
        let has = |word: &String| {
            let texts = self.words.get(word).map(Vec::as_slice).unwrap_or_default();
            texts.binary_search_by_key(&text, |(at, _)| *at).is_ok()
        };
        distinct(words(query).into_iter()).iter().filter(|word| has(word)).count()
    }

    /// The texts that contain a bigram, with the number of occurrences.
    fn bigram_counts(&self, bigram: &str) -> Vec<(usize, usize)> {
        let mut counts = Vec::new();
        for position in memmem::find_iter(&self.joined, bigram) {
            count(&mut counts, self.ends.partition_point(|end| *end <= position));
        }
        counts
    }

    /// Adds the score of one word or bigram to each text.
    fn add_scores(&self, scores: &mut [f64], ranker: &Bm25Ranker, counts: &[(usize, usize)], weight: f64) {
        let (texts, matching) = (scores.len() as f64, counts.len() as f64);
        let length: usize = self.lengths.iter().sum();
        let average = if length == 0 { 1.0 } else { length as f64 / texts };
        let idf = ((texts - matching + 0.5) / (matching + 0.5) + 1.0).ln();
        for (at, count) in counts {
            let (count, length) = (*count as f64, self.lengths[*at] as f64);
            let damping = ranker.k1 * (1.0 - ranker.b + ranker.b * length / average);
            scores[*at] += weight * idf * (count * (ranker.k1 + 1.0) / (count + damping));
        }
    }
}

/// Counts one more occurrence in the text `at`, which is not before the last one.
fn count(counts: &mut Vec<(usize, usize)>, at: usize) {
    match counts.last_mut() {
        Some((last, count)) if *last == at => *count += 1,
        _ => counts.push((at, 1)),
    }
}

/// The words of a text in lower case: runs of at least three of the letters a-z and digits.
fn words(text: &str) -> Vec<String> {
    let lowered: String = text.chars().map(lower).collect();
    let words = lowered.split(|char: char| !(char.is_ascii_lowercase() || char.is_ascii_digit()));
    words.filter(|word| word.len() >= SHORTEST_WORD).map(str::to_owned).collect()
}

/// Lower case of a letter if that is a single letter, as in the original software.
fn lower(char: char) -> char {
    let mut lowered = char.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

/// Removes duplicates; keeps the order of first occurrence.
fn distinct(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(word.clone())).collect()
}

#[cfg(test)]
mod tests;
