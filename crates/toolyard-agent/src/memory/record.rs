//! The metadata of entries, and the list of entries of a namespace.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toolyard_manifest::MemorySettings;

use super::chunk_keys;
use super::error::MemoryError;
use super::namespace::MemoryNamespace;

/// Maximum length of a category or a tag in bytes, and maximum number of tags.
const MAX_LABEL_LENGTH: usize = 128;
const MAX_TAGS: usize = 16;

/// Size of a record without its texts in bytes, rounded up.
const RECORD_SIZE: usize = 256;

/// An entry to save.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// Full path.
    pub key: &'a str,
    /// The value, with the text that is stored around it.
    pub value: &'a str,
    /// Category, such as `tool-result`.
    pub category: Option<&'a str>,
    /// Tags for searches.
    pub tags: &'a [String],
    /// Time to live; `None` for the default.
    pub ttl: Option<Duration>,
    /// Number of chunks, if this is the index of a large result.
    pub chunks: Option<usize>,
    /// Place in the text of a large result, if this is a chunk of it.
    pub place: Option<ChunkPlace>,
}

/// Place of a chunk in a whole text. The text that chunks leave out, such as the lines of headings, is stored with them,
/// so that the whole text can be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkPlace {
    /// Number of the chunk.
    pub number: usize,
    /// Bytes of the stored text before the chunk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: usize,
    /// Bytes of the stored text after the chunk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: usize,
    /// Number of lines of the whole text that end before the chunk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: usize,
}

const fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ChunkPlace {
    /// Returns the chunk in a stored text; the whole text if the place does not fit.
    fn slice<'a>(&self, stored: &'a str) -> &'a str {
        stored.len().checked_sub(self.after).and_then(|end| stored.get(self.before..end)).unwrap_or(stored)
    }
}

impl<'a> NewEntry<'a> {
    /// Returns an entry without category, tags and time to live.
    #[must_use]
    pub const fn new(key: &'a str, value: &'a str) -> Self {
        Self { key, value, category: None, tags: &[], ttl: None, chunks: None, place: None }
    }

    /// Returns the length of the value in characters, without the text that is stored around a chunk.
    pub(super) fn chars(&self) -> usize {
        self.place.map_or(self.value, |place| place.slice(self.value)).chars().count()
    }

    pub(super) fn check(&self, limits: &MemorySettings) -> Result<(), MemoryError> {
        if self.value.len() > limits.value_bytes {
            return Err(MemoryError::TooLong { bytes: self.value.len(), limit: limits.value_bytes });
        }
        let is_label = |text: &str| text.len() <= MAX_LABEL_LENGTH && !text.contains(char::is_control);
        if !self.category.is_none_or(is_label) || !self.tags.iter().all(|tag| is_label(tag)) {
            return Err(MemoryError::BadKey("category and tags: each is one line of 128 bytes at most"));
        }
        match self.tags.len() <= MAX_TAGS {
            true => Ok(()),
            false => Err(MemoryError::BadKey("tags: are more than 16")),
        }
    }
}

/// Metadata of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Full path, in the case in which it was saved.
    pub key: String,
    /// Id of the value in the store.
    pub(super) id: String,
    /// Length of the stored text in bytes.
    pub bytes: usize,
    /// Length of the value in characters.
    pub chars: usize,
    /// Time of saving, in milliseconds since 1970.
    pub saved: u64,
    /// Time of expiry, in milliseconds since 1970.
    pub(super) expires: u64,
    /// Category of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Tags for searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Number of chunks, if this is the index of a large result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<usize>,
    /// Place in the text of a large result, if this is a chunk of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ChunkPlace>,
}

impl MemoryRecord {
    /// Returns the value in a stored text.
    #[must_use]
    pub fn value_in(&self, mut stored: String) -> String {
        let Some(place) = self.place else { return stored };
        let value = place.slice(&stored);
        if value.len() == stored.len() {
            return stored;
        }
        let end = place.before + value.len();
        stored.truncate(end);
        stored.drain(..place.before);
        stored
    }

    /// Returns the number of lines of the whole text that end before the value.
    pub(super) fn lines_before(&self) -> usize {
        self.place.map_or(0, |place| place.lines)
    }

    /// Returns the common prefix of the keys of the large result, if this is its index or one of its chunks. A model may
    /// save a note under such a key.
    pub(super) fn result_base(&self) -> Option<&str> {
        (self.chunks.is_some() || self.place.is_some()).then(|| chunk_keys::base_of(&self.key))?
    }

