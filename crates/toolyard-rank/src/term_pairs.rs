//! Pairs of adjacent terms. There are many more pairs than terms, and queries contain few of them: therefore they are
//! stored with their tool, as hashes, and not in the index.

use std::sync::Arc;

use crate::ranking::{FIELDS, ToolField};
use crate::server_index::FieldCounts;

/// Two terms, and the number of times they are adjacent in a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TermPair {
    number: u32,
    in_name: u8,
    in_description: u8,
}

impl TermPair {
    /// One occurrence in this field.
    pub(crate) fn new(one: &str, other: &str, field: ToolField) -> Self {
        let in_name = u8::from(field == ToolField::Name);
        Self { number: pair_hash(one, other), in_name, in_description: 1 - in_name }
    }

    fn counts(self) -> FieldCounts {
        let mut counts = [0; FIELDS];
        counts[ToolField::Name as usize] = self.in_name;
        counts[ToolField::Description as usize] = self.in_description;
        counts
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
            previous.in_name = previous.in_name.saturating_add(next.in_name);
            previous.in_description = previous.in_description.saturating_add(next.in_description);
        }
        same
    });
    pairs.into()
}

/// The number of occurrences of the pair with this hash, if there are any.
pub(crate) fn counts(pairs: &[TermPair], number: u32) -> Option<FieldCounts> {
    let at = pairs.binary_search_by_key(&number, |pair| pair.number).ok()?;
    Some(pairs[at].counts())
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
