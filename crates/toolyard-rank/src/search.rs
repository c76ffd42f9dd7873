//! The search for the tools that match a query.

use std::sync::Arc;

use crate::index::{TermPosting, ToolIndex};
use crate::query::{ParsedQuery, QueryClause, QueryPair, QueryTerm};
use crate::ranking::ToolField;
use crate::server_index::FieldCounts;

/// A matching tool.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The key of the tool.
    pub key: Arc<str>,
    /// The score, above 0. Scores are comparable within one result only.
    pub score: f32,
}

/// Slots, each once, with their scores.
type SlotScores = Vec<(u32, f32)>;

impl ToolIndex {
    /// Returns the best tools for a query, `limit` at most, the best first and by key if scores are equal. A query is
    /// words or sentences in any form. Its first 4,096 bytes and 64 different words are used.
    pub fn search(&self, query: &str, limit: usize) -> Vec<SearchHit> {
        let query = ParsedQuery::new(query, self);
        if !query.is_understood() {
            return Vec::new();
        }
        let mut search = IndexSearch::new(self);
        let terms: Vec<SlotScores> = query.terms.iter().map(|term| search.term(term)).collect();
        let pairs: Vec<SlotScores> = query.pairs.iter().map(|pair| search.pair(&query, pair)).collect();
        let mut scores = vec![0.0; self.slots.len()];
        for (slot, score) in terms.iter().chain(&pairs).flatten() {
            scores[*slot as usize] += score;
        }
        if query.clauses.len() > 1 {
            let parts = query.clauses.iter().map(|clause| search.clause(clause, &terms, &pairs)).collect();
            self.add_best_part(parts, &mut scores);
        }
        self.add_name_coverage(&search.coverage, &mut scores);
        self.add_siblings(&mut scores);
        self.best(&scores, limit)
    }

    /// Returns `true` if most words of a query occur in no tool and nothing shows that it is English: what it finds may
    /// be found by accident.
    pub fn is_mostly_unknown(&self, query: &str) -> bool {
        ParsedQuery::new(query, self).is_mostly_unknown()
    }

    /// Adds the score of the clause that a tool fits best. Clauses with lower scores are raised, so that the clause with
    /// the rarest words does not dominate.
    fn add_best_part(&self, parts: Vec<SlotScores>, scores: &mut [f32]) {
        let best_of = |part: &SlotScores| part.iter().map(|(_, score)| *score).fold(0.0, f32::max);
        let highest = parts.iter().map(best_of).fold(0.0, f32::max);
        let mut best = vec![0.0_f32; scores.len()];
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let raised = (highest / best_of(part)).powf(self.ranking.evenness);
            for (slot, score) in part {
                let best = &mut best[*slot as usize];
                *best = best.max(score * raised);
            }
        }
        for (score, best) in scores.iter_mut().zip(best) {
            *score += self.ranking.clause * best;
        }
    }

    /// Raises the tools whose names occur in the query.
    fn add_name_coverage(&self, cover: &[f32], scores: &mut [f32]) {
        for ((score, cover), slot) in scores.iter_mut().zip(cover).zip(&self.slots) {
            if let (Some(slot), true) = (slot, *cover > 0.0) {
                let length = f32::from(slot.lengths[ToolField::Name as usize]);
                *score *= 1.0 + self.ranking.name_coverage * (cover / length).min(1.0);
            }
        }
    }

    /// Raises the tools whose server has other matching tools.
    fn add_siblings(&self, scores: &mut [f32]) {
        if self.sizes.iter().filter(|size| **size > 0).count() < 2 {
            return;
        }
        let mut sums = vec![0.0; self.sizes.len()];
        for (slot, score) in self.slots.iter().zip(&*scores) {
            if let Some(slot) = slot {
                sums[slot.server] += score;
            }
        }
        for (slot, score) in self.slots.iter().zip(scores) {
            if let (Some(slot), true) = (slot, *score > 0.0) {
                let tools = self.sizes[slot.server] as f32 + self.ranking.absent_siblings;
                *score += self.ranking.siblings * sums[slot.server] / tools;
            }
        }
    }

    fn best(&self, scores: &[f32], limit: usize) -> Vec<SearchHit> {
        let slots = self.slots.iter().zip(scores);
        let hits = slots.filter_map(|(slot, score)| slot.as_ref().map(|slot| (&slot.key, *score)));
        let mut hits: Vec<_> = hits.filter(|(_, score)| *score > 0.0).collect();
        let order = |one: &(&Arc<str>, f32), other: &(&Arc<str>, f32)| {
            other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0))
        };
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits.into_iter().map(|(key, score)| SearchHit { key: Arc::clone(key), score }).collect()
    }

    /// The inverse document frequency of a term that occurs in `matching` tools.
    fn rarity(&self, matching: usize) -> f32 {
        let (tools, matching) = (self.tools as f32, matching as f32);
        (1.0 + (tools - matching + 0.5) / (matching + 0.5)).ln()
    }
}

