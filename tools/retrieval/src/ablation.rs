//! The value of each step of our ranker.

use toolyard_rank::{RankingWeights, ToolField, ToolIndex};

use super::figures::SetFigures;
use super::rankers;
use super::sets::RetrievalSet;

/// A set with its index.
pub(super) type IndexedSet<'s> = (&'s RetrievalSet, ToolIndex);

/// A change of a ranking.
type RankingChange = fn(&mut RankingWeights);

/// Each step, left out.
const STEPS: [(&str, RankingChange); 16] = [
    ("all rows written by hand", without_rows),
    ("synonyms", |ranking| ranking.synonym = 0.0),
    ("abbreviations", |ranking| ranking.abbreviation = 0.0),
    ("lower weight of filler words", |ranking| ranking.filler = 1.0),
    ("corrected words", |ranking| ranking.spelling = 0.0),
    ("joined and split words", |ranking| ranking.compound = 0.0),
    ("saturation of repeated words", |ranking| ranking.repetition = 1000.0),
    ("pairs of words", |ranking| ranking.pair = 0.0),
    ("names that occur as a whole", |ranking| ranking.name_coverage = 0.0),
    ("clauses", |ranking| ranking.clause = 0.0),
    ("equal weight of clauses", |ranking| ranking.evenness = 0.0),
    ("tools of the same server", |ranking| ranking.siblings = 0.0),
    ("higher weight of names", |ranking| ranking.field(ToolField::Name).weight = 1.0),
    ("names of parameters", |ranking| ranking.field(ToolField::Parameter).weight = 0.0),
    ("descriptions of parameters", |ranking| ranking.field(ToolField::ParameterText).weight = 0.0),
    ("names of servers", |ranking| ranking.field(ToolField::Server).weight = 0.0),
];

fn without_rows(ranking: &mut RankingWeights) {
    (ranking.synonym, ranking.abbreviation, ranking.filler) = (0.0, 0.0, 1.0);
}

/// The figures of the ranking on each set without a step.
pub(super) fn without_steps(sets: &[IndexedSet<'_>]) -> Vec<(&'static str, Vec<SetFigures>)> {
    let without = |(name, turn): &(&'static str, RankingChange)| {
        let mut ranking = RankingWeights::default();
        turn(&mut ranking);
        (*name, evaluate(sets, &ranking))
    };
    STEPS.iter().map(without).collect()
}

/// The figures of a ranking on each set.
pub(super) fn evaluate(sets: &[IndexedSet<'_>], ranking: &RankingWeights) -> Vec<SetFigures> {
    let one = |(set, index): &IndexedSet<'_>| rankers::ours(set, &index.with_ranking(ranking.clone()));
    sets.iter().map(one).collect()
}
