//! The value of each step of our ranker, and its constants as they would be chosen on other data.

use toolyard_rank::{RankingWeights, ToolField, ToolIndex};

use super::figures::{self, SetFigures};
use super::rankers;
use super::sets::RetrievalSet;

/// A set with its index.
pub(super) type IndexedSet<'s> = (&'s RetrievalSet, ToolIndex);

/// A change of a ranking.
type RankingChange = fn(&mut RankingWeights);

/// Accesses a constant of a ranking.
type RankingConstant = fn(&mut RankingWeights) -> &mut f32;

/// Each step, left out.
const STEPS: [(&str, RankingChange); 13] = [
    ("repeated words count once", |ranking| ranking.repetition = 1.0),
    ("synonyms", |ranking| ranking.synonym = 0.0),
    ("abbreviations", |ranking| ranking.abbreviation = 0.0),
    ("lower weight of filler words", |ranking| ranking.filler = 1.0),
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

/// The constants that are chosen.
const CONSTANTS: [RankingConstant; 14] = [
    |ranking| &mut ranking.field(ToolField::Name).weight,
    |ranking| &mut ranking.field(ToolField::Parameter).weight,
    |ranking| &mut ranking.field(ToolField::ParameterText).weight,
    |ranking| &mut ranking.field(ToolField::Server).weight,
    |ranking| &mut ranking.k1,
    |ranking| &mut ranking.synonym,
    |ranking| &mut ranking.abbreviation,
    |ranking| &mut ranking.filler,
    |ranking| &mut ranking.pair,
    |ranking| &mut ranking.name_coverage,
    |ranking| &mut ranking.clause,
    |ranking| &mut ranking.evenness,
    |ranking| &mut ranking.siblings,
    |ranking| &mut ranking.absent_siblings,
];

/// Candidate values of a constant, as factors of its current value.
const FACTORS: [f32; 3] = [1.0, 0.5, 2.0];

/// The figures of the ranking on each set without a step.
pub(super) fn without_steps(sets: &[IndexedSet<'_>]) -> Vec<(&'static str, Vec<SetFigures>)> {
    let without = |(name, turn): &(&'static str, RankingChange)| {
        let mut ranking = RankingWeights::default();
        turn(&mut ranking);
        (*name, evaluate(sets, &ranking))
    };
    STEPS.iter().map(without).collect()
}

fn evaluate(sets: &[IndexedSet<'_>], ranking: &RankingWeights) -> Vec<SetFigures> {
    let one = |(set, index): &IndexedSet<'_>| rankers::ours(set, &index.with_ranking(ranking.clone()));
    sets.iter().map(one).collect()
}

/// The figures on each set, with one constant multiplied by each of the factors.
type VariedFigures = Vec<Vec<SetFigures>>;

/// The figures on data that the constants were not chosen on.
pub(super) struct HeldOutFigures {
    /// Name of the data: a set, or half of the queries of all sets.
    pub(super) name: String,
    /// nDCG with the current constants, and with those chosen on the rest.
    pub(super) ours: f64,
    pub(super) chosen: f64,
}

/// Chooses constants on all sets but one, and on half of the queries, and measures them on the rest.
pub(super) fn held_out(sets: &[IndexedSet<'_>]) -> Vec<HeldOutFigures> {
    let ours = evaluate(sets, &RankingWeights::default());
    let varied: Vec<VariedFigures> = CONSTANTS
        .iter()
        .map(|constant| {
            FACTORS.iter().map(|factor| evaluate(sets, &scaled_ranking(&[(*constant, *factor)]))).collect()
        })
        .collect();
    let mut figures = Vec::new();
    for (at, (set, _)) in sets.iter().enumerate() {
        let rest = |all: &[SetFigures]| mean_without(all, at);
        let chosen = evaluate(&sets[at..=at], &choose_constants(&varied, rest));
        let name = set.name.clone();
        figures.push(HeldOutFigures {
            name,
            ours: ours[at].all.ndcg_at_10,
            chosen: chosen[0].all.ndcg_at_10,
        });
    }
    for half in [0, 1] {
        let of = |all: &[SetFigures], half: usize| {
            figures::mean(all.iter().map(|one| one.halves[half].ndcg_at_10))
        };
        let chosen = evaluate(sets, &choose_constants(&varied, |all| of(all, 1 - half)));
        let name = ["every second query, from the first", "every second query, from the second"][half];
        figures.push(HeldOutFigures {
            name: name.to_owned(),
            ours: of(&ours, half),
            chosen: of(&chosen, half),
        });
    }
    figures
}

fn mean_without(all: &[SetFigures], left_out: usize) -> f64 {
    let rest: Vec<f64> =
        (0..all.len()).filter(|at| *at != left_out).map(|at| all[at].all.ndcg_at_10).collect();
    figures::mean(rest.into_iter())
}

/// The ranking with the best value of each constant by this measure, with all others unchanged.
fn choose_constants(varied: &[VariedFigures], good: impl Fn(&[SetFigures]) -> f64) -> RankingWeights {
    let mut chosen = Vec::new();
    for (constant, by_factor) in CONSTANTS.iter().zip(varied) {
        let by_factor = FACTORS.iter().zip(by_factor);
        let best = by_factor.max_by(|(_, one), (_, other)| good(one).total_cmp(&good(other)));
        chosen.extend(best.map(|(factor, _)| (*constant, *factor)));
    }
    scaled_ranking(&chosen)
}

/// The ranking with some constants multiplied.
fn scaled_ranking(by: &[(RankingConstant, f32)]) -> RankingWeights {
    let mut ranking = RankingWeights::default();
    for (constant, factor) in by {
        *constant(&mut ranking) *= factor;
    }
    ranking
}
