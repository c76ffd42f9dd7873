//! Steps and weights of the ranking as a program chooses them on some sets.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use toolyard_rank::{RankingWeights, SearchLexicon, ToolField};

use super::ablation::{self, IndexedSet};
use super::figures::{self, SetFigures};
use super::rankers;
use super::sets::RetrievalSet;
use super::variants;

/// Accesses a weight of a ranking.
type WeightAccess = fn(&mut RankingWeights) -> &mut f32;

/// A weight, and the values among which it is chosen.
pub(super) struct WeightChoice {
    pub(super) name: &'static str,
    pub(super) weight: WeightAccess,
    /// The value while other weights are chosen.
    middle: f32,
    /// The other values, none if the weight is not chosen.
    others: &'static [f32],
    /// Description of what the weight adds to the ranking, and the value that leaves it out.
    pub(super) step: Option<(&'static str, f32)>,
}

/// Minimum gain, in points, for which the middle value is changed.
const MIN_GAIN: f64 = 0.15;

/// A weight that is no step.
const fn constant(
    name: &'static str,
    weight: WeightAccess,
    middle: f32,
    others: &'static [f32],
) -> WeightChoice {
    WeightChoice { name, weight, middle, others, step: None }
}

/// A step, and the value that leaves it out.
const fn step(
    name: &'static str,
    about: &'static str,
    weight: WeightAccess,
    without: f32,
    middle: f32,
    others: &'static [f32],
) -> WeightChoice {
    WeightChoice { name, weight, middle, others, step: Some((about, without)) }
}

/// All weights. Each is chosen with the middle values of the others: few figures decide, and folds hardly differ.
pub(super) const CHOICES: [WeightChoice; 21] = [
    step(
        "name",
        "higher weight of names",
        |it| &mut it.field(ToolField::Name).weight,
        1.0,
        2.0,
        &[1.0, 3.0, 5.0],
    ),
    step(
        "parameter",
        "names of parameters",
        |it| &mut it.field(ToolField::Parameter).weight,
        0.0,
        1.0,
        &[0.0, 0.5, 2.0],
    ),
    step(
        "parameter-text",
        "descriptions and values of parameters",
        |it| &mut it.field(ToolField::ParameterText).weight,
        0.0,
        1.0,
        &[0.0, 0.5, 2.0],
    ),
    step(
        "server",
        "names of servers",
        |it| &mut it.field(ToolField::Server).weight,
        0.0,
        1.0,
        &[0.0, 0.5, 2.0],
    ),
    constant("name-length", |it| &mut it.field(ToolField::Name).length_penalty, 0.5, &[0.25, 0.75]),
    constant(
        "description-length",
        |it| &mut it.field(ToolField::Description).length_penalty,
        0.5,
        &[0.25, 0.75],
    ),
    constant(
        "parameter-text-length",
        |it| &mut it.field(ToolField::ParameterText).length_penalty,
        0.5,
        &[0.25, 0.75],
    ),
    constant("k1", |it| &mut it.k1, 1.5, &[0.75, 3.0]),
    step("synonym", "synonyms", |it| &mut it.synonym, 0.0, 0.3, &[0.0, 0.15, 0.5]),
    step("abbreviation", "abbreviations", |it| &mut it.abbreviation, 0.0, 0.6, &[0.0, 0.3, 1.0]),
    step("filler", "lower weight of filler words", |it| &mut it.filler, 1.0, 0.5, &[1.0, 0.25, 0.0]),
    step("spelling", "corrected words", |it| &mut it.spelling, 0.0, 1.0, &[]),
    step("compound", "joined and split words", |it| &mut it.compound, 0.0, 0.5, &[0.0, 1.0]),
    step("value-in-name", "values that are no names", |it| &mut it.value_in_name, 1.0, 0.0, &[]),
    step("k3", "saturation of repeated words", |it| &mut it.k3, 1000.0, 1.0, &[1000.0, 4.0, 0.0]),
    step("bigram", "bigrams", |it| &mut it.bigram, 0.0, 0.3, &[0.0, 0.15, 0.6]),
    step(
        "name-coverage",
        "names that occur as a whole",
        |it| &mut it.name_coverage,
        0.0,
        0.3,
        &[0.0, 0.15, 0.6],
    ),
    step("best-clause", "clauses", |it| &mut it.best_clause, 0.0, 1.0, &[0.0, 0.5, 2.0]),
    step(
        "clause-normalization",
        "normalized scores of clauses",
        |it| &mut it.clause_normalization,
        0.0,
        0.5,
        &[0.0, 1.0],
    ),
    step("server-mean", "tools of the same server", |it| &mut it.server_mean, 0.0, 0.5, &[0.0, 0.25, 1.0]),
    constant("server-smoothing", |it| &mut it.server_smoothing, 2.0, &[1.0, 4.0]),
];

/// The ranking of the middle values, without some steps.
fn middle(without: &[&str]) -> RankingWeights {
    let mut ranking = RankingWeights::default();
    for choice in &CHOICES {
        let step = choice.step.filter(|_| without.contains(&choice.name));
        *(choice.weight)(&mut ranking) = step.map_or(choice.middle, |(_, value)| value);
    }
    ranking
}

/// Returns the default ranking with some weights changed (`name=value`).
pub(super) fn changed(settings: &[String]) -> anyhow::Result<RankingWeights> {
    let mut ranking = RankingWeights::default();
    for setting in settings {
        let (name, value) = setting.split_once('=').with_context(|| format!("no value in {setting}"))?;
        let choice = CHOICES.iter().find(|choice| choice.name == name);
        let choice = choice.with_context(|| format!("no weight {name}"))?;
        *(choice.weight)(&mut ranking) = value.parse()?;
    }
    Ok(ranking)
}

/// The weights that are chosen on all sets, and on all but each one.
pub(super) struct ChosenWeights {
    /// The weights that are chosen on all sets.
    pub(super) on_all: RankingWeights,
    /// By set that is left out.
    pub(super) held_out: Vec<HeldOutFigures>,
}

/// The figures on a set that the steps and weights were not chosen on.
pub(super) struct HeldOutFigures {
    /// The figures with the steps and weights that were chosen on the other sets.
    pub(super) chosen: SetFigures,
    /// nDCG with those chosen without the tables that were written by hand.
    pub(super) without_rows: f64,
    /// The chosen weights.
    pub(super) weights: RankingWeights,
}

/// Number of queries of a set on which weights are chosen.
const MAX_QUERIES: usize = 100;
/// Variants of the sets on which weights are chosen.
const VARIANTS: [&str; 4] =
    ["as they are", "each tool as one text", "queries within a story", "a wrong letter in a query"];
/// The weights of tables that were written by hand.
pub(super) const ROWS: [&str; 3] = ["synonym", "abbreviation", "filler"];

/// Chooses steps and weights on all sets.
pub(super) fn choose_on_all(sets: &[RetrievalSet], lexicon: &Arc<SearchLexicon>) -> RankingWeights {
    RankingMemo::new(&varied(sets.iter()), lexicon).choose(None, &[])
}

/// The variants of all sets on which weights are chosen.
fn varied<'s>(sets: impl Iterator<Item = &'s RetrievalSet> + Clone) -> Vec<Vec<RetrievalSet>> {
    let variants = variants::VARIANTS.iter().filter(|variant| VARIANTS.contains(&variant.name));
    variants.map(|variant| sets.clone().map(|set| variant.apply(set, MAX_QUERIES)).collect()).collect()
}

