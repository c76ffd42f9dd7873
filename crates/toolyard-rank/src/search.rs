//! The ranking of tools for a query.

use std::sync::Arc;

use crate::index::{Index, Posting};
use crate::pairs;
use crate::query::{Clause, Query, SideBySide, Term};
use crate::ranking::Field;
use crate::shelf::Counts;

/// A tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// What the tool is called here.
    pub key: Arc<str>,
    /// How well it fits, above 0. Scores compare within one answer only.
    pub score: f32,
}

/// What words count in the tools that have them: slots, each once, and scores.
type Found = Vec<(u32, f32)>;

impl Index {
    /// The tools that fit a query best, `limit` at most, the best first; where two fit alike, by key. A query is words or
    /// sentences in any form. Of a very long one the first 4,096 bytes are read, and 64 different words are looked for.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let query = Query::new(query, &self.lexicon, &self.ranking);
        let mut search = Search::new(self);
        let terms: Vec<Found> = query.terms.iter().map(|term| search.term(term)).collect();
        let pairs: Vec<Found> = query.pairs.iter().map(|pair| search.pair(&query, pair)).collect();
        let mut scores = vec![0.0; self.slots.len()];
        for (slot, score) in terms.iter().chain(&pairs).flatten() {
            scores[*slot as usize] += score;
        }
        if query.clauses.len() > 1 {
            let parts = query.clauses.iter().map(|clause| search.clause(clause, &terms, &pairs)).collect();
            self.add_best_part(parts, &mut scores);
        }
        self.add_cover(&search.cover, &mut scores);
        self.add_siblings(&mut scores);
        self.best(&scores, limit)
    }

    /// Adds what a tool counts in that part of the query which it fits best. A part whose best tool counts less than that of
    /// the whole is raised, so that the part with the rarest words is not all that is answered.
    fn add_best_part(&self, parts: Vec<Found>, scores: &mut [f32]) {
        let most = scores.iter().copied().fold(0.0, f32::max);
        let mut best = vec![0.0_f32; scores.len()];
        for part in parts {
            let most_of_part = part.iter().map(|(_, score)| *score).fold(0.0, f32::max);
            let raised = if most_of_part > 0.0 { most / most_of_part / 2.0 } else { 1.0 };
            let evenness = self.ranking.evenness;
            for (slot, score) in part {
                let slot = slot as usize;
                best[slot] = best[slot].max(score * (1.0 - evenness + evenness * raised));
            }
        }
        for (score, best) in scores.iter_mut().zip(best) {
            *score += self.ranking.clause * best;
        }
    }

    /// Adds to tools of whose name much is said in the query.
    fn add_cover(&self, cover: &[f32], scores: &mut [f32]) {
        for ((score, cover), slot) in scores.iter_mut().zip(cover).zip(&self.slots) {
            if let (Some(slot), true) = (slot, *cover > 0.0) {
                let length = f32::from(slot.lengths[Field::Name as usize]);
                *score *= 1.0 + self.ranking.cover * (cover / length).min(1.0);
            }
        }
    }

    /// Adds to tools whose server has others that fit.
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

    fn best(&self, scores: &[f32], limit: usize) -> Vec<Hit> {
        let slots = self.slots.iter().zip(scores);
        let found = slots.filter_map(|(slot, score)| slot.as_ref().map(|slot| (&slot.key, *score)));
        let mut found: Vec<_> = found.filter(|(_, score)| *score > 0.0).collect();
        let order = |one: &(&Arc<str>, f32), other: &(&Arc<str>, f32)| {
            other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0))
        };
        if limit < found.len() {
            found.select_nth_unstable_by(limit, order);
            found.truncate(limit);
        }
        found.sort_unstable_by(order);
        found.into_iter().map(|(key, score)| Hit { key: Arc::clone(key), score }).collect()
    }

    /// How much a term says that so many tools have.
    fn rarity(&self, having: usize) -> f32 {
        let (tools, having) = (self.tools as f32, having as f32);
        (1.0 + (tools - having + 0.5) / (having + 0.5)).ln()
    }
}

