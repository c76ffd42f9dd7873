//! Quality figures of rankings.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::sets::{RetrievalQuery, RetrievalSet};

/// Number of ranks that are evaluated.
pub(super) const MAX_RANK: usize = 10;

/// The figures of some queries: sums, or means in percent.
#[derive(Clone, Copy, Default)]
pub(super) struct RankingFigures {
    /// Share of the groups with a tool among the first five, and among the first ten.
    pub(super) recall_at_5: f64,
    pub(super) recall_at_10: f64,
    /// Normalized discounted cumulative gain at ten: the ranks compared with the best order.
    pub(super) ndcg_at_10: f64,
    pub(super) queries: usize,
}

impl AddAssign for RankingFigures {
    fn add_assign(&mut self, other: Self) {
        self.recall_at_5 += other.recall_at_5;
        self.recall_at_10 += other.recall_at_10;
        self.ndcg_at_10 += other.ndcg_at_10;
        self.queries += other.queries;
    }
}

impl RankingFigures {
    /// The figures of one query. A group counts once, at the best rank of any of its tools.
    fn of(query: &RetrievalQuery, ranking: &[&str]) -> Self {
        let mut matched = vec![false; query.relevant.len()];
        let mut ranks = Vec::new();
        for (rank, tool) in ranking.iter().take(MAX_RANK).enumerate() {
            let mut groups = query.relevant.iter().enumerate();
            let group = groups.find(|(at, group)| !matched[*at] && group.iter().any(|one| one == tool));
            if let Some((at, _)) = group {
                matched[at] = true;
                ranks.push(rank);
            }
        }
        let groups = query.relevant.len();
        let within = |most: usize| ranks.iter().filter(|rank| **rank < most).count() as f64 / groups as f64;
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let best: f64 = (0..groups.min(MAX_RANK)).map(gain).sum();
        let gain_sum: f64 = ranks.iter().copied().map(gain).sum();
        Self { recall_at_5: within(5), recall_at_10: within(10), ndcg_at_10: gain_sum / best, queries: 1 }
    }

    /// The mean in percent.
    fn mean(self) -> Self {
        let percent = |sum: f64| 100.0 * sum / self.queries.max(1) as f64;
        Self {
            recall_at_5: percent(self.recall_at_5),
            recall_at_10: percent(self.recall_at_10),
            ndcg_at_10: percent(self.ndcg_at_10),
            queries: self.queries,
        }
    }
}

/// The figures of a ranker on one set.
#[derive(Clone, Default)]
pub(super) struct SetFigures {
    pub(super) all: RankingFigures,
    /// nDCG of each query, in percent.
    pub(super) ndcg: Vec<f64>,
    /// The figures by kind of query, of sets that have kinds.
    pub(super) kinds: BTreeMap<String, RankingFigures>,
}

impl SetFigures {
    /// Measures a ranker, which returns the IDs of the first tools for a query.
    pub(super) fn measure(set: &RetrievalSet, rank: impl Fn(&str) -> Vec<String>) -> Self {
        let mut sums = Self::default();
        for query in &set.queries {
            let ranking = rank(&query.text);
            let figures = RankingFigures::of(query, &ranking.iter().map(String::as_str).collect::<Vec<_>>());
            sums.all += figures;
            sums.ndcg.push(100.0 * figures.ndcg_at_10);
            if let Some(kind) = &query.kind {
                *sums.kinds.entry(kind.clone()).or_default() += figures;
            }
        }
        let kinds = sums.kinds.into_iter().map(|(kind, figures)| (kind, figures.mean())).collect();
        Self { all: sums.all.mean(), ndcg: sums.ndcg, kinds }
    }
}

/// The mean of some figures with equal weights.
pub(super) fn mean(figures: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = figures.len() as f64;
    figures.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ranking: &[&str], expected: [f64; 3]) {
        let group = |tools: &[&str]| tools.iter().map(|tool| (*tool).to_owned()).collect();
        let query = RetrievalQuery {
            text: String::new(),
            kind: None,
            relevant: vec![group(&["a", "b"]), group(&["c"])],
        };
        let RankingFigures { recall_at_5, recall_at_10, ndcg_at_10, .. } =
            RankingFigures::of(&query, ranking);
        let actual = [recall_at_5, recall_at_10, ndcg_at_10];
        for (actual, expected) in actual.into_iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-9, "{ranking:?}: {actual}, not {expected}");
        }
    }

    #[test]
    fn group_counts_once_at_its_best_rank() {
        let best = 1.0 + 1.0 / 3_f64.log2();
        check(&["a", "c"], [1.0, 1.0, 1.0]);
        check(&["c", "b"], [1.0, 1.0, 1.0]);
        check(&["a", "b", "c"], [1.0, 1.0, 1.5 / best]);
        check(&["x", "x", "x", "x", "x", "c"], [0.0, 0.5, 1.0 / 7_f64.log2() / best]);
        check(&["x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "a"], [0.0, 0.0, 0.0]);
        check(&[], [0.0, 0.0, 0.0]);
    }
}
