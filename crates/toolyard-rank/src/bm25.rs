//! Okapi BM25 over texts as they are, with a bonus for pairs of words: the ranker of agents that came before.
//!
//! Other software relies on its order and on its scores, so it stays what it is.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

/// The ranker, with its two constants.
#[derive(Clone, Copy, Debug)]
pub struct Bm25Ranker {
    /// How soon repeating a word stops to count.
    pub k1: f64,
    /// How much long texts lose, from 0 to 1.
    pub b: f64,
}

impl Default for Bm25Ranker {
    fn default() -> Self {
        Self { k1: 1.5, b: 0.75 }
    }
}

/// Shorter words are not looked at.
const SHORTEST_WORD: usize = 3;

/// What a pair of words that stand together counts, beside one word.
const PAIR_WEIGHT: f64 = 2.0;

impl Bm25Ranker {
    /// Those of `candidates` whose text has something of the query, the best first. Where two are alike, they keep their order.
    pub fn rank<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        text: impl Fn(&T) -> String,
        query: &str,
    ) -> Vec<T> {
        let ranked = self.rank_with_scores(candidates, text, query);
        ranked.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// The same, with scores. They compare within one answer only: divide by the first one for a part of the best.
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

/// Texts that were read once, for several queries.
pub struct Bm25Texts {
    /// All texts in lower case, as far as ASCII goes, each with something behind it that no pair of words has in it.
    joined: Vec<u8>,
    /// Where each text ends in that.
    ends: Vec<usize>,
    /// In words.
    lengths: Vec<usize>,
    /// The texts that have a word, and how often.
    words: HashMap<String, Vec<(usize, usize)>>,
}

impl Bm25Texts {
    /// Reads the texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut read =
            Self { joined: Vec::new(), ends: Vec::new(), lengths: Vec::new(), words: HashMap::new() };
        for text in texts {
            read.add(&text);
        }
        read
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

    /// The score of each text, in their order; 0 for those that have nothing of the query.
    pub fn scores(&self, ranker: &Bm25Ranker, query: &str) -> Vec<f64> {
        let all = words(query);
        let mut scores = vec![0.0; self.ends.len()];
        for word in distinct(all.iter().cloned()) {
            let found = self.words.get(&word).map(Vec::as_slice).unwrap_or_default();
            self.add_scores(&mut scores, ranker, found, 1.0);
        }
        for pair in distinct(all.windows(2).map(|pair| pair.join(" "))) {
            self.add_scores(&mut scores, ranker, &self.having(&pair), PAIR_WEIGHT);
        }
        scores
    }

    /// The texts that have a pair of words, and how often.
    fn having(&self, pair: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for place in memmem::find_iter(&self.joined, pair) {
            count(&mut found, self.ends.partition_point(|end| *end <= place));
        }
        found
    }

    /// Adds what one word, or one pair, counts in each text.
    fn add_scores(&self, scores: &mut [f64], ranker: &Bm25Ranker, found: &[(usize, usize)], weight: f64) {
        let (texts, having) = (scores.len() as f64, found.len() as f64);
        let length: usize = self.lengths.iter().sum();
        let average = if length == 0 { 1.0 } else { length as f64 / texts };
        let rarity = ((texts - having + 0.5) / (having + 0.5) + 1.0).ln();
        for (at, count) in found {
            let (count, length) = (*count as f64, self.lengths[*at] as f64);
            let damping = ranker.k1 * (1.0 - ranker.b + ranker.b * length / average);
            scores[*at] += weight * rarity * (count * (ranker.k1 + 1.0) / (count + damping));
        }
    }
}

/// Counts one more at this place, which is not before the last one.
fn count(counts: &mut Vec<(usize, usize)>, at: usize) {
    match counts.last_mut() {
        Some((last, count)) if *last == at => *count += 1,
        _ => counts.push((at, 1)),
    }
}

/// Runs of the letters a-z and of digits, of at least three, in lower case.
fn words(text: &str) -> Vec<String> {
    let lowered: String = text.chars().map(lower).collect();
    let words = lowered.split(|char: char| !(char.is_ascii_lowercase() || char.is_ascii_digit()));
    words.filter(|word| word.len() >= SHORTEST_WORD).map(str::to_owned).collect()
}

/// A letter in lower case, where that is one letter: case is changed as it was where this ranker comes from.
fn lower(char: char) -> char {
    let mut lowered = char.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

/// Each once, in the order of their first.
fn distinct(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(word.clone())).collect()
}

#[cfg(test)]
mod tests;
