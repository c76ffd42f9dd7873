//! The goals of retrieval.

use anyhow::ensure;

use super::figures;
use super::rankers::RankerComparison;

/// Minimum lead of our mean nDCG over that of tuned BM25, in points: the gain of a neural hybrid.
pub(super) const MIN_LEAD: f64 = 1.7;
/// Maximum lag behind it on any set.
pub(super) const MAX_LAG: f64 = 0.5;
/// Maximum median time of a query, and maximum time to build the index, over 10,000 tools, in milliseconds.
pub(super) const QUERY_MILLIS: f64 = 1.0;
pub(super) const BUILD_MILLIS: f64 = 1000.0;

/// The lead of our mean over that of tuned BM25.
pub(super) fn lead(all: &[(String, RankerComparison)]) -> f64 {
    figures::mean(all.iter().map(|(_, compared)| gain(compared)))
}

/// Our smallest lead on any set.
pub(super) fn smallest_lead(all: &[(String, RankerComparison)]) -> f64 {
    all.iter().map(|(_, compared)| gain(compared)).fold(f64::INFINITY, f64::min)
}

fn gain(compared: &RankerComparison) -> f64 {
    compared.ours.all.ndcg_at_10 - compared.tuned.all.ndcg_at_10
}

/// Errors if a goal is missed. Times are reported only, as a busy machine is slow.
pub(super) fn ensure_met(all: &[(String, RankerComparison)]) -> anyhow::Result<()> {
    let (lead, least) = (lead(all), smallest_lead(all));
    ensure!(
        lead >= MIN_LEAD && least >= -MAX_LAG,
        "our mean nDCG@10 is {lead:+.2} points from tuned BM25's (the goal is {MIN_LEAD:+}), and {least:+.2} on the worst set (the limit is -{MAX_LAG})"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::SetFigures;

    #[track_caller]
    fn check(gains: &[f64], is_reached: bool) {
        let figures = |ndcg| {
            let mut figures = SetFigures::default();
            figures.all.ndcg_at_10 = ndcg;
            figures
        };
        let compared = |gain: &f64| RankerComparison {
            rockbot: figures(0.0),
            plain: figures(0.0),
            tuned: figures(50.0),
            ours: figures(50.0 + gain),
        };
        let all: Vec<_> = gains.iter().map(|gain| ("set".to_owned(), compared(gain))).collect();
        assert_eq!(ensure_met(&all).is_ok(), is_reached, "{gains:?}");
    }

    #[test]
    fn goals_require_a_mean_lead_and_limit_each_lag() {
        check(&[2.0, 2.0], true);
        check(&[4.0, -0.4], true);
        check(&[1.6, 1.6], false);
        check(&[9.0, -0.6], false);
    }
}