    /// Returns the remaining time to live.
    #[must_use]
    pub fn left(&self, now: SystemTime) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(millis(now)))
    }

    /// Returns `true` if the entry is in this category or in one below it.
    #[must_use]
    pub fn is_of(&self, category: &str) -> bool {
        let own = self.category.as_deref().unwrap_or_default().to_lowercase();
        let rest = own.strip_prefix(&category.to_lowercase());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns `true` if the entry has this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase())
    }

    /// Returns the time of expiry.
    #[must_use]
    pub fn expires_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.expires)
    }

    /// Returns the bytes that count towards the limit of the namespace.
    fn size(&self) -> usize {
        let labels = self.category.iter().chain(&self.tags).map(String::len).sum::<usize>();
        self.bytes + self.key.len() + labels
    }

    fn is_called(&self, path: &str) -> bool {
        self.key == path || self.key.to_lowercase() == path.to_lowercase()
    }
}

/// The way of making room in a namespace that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomPolicy {
    /// Refuses what does not fit.
    Refuse,
    /// Removes large results, those that expire first before others, until it fits.
    DropResults,
}

/// The entries of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamespaceIndex {
    pub(super) entries: Vec<MemoryRecord>,
}

impl NamespaceIndex {
    /// Returns the index without expired entries.
    pub(super) fn living(mut self, now: SystemTime) -> Self {
        self.entries.retain(|record| record.expires > millis(now));
        self
    }

    pub(super) fn find(&self, path: &str) -> Option<&MemoryRecord> {
        self.entries.iter().find(|record| record.is_called(path))
    }

    /// Removes an entry from the list.
    pub(super) fn remove(&mut self, path: &str) -> Option<MemoryRecord> {
        let at = self.entries.iter().position(|record| record.is_called(path))?;
        Some(self.entries.remove(at))
    }

    /// Adds entries, replacing those with the same keys, and returns the removed ones. Adds all or none.
    ///
    /// # Errors
    /// Returns an error if a limit of the namespace would be exceeded.
    pub(super) fn admit(
        &mut self,
        namespace: &MemoryNamespace,
        records: &[MemoryRecord],
        limits: &MemorySettings,
        room: RoomPolicy,
    ) -> Result<Vec<MemoryRecord>, MemoryError> {
        let mut removed: Vec<_> = records.iter().filter_map(|record| self.remove(&record.key)).collect();
        while let Err(error) = self.check_room(namespace, records, limits) {
            let dropped = match room {
                RoomPolicy::Refuse => Vec::new(),
                RoomPolicy::DropResults => self.remove_first_result(),
            };
            if dropped.is_empty() {
                return Err(error);
            }
            removed.extend(dropped);
        }
        self.entries.extend_from_slice(records);
        Ok(removed)
    }

    /// Checks that entries fit into the limits of the namespace.
    fn check_room(
        &self,
        namespace: &MemoryNamespace,
        records: &[MemoryRecord],
        limits: &MemorySettings,
    ) -> Result<(), MemoryError> {
        if self.entries.len() + records.len() > limits.entries {
            return Err(MemoryError::TooManyEntries { namespace: namespace.clone(), limit: limits.entries });
        }
        let size = |records: &[MemoryRecord]| records.iter().map(MemoryRecord::size).sum::<usize>();
        let (used, needed, limit) = (size(&self.entries), size(records), limits.bytes);
        if used + needed > limit {
            return Err(MemoryError::TooManyBytes { namespace: namespace.clone(), limit, used, needed });
        }
        Ok(())
    }

    /// Removes the large result that expires first, with all of its chunks.
    fn remove_first_result(&mut self) -> Vec<MemoryRecord> {
        let indexes = self.entries.iter().filter(|record| record.chunks.is_some());
        let Some(index) = indexes.min_by_key(|record| record.expires).cloned() else { return Vec::new() };
        let base = index.result_base();
        let is_part = |record: &MemoryRecord| base.is_some() && record.result_base() == base;
        let (removed, rest) =
            self.entries.drain(..).partition(|record| record.id == index.id || is_part(record));
        self.entries = rest;
        removed
    }

    /// Returns the bytes that the entries of a caller without a key take, with what the list itself needs.
    pub(super) fn size(&self) -> usize {
        charged_size(&self.entries)
    }

    /// Returns the time at which the last entry expires.
    pub(super) fn expires_at(&self) -> Option<SystemTime> {
        self.entries.iter().map(MemoryRecord::expires_at).max()
    }
}

/// Returns the bytes that entries of a caller without a key take, with what their list itself needs.
pub(super) fn charged_size(records: &[MemoryRecord]) -> usize {
    records.iter().map(|record| record.size() + RECORD_SIZE).sum()
}

/// Returns milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