/// A search, while it runs.
struct Search<'i> {
    index: &'i Index,
    /// A score for each slot; all of them are 0 between two steps.
    scratch: Vec<f32>,
    /// How many words of a tool's name were said, by slot.
    cover: Vec<f32>,
    /// The same, of the word that is looked for.
    cover_of_term: Vec<f32>,
}

impl<'i> Search<'i> {
    fn new(index: &'i Index) -> Self {
        let zeros = || vec![0.0; index.slots.len()];
        Self { index, scratch: zeros(), cover: zeros(), cover_of_term: zeros() }
    }

    /// What a word counts. Of what stands for it in a tool, only what counts most does.
    fn term(&mut self, term: &Term) -> Found {
        let mut found = Vec::new();
        for (variant, weight) in &term.variants {
            if let Some(postings) = self.index.terms.get(variant.as_str()) {
                let rarity = self.index.rarity(postings.len());
                self.variant(postings, *weight, rarity * term.weight, &mut found);
            }
        }
        for slot in &found {
            let slot = *slot as usize;
            self.cover[slot] += std::mem::take(&mut self.cover_of_term[slot]);
        }
        self.taken(found)
    }

    fn variant(&mut self, postings: &[Posting], weight: f32, rarity: f32, found: &mut Vec<u32>) {
        for posting in postings {
            let slot = posting.slot as usize;
            let score = weight * rarity * self.strength(slot, &posting.counts);
            if self.scratch[slot] == 0.0 && score > 0.0 {
                found.push(posting.slot);
            }
            self.scratch[slot] = self.scratch[slot].max(score);
            // A tool that nothing is found of has no cover either: it would stay, and be taken for that of the next word.
            if posting.counts[Field::Name as usize] > 0 && self.scratch[slot] > 0.0 {
                self.cover_of_term[slot] = self.cover_of_term[slot].max(weight);
            }
        }
    }

    /// How much a tool is about something that is so often in its fields.
    fn strength(&self, slot: usize, counts: &Counts) -> f32 {
        let worth = &self.index.worth[slot];
        let count: f32 = counts.iter().zip(worth).map(|(count, worth)| f32::from(*count) * worth).sum();
        let k1 = self.index.ranking.k1;
        if count > 0.0 { count * (k1 + 1.0) / (count + k1) } else { 0.0 }
    }

    /// What two words count that stand side by side in the query, in the tools where they do so too.
    fn pair(&self, query: &Query, pair: &SideBySide) -> Found {
        let postings = pair.terms.map(|term| self.index.terms.get(query.terms[term].variants[0].0.as_str()));
        let [Some(one), Some(other)] = postings else { return Vec::new() };
        let rarer = if one.len() < other.len() { one } else { other };
        let mut having = Vec::new();
        for posting in rarer.iter() {
            let slot = self.index.slots[posting.slot as usize].as_ref();
            having
                .extend(slot.and_then(|slot| Some((posting.slot, pairs::counts(&slot.pairs, pair.number)?))));
        }
        let weight = self.index.ranking.pair * self.index.rarity(having.len());
        let score = |(slot, counts): &(u32, Counts)| (*slot, weight * self.strength(*slot as usize, counts));
        having.iter().map(score).collect()
    }

    /// What the words and pairs of one part of a query count together.
    fn clause(&mut self, clause: &Clause, terms: &[Found], pairs: &[Found]) -> Found {
        let mut found = Vec::new();
        let terms = clause.terms.iter().flat_map(|term| &terms[*term]);
        let pairs = clause.pairs.iter().flat_map(|pair| &pairs[*pair]);
        for (slot, score) in terms.chain(pairs).filter(|(_, score)| *score > 0.0) {
            if self.scratch[*slot as usize] == 0.0 {
                found.push(*slot);
            }
            self.scratch[*slot as usize] += score;
        }
        self.taken(found)
    }

    /// The scores of these slots, which are 0 then.
    fn taken(&mut self, slots: Vec<u32>) -> Found {
        let take = |slot| (slot, std::mem::take(&mut self.scratch[slot as usize]));
        slots.into_iter().map(take).collect()
    }
}
