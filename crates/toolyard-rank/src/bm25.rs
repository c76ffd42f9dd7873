//! Okapi BM25 over texts as they are, with a bonus for pairs of words: the ranker of agents that came before.
//!
//! Other software relies on its order and on its scores, so it stays what it is. It prepares nothing: each query reads all texts.

use std::collections::HashMap;

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
        let (candidates, texts): (Vec<T>, Vec<Text>) = candidates
            .into_iter()
            .map(|candidate| {
                let text = Text::new(text(&candidate));
                (candidate, text)
            })
            .unzip();
        let scores = self.scores(&texts, query);
        let mut ranked: Vec<(T, f64)> = candidates.into_iter().zip(scores).collect();
        ranked.retain(|(_, score)| *score > 0.0);
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked
    }

    fn scores(&self, texts: &[Text], query: &str) -> Vec<f64> {
        let all = words(query);
        let pairs = distinct(all.windows(2).map(|pair| pair.join(" ")));
        let words = distinct(all.iter().cloned());
        let length = texts.iter().map(|text| text.length).sum::<usize>() as f64;
        let average = if length == 0.0 { 1.0 } else { length / texts.len() as f64 };
        let mut scores = vec![0.0; texts.len()];
        for word in &words {
            let counts: Vec<usize> = texts.iter().map(|text| text.count_of_word(word)).collect();
            self.add(&mut scores, texts, &counts, average, 1.0);
        }
        for pair in &pairs {
            let counts: Vec<usize> = texts.iter().map(|text| text.count_of_pair(pair)).collect();
            self.add(&mut scores, texts, &counts, average, PAIR_WEIGHT);
        }
        scores
    }

    /// Adds what one word, or one pair, counts in each text.
    fn add(&self, scores: &mut [f64], texts: &[Text], counts: &[usize], average: f64, weight: f64) {
        let having = counts.iter().filter(|count| **count > 0).count() as f64;
        let rarity = ((texts.len() as f64 - having + 0.5) / (having + 0.5) + 1.0).ln();
        for ((score, text), count) in scores.iter_mut().zip(texts).zip(counts) {
            let (count, length) = (*count as f64, text.length as f64);
            let damping = self.k1 * (1.0 - self.b + self.b * length / average);
            if count > 0.0 {
                *score += weight * rarity * (count * (self.k1 + 1.0) / (count + damping));
            }
        }
    }
}

/// A text of a candidate.
struct Text {
    /// As it is, but for the case of ASCII letters, which pairs are found without.
    lowered: String,
    counts: HashMap<String, usize>,
    /// In words.
    length: usize,
}

impl Text {
    fn new(text: String) -> Self {
        let words = words(&text);
        let length = words.len();
        let mut counts = HashMap::new();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        Self { lowered: text.to_ascii_lowercase(), counts, length }
    }

    fn count_of_word(&self, word: &str) -> usize {
        self.counts.get(word).copied().unwrap_or_default()
    }

    fn count_of_pair(&self, pair: &str) -> usize {
        self.lowered.matches(pair).count()
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
    let mut seen = Vec::new();
    for word in words {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen
}

#[cfg(test)]
mod tests;
