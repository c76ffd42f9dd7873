//! Bigrams, which are pairs of adjacent terms. There are many more of them than terms, and queries contain few:
//! therefore they are stored with their tool, as hashes, and not in the index.

use std::sync::Arc;

use crate::ranking::{FIELDS, ToolField};
use crate::server_index::FieldCounts;

/// Two terms, and the number of times they are adjacent in each field of a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TermBigram {
    hash: u32,
    counts: FieldCounts,
}

impl TermBigram {
    /// One occurrence in this field.
    pub(crate) fn new(one: u32, other: u32, field: ToolField) -> Self {
        let mut counts = [0; FIELDS];
        counts[field as usize] = 1;
        Self { hash: bigram_hash(one, other), counts }
    }
}

/// The hash of a term, the same in each process: FNV-1a.
pub(crate) fn term_hash(term: &str) -> u32 {
    term.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The hash of a bigram, by the hashes of its terms in their order. Collisions within a tool are too rare to matter.
pub(crate) const fn bigram_hash(one: u32, other: u32) -> u32 {
    (one.rotate_left(7) ^ other).wrapping_mul(0x9e37_79b1)
}

/// Adds up the occurrences of equal bigrams, and sorts by hash.
pub(crate) fn merge(mut bigrams: Vec<TermBigram>) -> Arc<[TermBigram]> {
    bigrams.sort_unstable();
    bigrams.dedup_by(|next, previous| {
        let same = next.hash == previous.hash;
        if same {
            for (count, more) in previous.counts.iter_mut().zip(next.counts) {
                *count = count.saturating_add(more);
            }
        }
        same
    });
    bigrams.into()
}

/// The number of occurrences of the bigram with this hash, if there are any.
pub(crate) fn counts(bigrams: &[TermBigram], hash: u32) -> Option<FieldCounts> {
    let at = bigrams.binary_search_by_key(&hash, |bigram| bigram.hash).ok()?;
    Some(bigrams[at].counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_field() {
        let hash = |one, other| bigram_hash(term_hash(one), term_hash(other));
        let bigram = |one, other, field| TermBigram::new(term_hash(one), term_hash(other), field);
        let bigrams = merge(vec![
            bigram("weather", "forecast", ToolField::Description),
            bigram("air", "quality", ToolField::Description),
            bigram("weather", "forecast", ToolField::Name),
            bigram("weather", "forecast", ToolField::Description),
        ]);
        assert_eq!(counts(&bigrams, hash("weather", "forecast")), Some([1, 2, 0, 0, 0]));
        assert_eq!(counts(&bigrams, hash("air", "quality")), Some([0, 1, 0, 0, 0]));
        assert_eq!(counts(&bigrams, hash("forecast", "weather")), None);
        assert_eq!(bigrams.len(), 2);
    }

    #[test]
    fn counts_saturate() {
        let bigrams = merge(vec![TermBigram::new(1, 2, ToolField::Name); 1000]);
        assert_eq!(counts(&bigrams, bigram_hash(1, 2)), Some([255, 0, 0, 0, 0]));
    }
}
