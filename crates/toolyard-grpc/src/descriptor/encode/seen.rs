//! Sets of fields by index.

/// A set of indexes; without an allocation up to 64.
#[derive(Debug)]
pub(super) struct SeenFields {
    first: u64,
    more: Vec<u64>,
}

impl SeenFields {
    pub(super) fn new(fields: usize) -> Self {
        Self { first: 0, more: vec![0; fields.saturating_sub(1) / 64] }
    }

    /// Adds an index; returns false if it was there.
    pub(super) fn insert(&mut self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        let word = match index / 64 {
            0 => &mut self.first,
            word => match self.more.get_mut(word - 1) {
                Some(word) => word,
                None => return true,
            },
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let word = match index / 64 {
            0 => self.first,
            word => self.more.get(word - 1).copied().unwrap_or_default(),
        };
        word & (1 << (index % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_inserted_once() {
        for fields in [1, 63, 64, 65, 127, 128, 129, 1000] {
            let mut seen = SeenFields::new(fields);
            for index in 0..fields {
                assert!(!seen.contains(index), "{index} of {fields}");
                assert!(seen.insert(index), "{index} of {fields}");
                assert!(!seen.insert(index), "{index} of {fields}");
                assert!(seen.contains(index), "{index} of {fields}");
            }
        }
    }
}
