//! The text of a key: an entry, a chunk of a large result, or the whole result.

use super::access::{FullKey, MemoryAccess};
use super::chunk_keys;
use super::error::MemoryError;
use super::record::MemoryRecord;
use super::texts;
use super::working_memory::WorkingMemory;

/// Reads entries for callers, within their access.
#[derive(Debug, Clone)]
pub struct MemoryReader {
    memory: WorkingMemory,
}

/// Error of reading. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The memory fails, or the key is invalid.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A chunk of a result is gone.
    #[error("{}", texts::incomplete(.base, *.number))]
    Incomplete {
        /// Common prefix of the keys of the result.
        base: String,
        /// Number of the chunk.
        number: usize,
    },
}

/// An entry that was found.
#[derive(Debug, Clone)]
pub struct FoundEntry {
    /// Key under which it was found.
    pub key: FullKey,
    /// Its metadata.
    pub record: MemoryRecord,
    /// Its value.
    pub value: String,
}

/// The text of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundText {
    /// The text.
    pub text: String,
    /// Number of lines of the whole text that end before it: 0 unless it is a chunk.
    pub lines_before: usize,
    /// Key of the index of the whole text, if this is a chunk of it.
    pub index: Option<String>,
}

impl MemoryReader {
    /// Returns a reader of a memory.
    #[must_use]
    pub const fn new(memory: WorkingMemory) -> Self {
        Self { memory }
    }

    /// Returns the memory.
    #[must_use]
    pub const fn memory(&self) -> &WorkingMemory {
        &self.memory
    }

    /// Returns the entry of a key.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn find(&self, access: &MemoryAccess, key: &str) -> Result<Option<FoundEntry>, ReadError> {
        for key in access.readable(key)? {
            if let Some((record, value)) = self.memory.get(&key).await? {
                return Ok(Some(FoundEntry { key, record, value }));
            }
        }
        Ok(None)
    }

    /// Returns the entry of a key, or else the index of the large result whose keys begin like this.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn find_or_index(
        &self,
        access: &MemoryAccess,
        key: &str,
    ) -> Result<Option<FoundEntry>, ReadError> {
        match self.find(access, key).await? {
            None if chunk_keys::base_of(key).is_none() => {
                let index = self.find(access, &chunk_keys::index_key(key.trim())).await?;
                Ok(index.filter(|index| index.record.chunks.is_some()))
            }
            found => Ok(found),
        }
    }

    /// Returns the text of a key. The key of a chunk gives the chunk; those of the index, and the common prefix of both,
    /// give the whole text.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn text(&self, access: &MemoryAccess, key: &str) -> Result<Option<FoundText>, ReadError> {
        let Some(found) = self.find_or_index(access, key).await? else { return Ok(None) };
        if let Some(chunks) = found.record.chunks {
            return self.joined(&found.key, chunks).await.map(Some);
        }
        // Entries that a model saves under such a key have no category by default.
        let base = chunk_keys::base_of(key.trim()).filter(|_| found.record.category.is_some());
        let lines_before = found.record.place.lines;
        Ok(Some(FoundText { text: found.value, lines_before, index: base.map(chunk_keys::index_key) }))
    }

    /// Returns the whole text of a key. That of a chunk stands for the whole text as well.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn whole(&self, access: &MemoryAccess, key: &str) -> Result<Option<FoundText>, ReadError> {
        if let Some(base) = chunk_keys::base_of(key.trim()) {
            let index = self.find(access, &chunk_keys::index_key(base)).await?;
            if let Some(FoundEntry { key, record: MemoryRecord { chunks: Some(chunks), .. }, .. }) = index {
                return self.joined(&key, chunks).await.map(Some);
            }
        }
        // A key that looks like that of a chunk may be the caller's own.
        self.text(access, key).await
    }

    /// Joins all chunks of a result, with the text that is stored around them.
    async fn joined(&self, index: &FullKey, chunks: usize) -> Result<FoundText, ReadError> {
        let base = chunk_keys::base_of(&index.path).unwrap_or(&index.path);
        let mut text = String::new();
        for number in 0..chunks {
            let path = chunk_keys::chunk_key(base, number);
            let chunk = self.memory.get_stored(&FullKey { path, ..index.clone() }).await?;
            let (_, stored) = chunk.ok_or_else(|| ReadError::Incomplete { base: base.to_owned(), number })?;
            text.push_str(&stored);
        }
        Ok(FoundText { text, lines_before: 0, index: None })
    }
}
