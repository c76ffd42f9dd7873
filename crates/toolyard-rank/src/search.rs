//! The search for the tools that match a query.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::index::{TermPosting, ToolIndex};
use crate::query::{ParsedQuery, QueryBigram, QueryClause, QueryTerm, TermVariant};
use crate::ranking::ToolField;
use crate::server_index::FieldCounts;

/// A matching tool.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The key of the tool.
    pub key: Arc<str>,
    /// The score, above 0. Scores are comparable within one result only.
    pub score: f32,
    /// `true` if the query has a word of the tool itself, and not only of the name of its server.
    pub matches_tool: bool,
}

/// Slots, each once, with their scores.
type SlotScores = Vec<(u32, f32)>;

impl ToolIndex {
    /// Returns the best tools for a query, `limit` at most, the best first and by key if scores are equal. A query is
    /// words or sentences in any form. Its first 4,096 bytes and 64 different words are used.
    pub fn search(&self, query: &str, limit: usize) -> Vec<SearchHit> {
        self.search_among(query, limit, |_| true)
    }

    /// Like [`search`](Self::search), among the tools with certain keys only.
    pub fn search_among(
        &self,
        query: &str,
        limit: usize,
        is_included: impl Fn(&str) -> bool,
    ) -> Vec<SearchHit> {
        let query = ParsedQuery::new(query, self);
        if !query.is_understood() {
            return Vec::new();
        }
        let mut search = IndexSearch::new(self);
        let terms: Vec<SlotScores> = query.terms.iter().map(|term| search.term(term)).collect();
        let bigrams: Vec<SlotScores> =
            query.bigrams.iter().map(|bigram| search.bigram(&query, bigram)).collect();
        let mut scores = vec![0.0; self.slots.len()];
        for (slot, score) in terms.iter().chain(&bigrams).flatten() {
            scores[*slot as usize] += score;
        }
        if query.clauses.len() > 1 {
            let parts = query.clauses.iter().map(|clause| search.clause(clause, &terms, &bigrams)).collect();
            self.add_best_part(parts, &mut scores);
        }
        self.add_name_coverage(&search.coverage, &mut scores);
        self.add_server_scores(&mut scores);
        self.top_hits(&scores, &search.matches_tool, limit, is_included)
    }

    /// Returns `true` if a query may be in another language than English: most of its words occur in no tool or are
    /// function words of other languages. What it finds may be found by accident.
    pub fn may_be_foreign(&self, query: &str) -> bool {
        ParsedQuery::new(query, self).may_be_foreign()
    }

    /// Adds the score of the clause that a tool fits best. Clauses with lower scores are raised, so that the clause with
    /// the rarest words does not dominate.
    fn add_best_part(&self, parts: Vec<SlotScores>, scores: &mut [f32]) {
        let best_of = |part: &SlotScores| part.iter().map(|(_, score)| *score).fold(0.0, f32::max);
        let highest = parts.iter().map(best_of).fold(0.0, f32::max);
        let mut best = vec![0.0_f32; scores.len()];
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let raised = (highest / best_of(part)).powf(self.ranking.clause_normalization);
            for (slot, score) in part {
                let best = &mut best[*slot as usize];
                *best = best.max(score * raised);
            }
        }
        for (score, best) in scores.iter_mut().zip(best) {
            *score += self.ranking.best_clause * best;
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
    fn add_server_scores(&self, scores: &mut [f32]) {
        if self.server_sizes.iter().filter(|size| **size > 0).count() < 2 {
            return;
        }
        let mut sums = vec![0.0; self.server_sizes.len()];
        for (slot, score) in self.slots.iter().zip(&*scores) {
            if let Some(slot) = slot {
                sums[slot.server] += score;
            }
        }
        for (slot, score) in self.slots.iter().zip(scores) {
            if let (Some(slot), true) = (slot, *score > 0.0) {
                let tools = self.server_sizes[slot.server] as f32 + self.ranking.server_smoothing;
                *score += self.ranking.server_mean * sums[slot.server] / tools;
            }
        }
    }

    /// Takes the best tools off a heap, which orders no more tools than the result needs.
    fn top_hits(
        &self,
        scores: &[f32],
        matches_tool: &[bool],
        limit: usize,
        is_included: impl Fn(&str) -> bool,
    ) -> Vec<SearchHit> {
        let scored = self.slots.iter().zip(scores).enumerate().filter(|(_, (_, score))| **score > 0.0);
        let ranked = scored.filter_map(|(slot, (tool, score))| {
            tool.as_ref().map(|tool| RankedSlot { slot, key: &tool.key, score: *score })
        });
        let mut heap: BinaryHeap<RankedSlot<'_>> = ranked.collect();
        let best = std::iter::from_fn(|| heap.pop()).filter(|hit| is_included(hit.key));
        let hit = |RankedSlot { slot, key, score }: RankedSlot<'_>| SearchHit {
            key: Arc::clone(key),
            score,
            matches_tool: matches_tool[slot],
        };
        best.take(limit).map(hit).collect()
    }

    /// The inverse document frequency of a term with this document frequency.
    fn idf(&self, document_frequency: usize) -> f32 {
        let (tools, frequency) = (self.tools as f32, document_frequency as f32);
        (1.0 + (tools - frequency + 0.5) / (frequency + 0.5)).ln()
    }
}

