//! Pairs of adjacent terms. There are many more pairs than terms, and queries contain few of them: therefore they are
//! stored with their tool, as hashes, and not in the index.

use std::sync::Arc;

use crate::ranking::{FIELDS, ToolField};
use crate::server_index::FieldCounts;

/// Two terms, and the number of times they are adjacent in each field of a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TermPair {
    number: u32,
    counts: FieldCounts,
}

impl TermPair {
    /// One occurrence in this field.
    pub(crate) fn new(one: &str, other: &str, field: ToolField) -> Self {
        let mut counts = [0; FIELDS];
        counts[field as usize] = 1;
        Self { number: pair_hash(one, other), counts }
    }
}

/// The hash of a pair, the same in each process: FNV-1a. Collisions within a tool are too rare to matter.
pub(crate) fn pair_hash(one: &str, other: &str) -> u32 {
    let bytes = one.bytes().chain([b' ']).chain(other.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Adds up the occurrences of equal pairs, and sorts by hash.
pub(crate) fn merge(mut pairs: Vec<TermPair>) -> Arc<[TermPair]> {
    pairs.sort_unstable();
    pairs.dedup_by(|next, previous| {
        let same = next.number == previous.number;
        if same {
            for (count, more) in previous.counts.iter_mut().zip(next.counts) {
                *count = count.saturating_add(more);
            }
        }
        same
    });
    pairs.into()
}

/// The number of occurrences of the pair with this hash, if there are any.
pub(crate) fn counts(pairs: &[TermPair], number: u32) -> Option<FieldCounts> {
    let at = pairs.binary_search_by_key(&number, |pair| pair.number).ok()?;
    Some(pairs[at].counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_field() {
        let pair = |one, other, field| TermPair::new(one, other, field);
        let pairs = merge(vec![
            pair("weather", "forecast", ToolField::Description),
            pair("air", "quality", ToolField::Description),
            pair("weather", "forecast", ToolField::Name),
            pair("weather", "forecast", ToolField::Description),
        ]);
        assert_eq!(counts(&pairs, pair_hash("weather", "forecast")), Some([1, 2, 0, 0, 0]));
        assert_eq!(counts(&pairs, pair_hash("air", "quality")), Some([0, 1, 0, 0, 0]));
        assert_eq!(counts(&pairs, pair_hash("forecast", "weather")), None);
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn counts_saturate() {
        let pairs = merge(vec![TermPair::new("a", "b", ToolField::Name); 1000]);
        assert_eq!(counts(&pairs, pair_hash("a", "b")), Some([255, 0, 0, 0, 0]));
    }
}
