//! Working memory on top of a key-value store.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::try_join_all;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, WriteCondition};
use toolyard_manifest::MemorySettings;

use super::access::FullKey;
use super::error::MemoryError;
use super::namespace::MemoryNamespace;
use super::record::{MemoryRecord, NamespaceIndex, NewEntry, RoomPolicy, millis};

/// Key space of the lists of entries.
const INDEX: KeySpace = KeySpace("working-memory");
/// Key space of their values.
const VALUES: KeySpace = KeySpace("working-memory-values");

/// Maximum size in bytes of a part of a value, which is stored under one key.
const PART: usize = 256 * 1024;
/// Maximum number of parts that are read or written concurrently.
const PARTS_AT_ONCE: usize = 8;
/// Maximum number of attempts to change a namespace that others change concurrently.
const ATTEMPTS: usize = 64;
/// Number of namespaces that are read at a time for a list of several, and maximum number of such reads.
const PAGE: usize = 16;
const MAX_PAGES: usize = 64;

/// A source of the current time.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The working memory of models, in a store.
#[derive(Clone)]
pub struct WorkingMemory {
    store: Arc<dyn KeyValueStore>,
    limits: MemorySettings,
    clock: WallClock,
}

/// An index, and its version in the store.
struct NamespaceSnapshot {
    index: NamespaceIndex,
    version: Option<u64>,
}

impl WorkingMemory {
    /// Returns the memory of a store. Gateways on one store share it.
    #[must_use]
    pub fn new(store: Arc<dyn KeyValueStore>, limits: MemorySettings) -> Self {
        Self { store, limits, clock: Arc::new(SystemTime::now) }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: WallClock) -> Self {
        Self { clock, ..self }
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &MemorySettings {
        &self.limits
    }

    /// Returns the current time of the clock.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Saves entries of one namespace, replacing those with the same keys. Saves all or none.
    ///
    /// # Errors
    /// Returns an error if a limit would be exceeded or the store fails.
    pub async fn save(
        &self,
        namespace: &MemoryNamespace,
        entries: &[NewEntry<'_>],
    ) -> Result<Vec<MemoryRecord>, MemoryError> {
        self.save_with(namespace, entries, RoomPolicy::Refuse).await
    }

    /// Saves entries as [`WorkingMemory::save`] does, and makes room for them if the namespace is full.
    ///
    /// # Errors
    /// Returns an error if a limit would be exceeded nevertheless or the store fails.
    pub async fn save_with(
        &self,
        namespace: &MemoryNamespace,
        entries: &[NewEntry<'_>],
        room: RoomPolicy,
    ) -> Result<Vec<MemoryRecord>, MemoryError> {
        entries.iter().try_for_each(|entry| entry.check(&self.limits))?;
        let records: Vec<_> = entries.iter().map(|entry| self.record(entry)).collect();
        // An early check, so that refused entries cost no write. The check that counts is made when the index changes.
        self.read(namespace).await?.index.admit(namespace, &records, &self.limits, room)?;
        self.check_capacity(&records).await?;
        let admitted = match self.write_values(&records, entries).await {
            Ok(()) => {
                self.change(namespace, |index| index.admit(namespace, &records, &self.limits, room)).await
            }
            Err(error) => Err(error.into()),
        };
        let removed = match admitted {
            Ok(removed) => removed,
            Err(error) => {
                self.discard(&records).await;
                return Err(error);
            }
        };
        self.discard(&removed).await;
        Ok(records)
    }

    /// Checks that values fit into the limit of all namespaces.
    async fn check_capacity(&self, records: &[MemoryRecord]) -> Result<(), MemoryError> {
        let limit = self.limits.total_bytes;
        let needed: usize = records.iter().map(|record| record.bytes).sum();
        let used = usize::try_from(self.store.size(VALUES).await?).unwrap_or(usize::MAX);
        match used.saturating_add(needed) <= limit {
            true => Ok(()),
            false => Err(MemoryError::Full { limit }),
        }
    }

    /// Returns the entry of a key, and its value.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn get(&self, key: &FullKey) -> Result<Option<(MemoryRecord, String)>, MemoryError> {
        let stored = self.get_stored(key).await?;
        Ok(stored.map(|(record, stored)| {
            let value = record.value_in(stored);
            (record, value)
        }))
    }

    /// Returns the entry of a key, and its value with the text that is stored around a chunk.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn get_stored(&self, key: &FullKey) -> Result<Option<(MemoryRecord, String)>, MemoryError> {
        let mut missing = None;
        for _ in 0..ATTEMPTS {
            let NamespaceSnapshot { index, .. } = self.read(&key.namespace).await?;
            let Some(record) = index.find(&key.path) else { return Ok(None) };
            if let Some(stored) = self.stored(record).await? {
                return Ok(Some((record.clone(), stored)));
            }
            // A concurrent save has replaced the entry and removed its old value, so read the index again. If the same
            // value is missing twice, it is lost.
            if missing.as_deref() == Some(&*record.id) {
                return Ok(None);
            }
            missing = Some(record.id.clone());
        }
        Err(MemoryError::Contended)
    }

    /// Deletes an entry and returns it.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn delete(&self, key: &FullKey) -> Result<Option<MemoryRecord>, MemoryError> {
        if self.read(&key.namespace).await?.index.find(&key.path).is_none() {
            return Ok(None);
        }
        let removed = self.change(&key.namespace, |index| Ok(index.remove(&key.path))).await?;
        self.discard(removed.as_slice()).await;
        Ok(removed)
    }