/// A search in progress.
struct IndexSearch<'i> {
    index: &'i ToolIndex,
    /// A score for each slot; all are 0 between two steps.
    scratch: Vec<f32>,
    /// Number of words of a tool's name that occur in the query, by slot.
    coverage: Vec<f32>,
    /// The same for the current word only.
    term_coverage: Vec<f32>,
}

impl<'i> IndexSearch<'i> {
    fn new(index: &'i ToolIndex) -> Self {
        let zeros = || vec![0.0; index.slots.len()];
        Self { index, scratch: zeros(), coverage: zeros(), term_coverage: zeros() }
    }

    /// The scores of a word. Of several variants in a tool, only the one with the highest score counts.
    fn term(&mut self, term: &QueryTerm<'_>) -> SlotScores {
        let mut slots = Vec::new();
        for variant in &term.variants {
            let postings = &variant.postings;
            let rarity = self.index.rarity(variant.matching);
            self.variant(postings, variant.weight, rarity * term.weight, &mut slots);
        }
        for slot in &slots {
            let slot = *slot as usize;
            self.coverage[slot] += std::mem::take(&mut self.term_coverage[slot]);
        }
        self.take_scores(slots)
    }

    fn variant(&mut self, postings: &[TermPosting], weight: f32, rarity: f32, slots: &mut Vec<u32>) {
        for posting in postings {
            let slot = posting.slot as usize;
            let score = weight * rarity * self.strength(slot, &posting.counts);
            if self.scratch[slot] == 0.0 && score > 0.0 {
                slots.push(posting.slot);
            }
            self.scratch[slot] = self.scratch[slot].max(score);
            // A tool without a score gets no coverage: it would not be reset, and would count for the next word.
            if posting.counts[ToolField::Name as usize] > 0 && self.scratch[slot] > 0.0 {
                self.term_coverage[slot] = self.term_coverage[slot].max(weight);
            }
        }
    }

    /// The saturated weight of these occurrences in a tool.
    fn strength(&self, slot: usize, counts: &FieldCounts) -> f32 {
        let worth = &self.index.word_weights[slot];
        let count: f32 = counts.iter().zip(worth).map(|(count, worth)| f32::from(*count) * worth).sum();
        let k1 = self.index.ranking.k1;
        if count > 0.0 { count * (k1 + 1.0) / (count + k1) } else { 0.0 }
    }

    /// The scores of two words that are adjacent in the query, for the tools in which they are adjacent too.
    fn pair(&self, query: &ParsedQuery<'_>, pair: &QueryPair) -> SlotScores {
        let [one, other] = pair.terms.map(|term| query.terms[term].stem.as_str());
        let matching = self.index.adjacent(one, other);
        let weight = self.index.ranking.pair * self.index.rarity(matching.len());
        let strength = |posting: &TermPosting| self.strength(posting.slot as usize, &posting.counts);
        matching.iter().map(|posting| (posting.slot, weight * strength(posting))).collect()
    }

    /// The sum of the scores of the words and pairs of one clause.
    fn clause(&mut self, clause: &QueryClause, terms: &[SlotScores], pairs: &[SlotScores]) -> SlotScores {
        let mut slots = Vec::new();
        let terms = clause.terms.iter().flat_map(|term| &terms[*term]);
        let pairs = clause.pairs.iter().flat_map(|pair| &pairs[*pair]);
        for (slot, score) in terms.chain(pairs).filter(|(_, score)| *score > 0.0) {
            if self.scratch[*slot as usize] == 0.0 {
                slots.push(*slot);
            }
            self.scratch[*slot as usize] += score;
        }
        self.take_scores(slots)
    }

    /// Takes the scores of these slots and resets them to 0.
    fn take_scores(&mut self, slots: Vec<u32>) -> SlotScores {
        let take = |slot| (slot, std::mem::take(&mut self.scratch[slot as usize]));
        slots.into_iter().map(take).collect()
    }
}
