//! Steps and weights of the ranking as a program chooses them on some sets.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use toolyard_rank::{RankingWeights, SearchLexicon, ToolField};

use super::ablation::{self, IndexedSet};
use super::rankers;
use super::sets::RetrievalSet;
use super::variants;

/// Accesses a weight of a ranking.
type WeightAccess = fn(&mut RankingWeights) -> &mut f32;

/// A weight, and the values among which it is chosen.
pub(super) struct WeightChoice {
    pub(super) name: &'static str,
    pub(super) weight: WeightAccess,
    /// The value in the ranking without any step.
    plain: f32,
    values: &'static [f32],
    /// Description of what the weight adds to the ranking, and the value that leaves it out.
    pub(super) step: Option<(&'static str, f32)>,
}

/// Minimum gain, in points, for which a value is changed.
const MIN_GAIN: f64 = 0.1;

/// A weight that is no step.
const fn constant(
    name: &'static str,
    weight: WeightAccess,
    plain: f32,
    values: &'static [f32],
) -> WeightChoice {
    WeightChoice { name, weight, plain, values, step: None }
}

/// A step, and the value that leaves it out.
const fn step(
    name: &'static str,
    about: &'static str,
    weight: WeightAccess,
    without: f32,
    values: &'static [f32],
) -> WeightChoice {
    WeightChoice { name, weight, plain: without, values, step: Some((about, without)) }
}

/// A field, which the ranking without any step has too, with the weight 1.
const fn field(
    name: &'static str,
    about: &'static str,
    weight: WeightAccess,
    values: &'static [f32],
) -> WeightChoice {
    WeightChoice { name, weight, plain: 1.0, values, step: Some((about, 0.0)) }
}

/// All weights that are chosen.
pub(super) const CHOICES: [WeightChoice; 19] = [
    step("name", "higher weight of names", |it| &mut it.field(ToolField::Name).weight, 1.0, &[2.0, 3.0, 5.0]),
    field("parameter", "names of parameters", |it| &mut it.field(ToolField::Parameter).weight, &[0.5, 0.0]),
    field(
        "parameter-text",
        "descriptions and values of parameters",
        |it| &mut it.field(ToolField::ParameterText).weight,
        &[0.5, 0.25, 0.0],
    ),
    field("server", "names of servers", |it| &mut it.field(ToolField::Server).weight, &[2.0, 0.5, 0.0]),
    constant("k1", |it| &mut it.k1, 1.5, &[0.75, 3.0]),
    step("synonym", "synonyms", |it| &mut it.synonym, 0.0, &[0.15, 0.3, 0.5]),
    step("abbreviation", "abbreviations", |it| &mut it.abbreviation, 0.0, &[0.3, 0.6, 1.0]),
    step("filler", "lower weight of filler words", |it| &mut it.filler, 1.0, &[0.5, 0.25, 0.0]),
    step("spelling", "corrected words", |it| &mut it.spelling, 0.0, &[0.3, 0.6, 0.8, 1.0]),
    step("compound", "joined and split words", |it| &mut it.compound, 0.0, &[0.5, 1.0]),
    step("value-in-name", "values that are no names", |it| &mut it.value_in_name, 1.0, &[0.5, 0.0]),
    step("whole-text", "all texts as one", |it| &mut it.whole_text, 0.0, &[0.25, 0.5]),
    step("k3", "saturation of repeated words", |it| &mut it.k3, 1000.0, &[4.0, 1.0, 0.0]),
    step("bigram", "bigrams", |it| &mut it.bigram, 0.0, &[0.15, 0.3, 0.6]),
    step("name-coverage", "names that occur as a whole", |it| &mut it.name_coverage, 0.0, &[0.15, 0.3, 0.6]),
    step("best-clause", "clauses", |it| &mut it.best_clause, 0.0, &[0.5, 1.0, 2.0]),
    step(
        "clause-normalization",
        "normalized scores of clauses",
        |it| &mut it.clause_normalization,
        0.0,
        &[0.5, 1.0],
    ),
    step("server-mean", "tools of the same server", |it| &mut it.server_mean, 0.0, &[0.25, 0.5, 1.0]),
    constant("server-smoothing", |it| &mut it.server_smoothing, 2.0, &[1.0, 4.0]),
];

/// The ranking without any step.
fn plain() -> RankingWeights {
    let mut ranking = RankingWeights::default();
    for choice in &CHOICES {
        *(choice.weight)(&mut ranking) = choice.plain;
    }
    ranking
}

/// Returns the default ranking, or the one without any step after `plain`, with some weights changed (`name=value`).
pub(super) fn changed(settings: &[String]) -> anyhow::Result<RankingWeights> {
    let mut ranking =
        if settings.iter().any(|setting| setting == "plain") { plain() } else { RankingWeights::default() };
    for setting in settings.iter().filter(|setting| *setting != "plain") {
        let (name, value) = setting.split_once('=').with_context(|| format!("no value in {setting}"))?;
        let choice = CHOICES.iter().find(|choice| choice.name == name);
        let choice = choice.with_context(|| format!("no weight {name}"))?;
        *(choice.weight)(&mut ranking) = value.parse()?;
    }
    Ok(ranking)
}

/// The figures on a set that the steps and weights were not chosen on.
pub(super) struct HeldOutFigures {
    /// nDCG with the steps and weights that were chosen on the other sets.
    pub(super) chosen: f64,
    /// The same without the tables that were written by hand.
    pub(super) without_rows: f64,
    /// The chosen weights.
    pub(super) weights: RankingWeights,
}

/// Number of queries of a set on which weights are chosen.
const MAX_QUERIES: usize = 50;
/// Variants of the sets on which weights are chosen.
const VARIANTS: [&str; 4] =
    ["as they are", "each tool as one text", "queries within a story", "a wrong letter in a query"];
/// The weights of tables that were written by hand.
pub(super) const ROWS: [&str; 3] = ["synonym", "abbreviation", "filler"];

/// Chooses steps and weights on all sets but one, and measures them on that one, for each set.
pub(super) fn leave_one_out(sets: &[IndexedSet<'_>], lexicon: &Arc<SearchLexicon>) -> Vec<HeldOutFigures> {
    let variants = variants::VARIANTS.iter().filter(|variant| VARIANTS.contains(&variant.name));
    let varied: Vec<Vec<RetrievalSet>> = variants
        .map(|variant| sets.iter().map(|(set, _)| variant.apply(set, MAX_QUERIES)).collect())
        .collect();
    let varied: Vec<Vec<IndexedSet<'_>>> = varied
        .iter()
        .map(|sets| sets.iter().map(|set| (set, rankers::index(set, lexicon))).collect())
        .collect();
    let evaluate = |ranking: &RankingWeights| -> Vec<f64> {
        let figures: Vec<_> = varied.iter().map(|sets| ablation::evaluate(sets, ranking)).collect();
        let of_set = |at: usize| figures.iter().map(|sets| sets[at].all.ndcg_at_10).sum::<f64>();
        (0..sets.len()).map(|at| of_set(at) / figures.len() as f64).collect()
    };
    let mut memo = RankingMemo { evaluate: &evaluate, known: HashMap::new() };
    let held = sets.iter().enumerate().map(|(at, set)| {
        let weights = memo.choose(at, &[]);
        let without_rows = memo.choose(at, &ROWS);
        let figures = |ranking| ablation::evaluate(std::slice::from_ref(set), ranking)[0].all.ndcg_at_10;
        HeldOutFigures { chosen: figures(&weights), without_rows: figures(&without_rows), weights }
    });
    held.collect()
}

/// Figures of rankings on all sets, each computed once.
struct RankingMemo<'e> {
    evaluate: &'e dyn Fn(&RankingWeights) -> Vec<f64>,
    known: HashMap<String, Vec<f64>>,
}

impl RankingMemo<'_> {
    fn mean_without(&mut self, ranking: &RankingWeights, left_out: usize) -> f64 {
        let evaluate = self.evaluate;
        let all = self.known.entry(format!("{ranking:?}")).or_insert_with(|| evaluate(ranking));
        let rest = all.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, ndcg)| ndcg);
        rest.sum::<f64>() / (all.len() - usize::from(left_out < all.len())) as f64
    }

    /// Chooses one weight after the other on all sets but one, beginning with the ranking without any step.
    fn choose(&mut self, left_out: usize, fixed: &[&str]) -> RankingWeights {
        let mut ranking = plain();
        let mut best = self.mean_without(&ranking, left_out);
        for choice in CHOICES.iter().filter(|choice| !fixed.contains(&choice.name)) {
            for value in choice.values {
                let mut other = ranking.clone();
                *(choice.weight)(&mut other) = *value;
                let reached = self.mean_without(&other, left_out);
                if reached > best + MIN_GAIN {
                    (ranking, best) = (other, reached);
                }
            }
        }
        ranking
    }
}
