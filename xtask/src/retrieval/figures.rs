//! How good a ranking is.

use std::ops::AddAssign;

use super::sets::{Query, Set};

/// The ranks that are looked at.
pub(super) const RANKS: usize = 10;

/// How good the rankings of some queries are, in percent once they are divided by how many queries there are.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    /// Which part of the groups has a tool among the first five, and among the first ten.
    pub(super) recall_at_5: f64,
    pub(super) recall_at_10: f64,
    /// How early they come, beside the best order there is.
    pub(super) ndcg_at_10: f64,
    queries: usize,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.recall_at_5 += other.recall_at_5;
        self.recall_at_10 += other.recall_at_10;
        self.ndcg_at_10 += other.ndcg_at_10;
        self.queries += other.queries;
    }
}

impl Figures {
    /// Those of one query. A group counts once, at the best rank of any of its tools.
    fn of(query: &Query, ranking: &[&str]) -> Self {
        let mut seen = vec![false; query.relevant.len()];
        let mut ranks = Vec::new();
        for (rank, tool) in ranking.iter().take(RANKS).enumerate() {
            let mut groups = query.relevant.iter().enumerate();
            let group = groups.find(|(at, group)| !seen[*at] && group.iter().any(|one| one == tool));
            if let Some((at, _)) = group {
                seen[at] = true;
                ranks.push(rank);
            }
        }
        let groups = query.relevant.len();
        let within = |most: usize| ranks.iter().filter(|rank| **rank < most).count() as f64 / groups as f64;
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let best: f64 = (0..groups.min(RANKS)).map(gain).sum();
        let gained: f64 = ranks.iter().copied().map(gain).sum();
        Self { recall_at_5: within(5), recall_at_10: within(10), ndcg_at_10: gained / best, queries: 1 }
    }

    /// In percent.
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

/// What a ranker reaches on one set.
#[derive(Clone, Copy, Default)]
pub(super) struct Reached {
    pub(super) all: Figures,
    /// Of every other query, beginning with the first, and with the second.
    pub(super) halves: [Figures; 2],
}

impl Reached {
    /// What a ranker, which gives the ids of the first tools for a query, reaches on a set.
    pub(super) fn on(set: &Set, rank: impl Fn(&str) -> Vec<String>) -> Self {
        let mut reached = Self::default();
        for (number, query) in set.queries.iter().enumerate() {
            let ranking = rank(&query.text);
            let figures = Figures::of(query, &ranking.iter().map(String::as_str).collect::<Vec<_>>());
            reached.all += figures;
            reached.halves[number % 2] += figures;
        }
        Self { all: reached.all.mean(), halves: reached.halves.map(Figures::mean) }
    }
}

/// The mean of some figures, each of which counts alike.
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
        let query = Query { text: String::new(), relevant: vec![group(&["a", "b"]), group(&["c"])] };
        let Figures { recall_at_5, recall_at_10, ndcg_at_10, .. } = Figures::of(&query, ranking);
        let seen = [recall_at_5, recall_at_10, ndcg_at_10];
        for (seen, expected) in seen.into_iter().zip(expected) {
            assert!((seen - expected).abs() < 1e-9, "{ranking:?}: {seen}, not {expected}");
        }
    }

    #[test]
    fn a_group_counts_once_at_its_best_rank() {
        let best = 1.0 + 1.0 / 3_f64.log2();
        check(&["a", "c"], [1.0, 1.0, 1.0]);
        check(&["c", "b"], [1.0, 1.0, 1.0]);
        check(&["a", "b", "c"], [1.0, 1.0, 1.5 / best]);
        check(&["x", "x", "x", "x", "x", "c"], [0.0, 0.5, 1.0 / 7_f64.log2() / best]);
        check(&["x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "a"], [0.0, 0.0, 0.0]);
        check(&[], [0.0, 0.0, 0.0]);
    }
}
