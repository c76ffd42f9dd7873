//! The goals of retrieval.

use anyhow::ensure;

use super::choice::HeldOutFigures;
use super::figures;
use super::rankers::RankerComparison;

/// Minimum lead of our mean nDCG over that of tuned BM25, in points, with built-in and with chosen weights.
pub(super) const MIN_LEAD: f64 = 3.0;
/// Maximum lag behind it on any set.
pub(super) const MAX_LAG: f64 = 1.0;
/// Minimum mean nDCG.
pub(super) const MIN_NDCG: f64 = 65.5;
/// Maximum median time of a query, and maximum time to build the index, over 10,000 tools, in milliseconds.
pub(super) const QUERY_MILLIS: f64 = 1.0;
pub(super) const BUILD_MILLIS: f64 = 1000.0;

/// The lead of our mean over that of tuned BM25.
pub(super) fn lead(all: &[(String, RankerComparison)]) -> f64 {
    figures::mean(leads(all).iter().copied())
}

/// Our mean nDCG.
pub(super) fn ndcg(all: &[(String, RankerComparison)]) -> f64 {
    figures::mean(all.iter().map(|(_, compared)| compared.ours.all.ndcg_at_10))
}

/// Our lead on each set.
pub(super) fn leads(all: &[(String, RankerComparison)]) -> Vec<f64> {
    all.iter().map(|(_, it)| it.ours.all.ndcg_at_10 - it.tuned.all.ndcg_at_10).collect()
}

/// The lead on each set of steps and weights that were chosen on the other sets.
pub(super) fn held_out_leads(all: &[(String, RankerComparison)], held_out: &[HeldOutFigures]) -> Vec<f64> {
    all.iter().zip(held_out).map(|((_, it), held)| held.chosen - it.tuned.all.ndcg_at_10).collect()
}

/// The smallest of some leads.
pub(super) fn smallest(leads: &[f64]) -> f64 {
    leads.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Errors if a goal is missed. Times are reported only, as a busy machine is slow.
pub(super) fn ensure_met(
    all: &[(String, RankerComparison)],
    held_out: Option<&[HeldOutFigures]>,
) -> anyhow::Result<()> {
    ensure_leads("with built-in weights", &leads(all))?;
    if let Some(held_out) = held_out {
        ensure_leads("with weights chosen on other sets", &held_out_leads(all, held_out))?;
    }
    let ndcg = ndcg(all);
    ensure!(ndcg >= MIN_NDCG, "our mean nDCG@10 is {ndcg:.2} (the goal is {MIN_NDCG})");
    Ok(())
}

fn ensure_leads(weights: &str, leads: &[f64]) -> anyhow::Result<()> {
    let (lead, least) = (figures::mean(leads.iter().copied()), smallest(leads));
    ensure!(
        lead >= MIN_LEAD && least >= -MAX_LAG,
        "{weights}, our mean nDCG@10 is {lead:+.2} points from tuned BM25's (the goal is {MIN_LEAD:+}), and {least:+.2} on the worst set (the limit is -{MAX_LAG})"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use toolyard_rank::RankingWeights;

    use super::*;
    use crate::figures::SetFigures;

    fn comparison(gain: f64) -> (String, RankerComparison) {
        let figures = |ndcg| {
            let mut figures = SetFigures::default();
            figures.all.ndcg_at_10 = ndcg;
            figures
        };
        let comparison = RankerComparison {
            rockbot: figures(0.0),
            plain: figures(0.0),
            tuned: figures(63.0),
            ours: figures(63.0 + gain),
        };
        ("set".to_owned(), comparison)
    }

    #[track_caller]
    fn check(gains: &[f64], held_out: Option<&[f64]>, is_reached: bool) {
        let all: Vec<_> = gains.iter().map(|gain| comparison(*gain)).collect();
        let held = |gain: &f64| HeldOutFigures {
            chosen: 63.0 + gain,
            without_rows: 0.0,
            weights: RankingWeights::default(),
        };
        let held_out: Option<Vec<_>> = held_out.map(|gains| gains.iter().map(held).collect());
        assert_eq!(ensure_met(&all, held_out.as_deref()).is_ok(), is_reached, "{gains:?}");
    }

    #[test]
    fn goals_require_a_mean_lead_and_limit_each_lag() {
        check(&[3.0, 3.0], None, true);
        check(&[7.0, -0.9], None, true);
        check(&[2.9, 2.9], None, false);
        check(&[9.0, -1.1], None, false);
        check(&[3.0, 3.0], Some(&[3.0, 3.0]), true);
        check(&[5.0, 5.0], Some(&[2.9, 2.9]), false);
        check(&[5.0, 5.0], Some(&[9.0, -1.1]), false);
    }
}
