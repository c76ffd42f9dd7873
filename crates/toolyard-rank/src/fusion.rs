//! Fusion of rankings by rank: scores of words and of embeddings are not comparable, ranks are.

use std::collections::HashMap;
use std::sync::Arc;

/// Number of ranks of each ranking that count.
pub const FUSED_RANKS: usize = 100;

/// Constant of reciprocal rank fusion, which limits the advantage of the first ranks (Cormack, Clarke and Büttcher, 2009).
const RANK_OFFSET: f64 = 60.0;

/// Weight of the ranking by vectors, relative to that by words. `docs/retrieval.md` compares it with others.
pub const VECTOR_WEIGHT: f64 = 0.25;

/// Fuses the ranking by words with that by vectors, by weighted reciprocal ranks. Returns at most `limit` keys, the best
/// first and by key if scores are equal.
pub fn fuse(words: &[Arc<str>], vectors: &[Arc<str>], vector_weight: f64, limit: usize) -> Vec<Arc<str>> {
    let mut scores: HashMap<&Arc<str>, f64> = HashMap::new();
    for (ranking, weight) in [(words, 1.0), (vectors, vector_weight)] {
        for (rank, key) in ranking.iter().take(FUSED_RANKS).enumerate() {
            *scores.entry(key).or_default() += weight / (RANK_OFFSET + rank as f64 + 1.0);
        }
    }
    let mut fused: Vec<(&Arc<str>, f64)> = scores.into_iter().collect();
    fused.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    fused.into_iter().take(limit).map(|(key, _)| Arc::clone(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, vectors: &str, limit: usize, expected: &str) {
        let ranking = |text: &str| -> Vec<Arc<str>> { text.split_whitespace().map(Arc::from).collect() };
        let fused = fuse(&ranking(words), &ranking(vectors), 1.0, limit);
        assert_eq!(fused.join(" "), expected, "{words} + {vectors}");
    }

    #[test]
    fn tools_of_both_rankings_come_first() {
        check("a b c", "c d", 4, "c a b d");
        check("a b c", "c b a", 3, "a c b");
        check("a b c", "b x", 2, "b a");
    }

    #[test]
    fn weight_of_vectors_decides_between_the_rankings() {
        let [words, vectors] = ["a b", "b a"].map(|text| text.split(' ').map(Arc::from).collect::<Vec<_>>());
        let first = |weight| fuse(&words, &vectors, weight, 1)[0].to_string();
        assert_eq!([first(0.5), first(2.0), first(0.0)], ["a", "b", "a"]);
    }

    #[test]
    fn single_ranking_is_unchanged() {
        check("a b c", "", 9, "a b c");
        check("", "c b", 9, "c b");
        check("", "", 9, "");
        check("a b c", "a b c", 2, "a b");
    }

    #[test]
    fn ranks_beyond_the_limit_do_not_count() {
        let many: Vec<String> = (0..=FUSED_RANKS).map(|number| format!("t{number:03}")).collect();
        let keys: Vec<Arc<str>> = many.iter().map(|key| key.as_str().into()).collect();
        assert_eq!(fuse(&keys, &[], 1.0, usize::MAX), keys[..FUSED_RANKS]);
    }
}
