//! Terms that stand side by side. There are many more pairs than terms, and few are ever asked for: so they are kept with
//! their tool, as numbers, and not in the index.

use std::sync::Arc;

use crate::ranking::{FIELDS, Field};
use crate::shelf::Counts;

/// Two terms, and how often they stand side by side in a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    number: u32,
    in_name: u8,
    in_description: u8,
}

impl Pair {
    /// Once, in this field.
    pub(crate) fn new(one: &str, other: &str, field: Field) -> Self {
        let in_name = u8::from(field == Field::Name);
        Self { number: number(one, other), in_name, in_description: 1 - in_name }
    }

    fn counts(self) -> Counts {
        let mut counts = [0; FIELDS];
        counts[Field::Name as usize] = self.in_name;
        counts[Field::Description as usize] = self.in_description;
        counts
    }
}

/// The number of a pair, the same in each process: FNV-1a. That two pairs of one tool have the same number is so rare that nobody will see it.
pub(crate) fn number(one: &str, other: &str) -> u32 {
    let bytes = one.bytes().chain([b' ']).chain(other.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Each pair once, by its number.
pub(crate) fn merged(mut pairs: Vec<Pair>) -> Arc<[Pair]> {
    pairs.sort_unstable();
    pairs.dedup_by(|next, kept| {
        let same = next.number == kept.number;
        if same {
            kept.in_name = kept.in_name.saturating_add(next.in_name);
            kept.in_description = kept.in_description.saturating_add(next.in_description);
        }
        same
    });
    pairs.into()
}

/// How often the pair of this number is in a tool that has these pairs, if it is.
pub(crate) fn counts(pairs: &[Pair], number: u32) -> Option<Counts> {
    let at = pairs.binary_search_by_key(&number, |pair| pair.number).ok()?;
    Some(pairs[at].counts())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_where_they_stand() {
        let pair = |one, other, field| Pair::new(one, other, field);
        let pairs = merged(vec![
            pair("weather", "forecast", Field::Description),
            pair("air", "quality", Field::Description),
            pair("weather", "forecast", Field::Name),
            pair("weather", "forecast", Field::Description),
        ]);
        assert_eq!(counts(&pairs, number("weather", "forecast")), Some([1, 2, 0, 0, 0]));
        assert_eq!(counts(&pairs, number("air", "quality")), Some([0, 1, 0, 0, 0]));
        assert_eq!(counts(&pairs, number("forecast", "weather")), None);
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn many_of_a_pair_are_as_many_as_can_be_counted() {
        let pairs = merged(vec![Pair::new("a", "b", Field::Name); 1000]);
        assert_eq!(counts(&pairs, number("a", "b")), Some([255, 0, 0, 0, 0]));
    }
}
