//! Vectors by the texts that they are of.

use std::collections::{HashMap, HashSet};

use toolyard_rank::EmbeddingVector;

/// Digest of a text: SHA-256.
pub(super) type TextDigest = [u8; 32];

/// Bytes of an entry beside its vector.
const ENTRY_BYTES: usize = 128;

/// Vectors with the same number of dimensions, within a size.
pub(super) struct VectorCache {
    vectors: HashMap<TextDigest, EmbeddingVector>,
    max_bytes: usize,
    /// Number of dimensions, which the first vector determines.
    dimensions: Option<usize>,
}

impl VectorCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { vectors: HashMap::new(), max_bytes, dimensions: None }
    }

    pub(super) fn get(&self, digest: &TextDigest) -> Option<EmbeddingVector> {
        self.vectors.get(digest).cloned()
    }

    pub(super) fn contains(&self, digest: &TextDigest) -> bool {
        self.vectors.contains_key(digest)
    }

    pub(super) fn len(&self) -> usize {
        self.vectors.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    /// Returns true if this many vectors may be added.
    pub(super) fn has_room(&self, more: usize) -> bool {
        let vector = self.dimensions.unwrap_or_default() * size_of::<f32>() + ENTRY_BYTES;
        (self.vectors.len() + more).saturating_mul(vector) <= self.max_bytes
    }

    /// Adds a vector, unless the size is reached. Returns the expected number of dimensions if it has another one.
    pub(super) fn insert(&mut self, digest: TextDigest, vector: &EmbeddingVector) -> Result<(), usize> {
        let expected = *self.dimensions.get_or_insert(vector.len());
        if vector.len() != expected {
            return Err(expected);
        }
        if self.has_room(1) {
            self.vectors.insert(digest, vector.clone());
        }
        Ok(())
    }

    /// Removes all other vectors.
    pub(super) fn retain(&mut self, digests: &HashSet<TextDigest>) {
        self.vectors.retain(|digest, _| digests.contains(digest));
    }

    pub(super) fn clear(&mut self) {
        self.vectors.clear();
        self.dimensions = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_bounded() {
        let mut cache = VectorCache::new(3 * (2 * size_of::<f32>() + ENTRY_BYTES));
        let vector: EmbeddingVector = [1.0, 0.0].into();
        for digest in 0..5 {
            assert_eq!(cache.insert([digest; 32], &vector), Ok(()));
        }
        assert_eq!((cache.len(), cache.has_room(1)), (3, false));
        cache.retain(&HashSet::from([[1; 32], [9; 32]]));
        assert_eq!((cache.len(), cache.has_room(2), cache.has_room(3)), (1, true, false));
    }

    #[test]
    fn other_dimensions_are_refused_until_it_is_cleared() {
        let mut cache = VectorCache::new(1 << 20);
        let [two, three]: [EmbeddingVector; 2] = [[1.0, 0.0].into(), [1.0, 0.0, 0.0].into()];
        assert_eq!(cache.insert([1; 32], &two), Ok(()));
        assert_eq!(cache.insert([2; 32], &three), Err(2));
        cache.clear();
        assert_eq!(cache.insert([2; 32], &three), Ok(()));
        assert!(cache.get(&[1; 32]).is_none() && cache.contains(&[2; 32]));
    }
}
