//! What each step of our ranker is worth, and whether its constants would be others if they had been chosen on other data.

use toolyard_rank::{Field, Index, Ranking};

use super::figures::{self, Reached};
use super::rankers;
use super::sets::Set;

/// A set with its index.
pub(super) type Indexed<'s> = (&'s Set, Index);

/// A change of a ranking.
type Turn = fn(&mut Ranking);

/// The way to a constant of a ranking.
type Constant = fn(&mut Ranking) -> &mut f32;

/// Each step, left out.
const STEPS: [(&str, Turn); 13] = [
    ("words that are said again count once", |ranking| ranking.repeat = 1.0),
    ("synonyms", |ranking| ranking.synonym = 0.0),
    ("abbreviations", |ranking| ranking.abbreviation = 0.0),
    ("less for faint words", |ranking| ranking.faint = 1.0),
    ("pairs of words", |ranking| ranking.pair = 0.0),
    ("names that are said as a whole", |ranking| ranking.cover = 0.0),
    ("clauses", |ranking| ranking.clause = 0.0),
    ("clauses made to count alike", |ranking| ranking.evenness = 0.0),
    ("tools of the same server", |ranking| ranking.siblings = 0.0),
    ("more for names", |ranking| ranking.field(Field::Name).weight = 1.0),
    ("names of parameters", |ranking| ranking.field(Field::Parameter).weight = 0.0),
    ("descriptions of parameters", |ranking| ranking.field(Field::ParameterText).weight = 0.0),
    ("names of servers", |ranking| ranking.field(Field::Server).weight = 0.0),
];

/// The constants that are chosen, and how to reach each of them.
const CONSTANTS: [Constant; 14] = [
    |ranking| &mut ranking.field(Field::Name).weight,
    |ranking| &mut ranking.field(Field::Parameter).weight,
    |ranking| &mut ranking.field(Field::ParameterText).weight,
    |ranking| &mut ranking.field(Field::Server).weight,
    |ranking| &mut ranking.k1,
    |ranking| &mut ranking.synonym,
    |ranking| &mut ranking.abbreviation,
    |ranking| &mut ranking.faint,
    |ranking| &mut ranking.pair,
    |ranking| &mut ranking.cover,
    |ranking| &mut ranking.clause,
    |ranking| &mut ranking.evenness,
    |ranking| &mut ranking.siblings,
    |ranking| &mut ranking.absent_siblings,
];

/// What a constant may be, as a part of what it is.
const FACTORS: [f32; 3] = [1.0, 0.5, 2.0];

/// What the ranking reaches on each set without a step.
pub(super) fn without_steps(sets: &[Indexed<'_>]) -> Vec<(&'static str, Vec<Reached>)> {
    let without = |(name, turn): &(&'static str, Turn)| {
        let mut ranking = Ranking::default();
        turn(&mut ranking);
        (*name, reached(sets, &ranking))
    };
    STEPS.iter().map(without).collect()
}

fn reached(sets: &[Indexed<'_>], ranking: &Ranking) -> Vec<Reached> {
    let one = |(set, index): &Indexed<'_>| rankers::ours(set, &index.with_ranking(ranking.clone()));
    sets.iter().map(one).collect()
}

/// What is reached on each set, with one constant multiplied by each of the factors.
type Varied = Vec<Vec<Reached>>;

/// What is reached on data that the constants were not chosen on.
pub(super) struct Held {
    /// What was looked at: a set, or half of the queries of all.
    pub(super) name: String,
    /// The nDCG there with the constants as they are, and with those chosen on the rest.
    pub(super) ours: f64,
    pub(super) chosen: f64,
}

/// Chooses constants on all sets but one, and on half of the queries, and looks at what that reaches on the rest.
pub(super) fn held_out(sets: &[Indexed<'_>]) -> Vec<Held> {
    let ours = reached(sets, &Ranking::default());
    let varied: Vec<Varied> = CONSTANTS
        .iter()
        .map(|constant| {
            FACTORS.iter().map(|factor| reached(sets, &scaled(&[(*constant, *factor)]))).collect()
        })
        .collect();
    let mut held = Vec::new();
    for (at, (set, _)) in sets.iter().enumerate() {
        let rest = |all: &[Reached]| mean_without(all, at);
        let chosen = reached(&sets[at..=at], &choose(&varied, rest));
        let name = set.name.clone();
        held.push(Held { name, ours: ours[at].all.ndcg_at_10, chosen: chosen[0].all.ndcg_at_10 });
    }
    for half in [0, 1] {
        let of =
            |all: &[Reached], half: usize| figures::mean(all.iter().map(|one| one.halves[half].ndcg_at_10));
        let chosen = reached(sets, &choose(&varied, |all| of(all, 1 - half)));
        let name = ["every other query, from the first", "every other query, from the second"][half];
        held.push(Held { name: name.to_owned(), ours: of(&ours, half), chosen: of(&chosen, half) });
    }
    held
}

fn mean_without(all: &[Reached], left_out: usize) -> f64 {
    let rest: Vec<f64> =
        (0..all.len()).filter(|at| *at != left_out).map(|at| all[at].all.ndcg_at_10).collect();
    figures::mean(rest.into_iter())
}

/// The ranking whose constants are each the best by this measure, with all others as they are.
fn choose(varied: &[Varied], good: impl Fn(&[Reached]) -> f64) -> Ranking {
    let mut chosen = Vec::new();
    for (constant, by_factor) in CONSTANTS.iter().zip(varied) {
        let by_factor = FACTORS.iter().zip(by_factor);
        let best = by_factor.max_by(|(_, one), (_, other)| good(one).total_cmp(&good(other)));
        chosen.extend(best.map(|(factor, _)| (*constant, *factor)));
    }
    scaled(&chosen)
}

/// The ranking with some constants multiplied.
fn scaled(by: &[(Constant, f32)]) -> Ranking {
    let mut ranking = Ranking::default();
    for (constant, factor) in by {
        *constant(&mut ranking) *= factor;
    }
    ranking
}