/// Returns `true` if a word occurs in another field than the name of the server.
fn is_of_tool(counts: &FieldCounts) -> bool {
    counts.iter().enumerate().any(|(field, count)| *count > 0 && field != ToolField::Server as usize)
}

/// Returns `true` for fields of names, which have no values.
fn is_name(field: usize) -> bool {
    [ToolField::Name, ToolField::Parameter, ToolField::Server].iter().any(|name| *name as usize == field)
}

/// A hit, in the order of results.
struct RankedSlot<'i> {
    slot: usize,
    key: &'i Arc<str>,
    score: f32,
}

impl Ord for RankedSlot<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.key.cmp(self.key))
    }
}

impl PartialOrd for RankedSlot<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedSlot<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedSlot<'_> {}

/// A search in progress.
struct IndexSearch<'i> {
    index: &'i ToolIndex,
    /// A score for each slot; all are 0 between two steps.
    scratch: Vec<f32>,
    /// Number of words of a tool's name that occur in the query, by slot.
    coverage: Vec<f32>,
    /// The same for the current word only.
    term_coverage: Vec<f32>,
    /// `true` for tools with a word of the query in a field of their own, by slot.
    matches_tool: Vec<bool>,
}

impl<'i> IndexSearch<'i> {
    fn new(index: &'i ToolIndex) -> Self {
        let zeros = || vec![0.0; index.slots.len()];
        Self {
            index,
            scratch: zeros(),
            coverage: zeros(),
            term_coverage: zeros(),
            matches_tool: vec![false; index.slots.len()],
        }
    }

    /// The scores of a word. Of several variants in a tool, only the one with the highest score counts.
    fn term(&mut self, term: &QueryTerm<'_>) -> SlotScores {
        let mut slots = Vec::new();
        for variant in &term.variants {
            let idf = self.index.idf(variant.document_frequency) * term.weight;
            self.variant(variant, idf, self.name_weight(term), &mut slots);
        }
        for slot in &slots {
            let slot = *slot as usize;
            self.coverage[slot] += std::mem::take(&mut self.term_coverage[slot]);
        }
        self.take_scores(slots)
    }

    /// The weight of a term in names, relative to other texts.
    fn name_weight(&self, term: &QueryTerm<'_>) -> f32 {
        if term.is_value { self.index.ranking.value_in_name } else { 1.0 }
    }

    fn variant(&mut self, variant: &TermVariant<'_>, idf: f32, in_name: f32, slots: &mut Vec<u32>) {
        let weight = variant.weight;
        for posting in variant.postings.iter() {
            let slot = posting.slot as usize;
            let score = weight * idf * self.saturated_frequency(slot, &posting.counts, in_name);
            if self.scratch[slot] == 0.0 && score > 0.0 {
                slots.push(posting.slot);
            }
            self.scratch[slot] = self.scratch[slot].max(score);
            self.matches_tool[slot] |= score > 0.0 && is_of_tool(&posting.counts);
            // A tool without a score gets no coverage: it would not be reset, and would count for the next word.
            if posting.counts[ToolField::Name as usize] > 0 && self.scratch[slot] > 0.0 {
                self.term_coverage[slot] = self.term_coverage[slot].max(weight * in_name);
            }
        }
    }

    /// The saturated term frequency of these occurrences in a tool, as in BM25F.
    fn saturated_frequency(&self, slot: usize, counts: &FieldCounts, in_name: f32) -> f32 {
        let weights = counts.iter().zip(&self.index.normalized_weights[slot]).enumerate();
        let weighted = weights.map(|(field, (count, weight))| {
            f32::from(*count) * weight * if is_name(field) { in_name } else { 1.0 }
        });
        let (frequency, k1): (f32, f32) = (weighted.sum(), self.index.ranking.k1);
        if frequency > 0.0 { frequency * (k1 + 1.0) / (frequency + k1) } else { 0.0 }
    }

    /// The scores of two words that are adjacent in the query, for the tools in which they are adjacent too.
    fn bigram(&self, query: &ParsedQuery<'_>, bigram: &QueryBigram) -> SlotScores {
        let terms = bigram.terms.map(|term| &query.terms[term]);
        let [one, other] = terms.map(QueryTerm::spelled);
        let postings = self.index.adjacent(one, other);
        let weight = self.index.ranking.bigram * self.index.idf(postings.len());
        let in_name = terms.map(|term| self.name_weight(term)).into_iter().fold(1.0, f32::min);
        let frequency =
            |posting: &TermPosting| self.saturated_frequency(posting.slot as usize, &posting.counts, in_name);
        postings.iter().map(|posting| (posting.slot, weight * frequency(posting))).collect()
    }

    /// The sum of the scores of the words and bigrams of one clause.
    fn clause(&mut self, clause: &QueryClause, terms: &[SlotScores], bigrams: &[SlotScores]) -> SlotScores {
        let mut slots = Vec::new();
        let terms = clause.terms.iter().flat_map(|term| &terms[*term]);
        let bigrams = clause.bigrams.iter().flat_map(|bigram| &bigrams[*bigram]);
        for (slot, score) in terms.chain(bigrams).filter(|(_, score)| *score > 0.0) {
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