/// Chooses steps and weights on all sets, and on all but each one, and measures these on that one.
pub(super) fn leave_one_out(sets: &[IndexedSet<'_>], lexicon: &Arc<SearchLexicon>) -> ChosenWeights {
    let varied = varied(sets.iter().map(|(set, _)| *set));
    let mut memo = RankingMemo::new(&varied, lexicon);
    let held = sets.iter().enumerate().map(|(at, set)| {
        let weights = memo.choose(Some(at), &[]);
        let without_rows = memo.choose(Some(at), &ROWS);
        let figures = |ranking| ablation::evaluate(std::slice::from_ref(set), ranking).swap_remove(0);
        HeldOutFigures {
            chosen: figures(&weights),
            without_rows: figures(&without_rows).all.ndcg_at_10,
            weights,
        }
    });
    let held_out = held.collect();
    ChosenWeights { held_out, on_all: memo.choose(None, &[]) }
}

/// Figures of rankings on the variants of all sets, each computed once.
struct RankingMemo<'s> {
    varied: Vec<Vec<IndexedSet<'s>>>,
    known: HashMap<String, Vec<f64>>,
}

impl<'s> RankingMemo<'s> {
    fn new(varied: &'s [Vec<RetrievalSet>], lexicon: &Arc<SearchLexicon>) -> Self {
        let index = |set: &'s RetrievalSet| (set, rankers::index(set, lexicon));
        let varied = varied.iter().map(|sets| sets.iter().map(index).collect()).collect();
        Self { varied, known: HashMap::new() }
    }

    /// The nDCG on each set, the mean over the variants.
    fn evaluate(&self, ranking: &RankingWeights) -> Vec<f64> {
        let figures: Vec<_> = std::thread::scope(|scope| {
            let evaluated = self.varied.iter().map(|sets| scope.spawn(|| ablation::evaluate(sets, ranking)));
            let evaluated: Vec<_> = evaluated.collect();
            let joined = evaluated.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.map(|figures| figures.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let of_set = |at: usize| figures::mean(figures.iter().map(|sets| sets[at].all.ndcg_at_10));
        (0..figures[0].len()).map(of_set).collect()
    }

    fn mean_without(&mut self, ranking: &RankingWeights, left_out: Option<usize>) -> f64 {
        let key = format!("{ranking:?}");
        let known = self.known.get(&key).cloned();
        let mut all = known.unwrap_or_else(|| self.evaluate(ranking));
        self.known.entry(key).or_insert_with(|| all.clone());
        if let Some(at) = left_out {
            all.remove(at);
        }
        figures::mean(all.into_iter())
    }

    /// Chooses each weight on all sets but one, with the middle values of the other weights. Some steps are left out.
    fn choose(&mut self, left_out: Option<usize>, without: &[&str]) -> RankingWeights {
        let middle = middle(without);
        let mut chosen = middle.clone();
        let mean = self.mean_without(&middle, left_out);
        for choice in CHOICES.iter().filter(|choice| !without.contains(&choice.name)) {
            let mut best = mean + MIN_GAIN;
            for value in choice.others {
                let mut other = middle.clone();
                *(choice.weight)(&mut other) = *value;
                let reached = self.mean_without(&other, left_out);
                if reached > best {
                    best = reached;
                    *(choice.weight)(&mut chosen) = *value;
                }
            }
        }
        chosen
    }
}
