//! The value of each step of our ranker.

use toolyard_rank::{RankingWeights, ToolIndex};

use super::choice::{CHOICES, ROWS, WeightChoice};
use super::figures::SetFigures;
use super::rankers;
use super::sets::RetrievalSet;

/// A set with its index.
pub(super) type IndexedSet<'s> = (&'s RetrievalSet, ToolIndex);

/// The figures of the ranking on each set without a step, and without all rows written by hand.
pub(super) fn without_steps(sets: &[IndexedSet<'_>]) -> Vec<(&'static str, Vec<SetFigures>)> {
    let without = |left_out: &dyn Fn(&WeightChoice) -> bool| {
        let mut ranking = RankingWeights::default();
        for choice in CHOICES.iter().filter(|choice| left_out(choice)) {
            if let Some((_, value)) = choice.step {
                *(choice.weight)(&mut ranking) = value;
            }
        }
        evaluate(sets, &ranking)
    };
    let rows = without(&|choice| ROWS.contains(&choice.name));
    let steps = CHOICES.iter().filter_map(|choice| Some((choice.name, choice.step?.0)));
    let steps = steps.map(|(name, about)| (about, without(&|choice| choice.name == name)));
    [("all rows written by hand", rows)].into_iter().chain(steps).collect()
}

/// The figures of a ranking on each set.
pub(super) fn evaluate(sets: &[IndexedSet<'_>], ranking: &RankingWeights) -> Vec<SetFigures> {
    let one = |(set, index): &IndexedSet<'_>| rankers::ours(set, &index.with_ranking(ranking.clone()));
    sets.iter().map(one).collect()
}