    /// Returns the entries of a namespace, in the order of saving.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn list(&self, namespace: &MemoryNamespace) -> Result<Vec<MemoryRecord>, MemoryError> {
        Ok(self.read(namespace).await?.index.entries)
    }

    /// Returns at most `limit` entries of the namespaces that begin with `prefix` and that `reaches` accepts. Only the
    /// first thousand or so namespaces are examined; a caller can name its namespace instead.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn list_all(
        &self,
        prefix: &str,
        reaches: impl Fn(&MemoryNamespace) -> bool,
        limit: usize,
    ) -> Result<Vec<MemoryRecord>, MemoryError> {
        let (prefix, mut after, mut found) = (prefix.to_lowercase(), None::<String>, Vec::new());
        for _ in 0..MAX_PAGES {
            let page = self.store.list(INDEX, &prefix, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for (name, value) in &page {
                if MemoryNamespace::from_text(name).is_some_and(|namespace| reaches(&namespace)) {
                    found.extend(parse(&value.bytes)?.living(self.now()).entries);
                }
            }
            after = page.into_iter().next_back().map(|(name, _)| name);
            if is_last || found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the value of an entry; `None` if it is gone.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn value(&self, record: &MemoryRecord) -> Result<Option<String>, MemoryError> {
        Ok(self.stored(record).await?.map(|stored| record.value_in(stored)))
    }

    /// Returns the stored text of an entry; `None` if it is gone.
    async fn stored(&self, record: &MemoryRecord) -> Result<Option<String>, MemoryError> {
        let mut bytes = Vec::with_capacity(record.bytes);
        let (prefix, mut after) = (format!("{}/", record.id), None::<String>);
        loop {
            let page = self.store.list(VALUES, &prefix, after.as_deref(), PARTS_AT_ONCE).await?;
            let is_last = page.len() < PARTS_AT_ONCE;
            for (name, value) in page {
                bytes.extend_from_slice(&value.bytes);
                after = Some(name);
            }
            if is_last {
                break;
            }
        }
        if bytes.len() != record.bytes || after.is_none() {
            return Ok(None);
        }
        let text =
            String::from_utf8(bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        Ok(Some(text))
    }

    fn record(&self, entry: &NewEntry<'_>) -> MemoryRecord {
        let now = self.now();
        let ttl = entry.ttl.unwrap_or(self.limits.ttl).min(self.limits.longest_ttl);
        MemoryRecord {
            key: entry.key.to_owned(),
            id: fresh_id(),
            bytes: entry.value.len(),
            chars: entry.chars(),
            saved: millis(now),
            expires: millis(now).saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            category: entry.category.map(str::to_owned),
            tags: entry.tags.to_vec(),
            chunks: entry.chunks,
            place: entry.place,
        }
    }

    async fn read(&self, namespace: &MemoryNamespace) -> Result<NamespaceSnapshot, MemoryError> {
        let Some(value) = self.store.get(INDEX, namespace.as_str()).await? else {
            return Ok(NamespaceSnapshot { index: NamespaceIndex::default(), version: None });
        };
        let index = parse(&value.bytes)?.living(self.now());
        Ok(NamespaceSnapshot { index, version: Some(value.version) })
    }

    /// Changes an index, and tries again if others change it concurrently.
    async fn change<T>(
        &self,
        namespace: &MemoryNamespace,
        mut change: impl FnMut(&mut NamespaceIndex) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        for _ in 0..ATTEMPTS {
            let NamespaceSnapshot { mut index, version } = self.read(namespace).await?;
            let changed = change(&mut index)?;
            let condition = version.map_or(WriteCondition::Absent, WriteCondition::Version);
            // An empty list expires at once, so that the store removes it.
            let expires = Some(index.expires_at().unwrap_or_else(|| self.now()));
            let bytes = serde_json::to_vec(&index)
                .map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?
                .into();
            let put = PutRequest { bytes, condition, expires };
            if self.store.put(INDEX, namespace.as_str(), put).await?.is_some() {
                return Ok(changed);
            }
        }
        Err(MemoryError::Contended)
    }

    /// Writes values, several parts at a time.
    async fn write_values(
        &self,
        records: &[MemoryRecord],
        entries: &[NewEntry<'_>],
    ) -> Result<(), StoreError> {
        let mut parts = Vec::new();
        for (record, entry) in records.iter().zip(entries) {
            let numbered = (0..).zip(parts_of(entry.value));
            parts.extend(numbered.map(|(number, bytes)| ValuePart { record, number, bytes }));
        }
        for parts in parts.chunks(PARTS_AT_ONCE) {
            try_join_all(parts.iter().map(|part| self.write_part(part))).await?;
        }
        Ok(())
    }

    async fn write_part(&self, part: &ValuePart<'_>) -> Result<(), StoreError> {
        let expires = Some(part.record.expires_at());
        let put = PutRequest { expires, ..PutRequest::always(Bytes::copy_from_slice(part.bytes)) };
        self.store.put(VALUES, &part_key(part.record, part.number), put).await.map(drop)
    }

    /// Deletes values that no entry refers to. Values that cannot be deleted expire.
    async fn discard(&self, records: &[MemoryRecord]) {
        let mut names = Vec::new();
        for record in records {
            let count = record.bytes.div_ceil(PART).max(1);
            names.extend((0..count).map(|number| part_key(record, number)));
        }
        for names in names.chunks(PARTS_AT_ONCE) {
            let deleted = try_join_all(names.iter().map(|name| self.store.delete(VALUES, name))).await;
            if let Err(error) = deleted {
                let error = &error as &dyn std::error::Error;
                return tracing::debug!(
                    error,
                    "failed to delete values of working memory, which expire later"
                );
            }
        }
    }
}

/// A part of a value to write.
struct ValuePart<'a> {
    record: &'a MemoryRecord,
    number: usize,
    bytes: &'a [u8],
}

/// Shows the limits, without any entries.
impl fmt::Debug for WorkingMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkingMemory").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Splits a value into parts. An empty value has one part.
fn parts_of(value: &str) -> impl Iterator<Item = &[u8]> {
    let empty = value.is_empty().then_some(&[][..]);
    empty.into_iter().chain(value.as_bytes().chunks(PART))
}

/// Returns the key of a part. Keys sort in the order of the parts.
fn part_key(record: &MemoryRecord, number: usize) -> String {
    format!("{}/{number:06}", record.id)
}

fn parse(bytes: &[u8]) -> Result<NamespaceIndex, MemoryError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error).into())
}

/// Returns an id that no other value has.
fn fresh_id() -> String {
    random_hex::<16>()
}

/// Returns random bytes in hexadecimal.
pub(crate) fn random_hex<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    // A system without random numbers supports neither TLS nor keys, so the gateway would not run at all.
    let _unlikely = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::with_capacity(BYTES * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Formats a time to live for people, such as `4m59s`. Rounds to seconds, so that a time that has just begun is
/// unchanged.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.saturating_add(Duration::from_millis(500)).as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
