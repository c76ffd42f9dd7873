//! The text of a key: an entry, a chunk of a large result, or the whole result.

mod chunk_lines;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::access::{FullKey, MemoryAccess};
use super::chunk_keys;
use super::error::MemoryError;
use super::query::QueryError;
use super::reading::line_count;
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
    /// The text is too long for its purpose.
    #[error(transparent)]
    LargeValue(#[from] QueryError),
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
    /// Number of lines of the whole text that end before it: 0 unless it is a part.
    pub lines_before: usize,
    /// Number of lines of the whole text that begin after it, if it stands for the whole text.
    pub lines_after: usize,
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
            return self.joined(&found.key, chunks, None, usize::MAX).await.map(Some);
        }
        let base = chunk_keys::base_of(key.trim()).filter(|_| found.record.place.is_some());
        let lines_before = found.record.lines_before();
        let index = base.map(chunk_keys::index_key);
        Ok(Some(FoundText { text: found.value, lines_before, lines_after: 0, index }))
    }

    /// Returns the whole text of a key. That of a chunk stands for the whole text as well. The chunks of a longer result
    /// than `limit` bytes are not read.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn whole(
        &self,
        access: &MemoryAccess,
        key: &str,
        limit: usize,
    ) -> Result<Option<FoundText>, ReadError> {
        self.whole_or_lines(access, key, None, limit).await
    }

    /// Returns the part of a whole text, as [`MemoryReader::whole`] finds it, that has the lines from `first` to `last`,
    /// and perhaps some more.
    ///
    /// # Errors
    /// Returns a [`ReadError`].
    pub async fn lines(
        &self,
        access: &MemoryAccess,
        key: &str,
        first: usize,
        last: usize,
    ) -> Result<Option<FoundText>, ReadError> {
        self.whole_or_lines(access, key, Some((first, last)), usize::MAX).await
    }

    async fn whole_or_lines(
        &self,
        access: &MemoryAccess,
        key: &str,
        lines: Option<(usize, usize)>,
        limit: usize,
    ) -> Result<Option<FoundText>, ReadError> {
        let entry = match chunk_keys::base_of(key.trim()) {
            Some(base) => self.find(access, &chunk_keys::index_key(base)).await?,
            None => self.find_or_index(access, key).await?,
        };
        match entry {
            Some(FoundEntry { key, record: MemoryRecord { chunks: Some(chunks), .. }, .. }) => {
                self.joined(&key, chunks, lines, limit).await.map(Some)
            }
            // A key that looks like that of a chunk may be the caller's own.
            _ => self.text(access, key).await,
        }
    }

    /// Joins the chunks of a result, with the text that is stored around them: all, or those that have some lines. The
    /// whole result has at most `limit` bytes.
    async fn joined(
        &self,
        index: &FullKey,
        chunks: usize,
        lines: Option<(usize, usize)>,
        limit: usize,
    ) -> Result<FoundText, ReadError> {
        let base = chunk_keys::base_of(&index.path).unwrap_or(&index.path);
        let keys = (0..chunks).map(|number| chunk_keys::chunk_key(base, number));
        let records = self.memory.find_all(&index.namespace, keys).await?.into_iter().enumerate();
        let records: Vec<_> = records
            .map(|(number, record)| record.ok_or_else(|| incomplete(base, number)))
            .collect::<Result<_, _>>()?;
        let bytes = records.iter().map(|record| record.bytes).sum();
        if bytes > limit {
            return Err(QueryError::LargeValue { bytes, limit }.into());
        }
        let places: Vec<_> = records.iter().map(|record| record.place.unwrap_or_default()).collect();
        let needed = match lines {
            Some((first, last)) => chunk_lines::chunks_with(&places, first, last),
            None => 0..chunks,
        };
        let mut texts = self.stored_texts(index, &records, needed.clone()).await?;
        // The last chunk tells the number of all lines.
        let last = match chunks.checked_sub(1).filter(|last| !needed.contains(last)) {
            Some(last) => self.stored_texts(index, &records, last..chunks).await?.pop(),
            None => None,
        };
        let text = match texts.len() {
            1 => texts.pop().unwrap_or_default(),
            _ => texts.concat(),
        };
        let lines_before =
            places.get(needed.start).map_or(0, |place| chunk_lines::lines_before(*place, &text));
        let lines_after = last.zip(places.last()).map_or(0, |(last, place)| {
            let all = chunk_lines::lines_before(*place, &last) + line_count(&last);
            all.saturating_sub(lines_before + line_count(&text))
        });
        Ok(FoundText { text, lines_before, lines_after, index: None })
    }

    /// Returns the stored texts of some chunks of a result.
    async fn stored_texts(
        &self,
        index: &FullKey,
        records: &[MemoryRecord],
        numbers: Range<usize>,
    ) -> Result<Vec<String>, ReadError> {
        let base = chunk_keys::base_of(&index.path).unwrap_or(&index.path);
        let mut texts = Vec::with_capacity(numbers.len());
        let stored = self.memory.stored_texts(&records[numbers.clone()]).await?;
        for (number, stored) in numbers.zip(stored) {
            let stored = match stored {
                Some(stored) => Some(stored),
                // A concurrent save may have replaced the entry.
                None => {
                    let key = FullKey { path: chunk_keys::chunk_key(base, number), ..index.clone() };
                    self.memory.get_stored(&key).await?.map(|(_, stored)| stored)
                }
            };
            texts.push(stored.ok_or_else(|| incomplete(base, number))?);
        }
        Ok(texts)
    }
}

fn incomplete(base: &str, number: usize) -> ReadError {
    ReadError::Incomplete { base: base.to_owned(), number }
}
