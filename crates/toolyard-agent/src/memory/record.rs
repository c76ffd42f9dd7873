//! What is known of an entry, and the list of those of a namespace.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::limits::{MemoryError, MemoryLimits};
use super::namespace::Namespace;

/// How long a category or a tag may be, in bytes, and how many tags there may be.
const LONGEST_LABEL: usize = 128;
const MOST_TAGS: usize = 16;

/// Something that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// Its whole path.
    pub key: &'a str,
    /// What is kept.
    pub value: &'a str,
    /// What kind of thing it is, such as `tool-result`.
    pub category: Option<&'a str>,
    /// What else it can be found by.
    pub tags: &'a [String],
    /// How long it lives; `None` for as long as entries do by default.
    pub ttl: Option<Duration>,
    /// For the index of a large result: how many chunks that has.
    pub chunks: Option<usize>,
}

impl<'a> NewEntry<'a> {
    /// An entry of which there is nothing else to say.
    #[must_use]
    pub const fn new(key: &'a str, value: &'a str) -> Self {
        Self { key, value, category: None, tags: &[], ttl: None, chunks: None }
    }

    pub(super) fn check(&self, limits: &MemoryLimits) -> Result<(), MemoryError> {
        if self.value.len() > limits.value_bytes {
            return Err(MemoryError::TooLong { bytes: self.value.len(), limit: limits.value_bytes });
        }
        let is_label = |text: &str| text.len() <= LONGEST_LABEL && !text.contains(char::is_control);
        if !self.category.is_none_or(is_label) || !self.tags.iter().all(|tag| is_label(tag)) {
            return Err(MemoryError::BadKey("category and tags: each is one line of 128 bytes at most"));
        }
        match self.tags.len() <= MOST_TAGS {
            true => Ok(()),
            false => Err(MemoryError::BadKey("tags: are more than 16")),
        }
    }
}

/// What is known of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its whole path, as it was written.
    pub key: String,
    /// Where its value is.
    pub(super) id: String,
    /// Of its value.
    pub bytes: usize,
    /// Of its value.
    pub chars: usize,
    /// When it was saved, in milliseconds since 1970.
    pub saved: u64,
    /// From when on it is not there any more.
    pub(super) expires: u64,
    /// What kind of thing it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What else it can be found by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// For the index of a large result: how many chunks that has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<usize>,
}

impl Record {
    /// How long it lives from `now` on.
    #[must_use]
    pub fn left(&self, now: SystemTime) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(millis(now)))
    }

    /// Whether it is of this category, or of one below it.
    #[must_use]
    pub fn is_of(&self, category: &str) -> bool {
        let own = self.category.as_deref().unwrap_or_default().to_lowercase();
        let rest = own.strip_prefix(&category.to_lowercase());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether it has this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase())
    }

    pub(super) fn expires_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.expires)
    }

    /// What it takes of its namespace.
    fn size(&self) -> usize {
        let labels = self.category.iter().chain(&self.tags).map(String::len).sum::<usize>();
        self.bytes + self.key.len() + labels
    }

    fn is_called(&self, path: &str) -> bool {
        self.key == path || self.key.to_lowercase() == path.to_lowercase()
    }
}

/// The entries of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) entries: Vec<Record>,
}

impl Index {
    /// Leaves out what has expired.
    pub(super) fn living(mut self, now: SystemTime) -> Self {
        self.entries.retain(|record| record.expires > millis(now));
        self
    }

    pub(super) fn find(&self, path: &str) -> Option<&Record> {
        self.entries.iter().find(|record| record.is_called(path))
    }

    /// Takes an entry off the list.
    pub(super) fn remove(&mut self, path: &str) -> Option<Record> {
        let at = self.entries.iter().position(|record| record.is_called(path))?;
        Some(self.entries.remove(at))
    }

    /// Puts entries on the list, in the place of those of the same keys, which it gives. All or none.
    ///
    /// # Errors
    /// Where there would be more than there may be.
    pub(super) fn admit(
        &mut self,
        namespace: &Namespace,
        records: &[Record],
        limits: &MemoryLimits,
    ) -> Result<Vec<Record>, MemoryError> {
        let replaced: Vec<_> = records.iter().filter_map(|record| self.remove(&record.key)).collect();
        if self.entries.len() + records.len() > limits.entries {
            return Err(MemoryError::TooManyEntries { namespace: namespace.clone(), limit: limits.entries });
        }
        let size = |records: &[Record]| records.iter().map(Record::size).sum::<usize>();
        let (held, needed, limit) = (size(&self.entries), size(records), limits.bytes);
        if held + needed > limit {
            return Err(MemoryError::TooManyBytes { namespace: namespace.clone(), limit, held, needed });
        }
        self.entries.extend_from_slice(records);
        Ok(replaced)
    }

    /// When the last of them has expired.
    pub(super) fn expires_at(&self) -> Option<SystemTime> {
        self.entries.iter().map(Record::expires_at).max()
    }
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
