//! The goals of retrieval.

use anyhow::ensure;
use toolyard_rank::RankingWeights;

use super::choice::{ChosenWeights, HeldOutFigures};
use super::figures;
use super::rankers::RankerComparison;
use super::timing::{RetrievalTiming, TOOLS};

/// Minimum lead of our mean nDCG over that of tuned BM25, in points, with built-in weights and on sets left out.
const MIN_LEAD: f64 = 5.0;
/// Maximum lag behind it on any set.
const MAX_LAG: f64 = 0.5;
/// Minimum mean nDCG.
const MIN_NDCG: f64 = 69.0;
/// Maximum loss by typing errors in words that the wanted tool has, in points of the mean.
const MAX_TYPO_LOSS: f64 = 2.0;
/// Maximum median time of a query, and maximum time to build the index, over 10,000 tools, in milliseconds.
const QUERY_MILLIS: f64 = 1.0;
const BUILD_MILLIS: f64 = 1000.0;

/// A goal, and the figure that was measured.
pub(super) struct MeasuredGoal {
    pub(super) goal: String,
    pub(super) actual: String,
    pub(super) is_met: bool,
}

impl MeasuredGoal {
    fn at_least(goal: &str, least: f64, actual: f64) -> Self {
        Self {
            goal: format!("{goal}, at least {least}"),
            actual: format!("{actual:.2}"),
            is_met: actual >= least,
        }
    }

    fn at_most(goal: &str, most: f64, actual: f64) -> Self {
        Self {
            goal: format!("{goal}, at most {most}"),
            actual: format!("{actual:.2}"),
            is_met: actual <= most,
        }
    }
}

/// The goals of quality. Those of chosen weights are there if weights were chosen.
pub(super) fn quality(
    all: &[(String, RankerComparison)],
    chosen: Option<&ChosenWeights>,
    typo_losses: &[f64],
) -> Vec<MeasuredGoal> {
    let mut goals = vec![
        MeasuredGoal::at_least("mean nDCG@10", MIN_NDCG, ndcg(all)),
        MeasuredGoal::at_most(
            "mean loss by an error in a word of the wanted tool",
            MAX_TYPO_LOSS,
            figures::mean(typo_losses.iter().copied()),
        ),
    ];
    goals.extend(leads_are_met("built-in weights", &leads(all)));
    if let Some(chosen) = chosen {
        goals.extend(leads_are_met("weights chosen on other sets", &held_out_leads(all, &chosen.held_out)));
        let is_met = chosen.on_all == RankingWeights::default();
        goals.push(MeasuredGoal {
            goal: "built-in weights are those chosen on all sets".to_owned(),
            actual: if is_met { "equal" } else { "different" }.to_owned(),
            is_met,
        });
    }
    goals
}

fn leads_are_met(weights: &str, leads: &[f64]) -> [MeasuredGoal; 2] {
    let lead = figures::mean(leads.iter().copied());
    let least = leads.iter().copied().fold(f64::INFINITY, f64::min);
    [
        MeasuredGoal::at_least(&format!("{weights}: mean lead over tuned BM25"), MIN_LEAD, lead),
        MeasuredGoal::at_least(&format!("{weights}: lead on the worst set"), -MAX_LAG, least),
    ]
}

/// The goals of speed. They are reported only, as a busy machine is slow.
pub(super) fn speed(timing: &RetrievalTiming) -> [MeasuredGoal; 2] {
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    [
        MeasuredGoal::at_most(
            &format!("{TOOLS} tools: milliseconds of a query, median"),
            QUERY_MILLIS,
            millis(timing.median),
        ),
        MeasuredGoal::at_most(
            &format!("{TOOLS} tools: milliseconds to build the index"),
            BUILD_MILLIS,
            millis(timing.build),
        ),
    ]
}

/// The lead of our mean over that of tuned BM25.
pub(super) fn lead(all: &[(String, RankerComparison)]) -> f64 {
    figures::mean(leads(all).into_iter())
}

/// Our mean nDCG.
fn ndcg(all: &[(String, RankerComparison)]) -> f64 {
    figures::mean(all.iter().map(|(_, compared)| compared.ours.all.ndcg_at_10))
}

/// Our lead on each set.
fn leads(all: &[(String, RankerComparison)]) -> Vec<f64> {
    all.iter().map(|(_, it)| it.ours.all.ndcg_at_10 - it.tuned.all.ndcg_at_10).collect()
}

/// The lead on each set of steps and weights that were chosen on the other sets.
fn held_out_leads(all: &[(String, RankerComparison)], held_out: &[HeldOutFigures]) -> Vec<f64> {
    let pairs = all.iter().zip(held_out);
    pairs.map(|((_, it), held)| held.chosen.all.ndcg_at_10 - it.tuned.all.ndcg_at_10).collect()
}

/// Errors if a goal is missed.
pub(super) fn ensure_met(goals: &[MeasuredGoal]) -> anyhow::Result<()> {
    let missed = goals.iter().filter(|goal| !goal.is_met);
    let missed: Vec<String> =
        missed.map(|MeasuredGoal { goal, actual, .. }| format!("{goal}: {actual}")).collect();
    ensure!(missed.is_empty(), "the tool search misses {}", missed.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::SetFigures;

    fn figures(ndcg: f64) -> SetFigures {
        let mut figures = SetFigures::default();
        figures.all.ndcg_at_10 = ndcg;
        figures
    }

    fn comparison(gain: f64) -> (String, RankerComparison) {
        let comparison = RankerComparison {
            rockbot: figures(0.0),
            plain: figures(0.0),
            tuned: figures(70.0),
            ours: figures(70.0 + gain),
        };
        ("set".to_owned(), comparison)
    }

    fn chosen(gains: &[f64], on_all: RankingWeights) -> ChosenWeights {
        let held = |gain: &f64| HeldOutFigures {
            chosen: figures(70.0 + gain),
            without_rows: 0.0,
            weights: RankingWeights::default(),
        };
        ChosenWeights { on_all, held_out: gains.iter().map(held).collect() }
    }

    #[track_caller]
    fn check(gains: &[f64], chosen: Option<&ChosenWeights>, typo_losses: &[f64], is_reached: bool) {
        let all: Vec<_> = gains.iter().map(|gain| comparison(*gain)).collect();
        let goals = quality(&all, chosen, typo_losses);
        assert_eq!(ensure_met(&goals).is_ok(), is_reached, "{gains:?}");
    }

    #[test]
    fn goals_require_a_mean_lead_and_limit_each_lag() {
        let built_in = RankingWeights::default;
        check(&[5.0, 5.0], None, &[2.0], true);
        check(&[11.0, -0.4], None, &[1.0, 3.0], true);
        check(&[4.9, 4.9], None, &[2.0], false);
        check(&[12.0, -0.6], None, &[2.0], false);
        check(&[5.0, 5.0], None, &[1.0, 3.1], false);
        check(&[5.0, 5.0], Some(&chosen(&[5.0, 5.0], built_in())), &[2.0], true);
        check(&[5.0, 5.0], Some(&chosen(&[4.9, 4.9], built_in())), &[2.0], false);
        check(&[5.0, 5.0], Some(&chosen(&[12.0, -0.6], built_in())), &[2.0], false);
        let mut other = built_in();
        other.k1 = 9.0;
        check(&[5.0, 5.0], Some(&chosen(&[5.0, 5.0], other)), &[2.0], false);
    }
}
