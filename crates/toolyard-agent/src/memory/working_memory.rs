//! Working memory on top of a key-value store.

mod backoff;
mod ledger;
mod overview;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use toolyard_core::random::{hex, random_bytes};
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, WriteCondition};
use toolyard_manifest::MemorySettings;

use self::backoff::backoff;
pub use self::overview::{MemoryOverview, NamespaceSummary};
use super::access::{FullKey, MemoryAccess};
use super::error::MemoryError;
use super::keyless_ledger::KeylessClaim;
use super::namespace::{MemoryCaller, MemoryNamespace};
use super::record::{MemoryRecord, NamespaceIndex, NewEntry, RoomPolicy, charged_size, millis};
use super::session_ids::SessionIds;

/// Key spaces of the lists of entries and of their values.
struct MemorySpaces {
    index: KeySpace,
    values: KeySpace,
}

/// Namespaces of keys, of users of this machine, and of whatever else is not a caller without a key.
const OWNED: MemorySpaces =
    MemorySpaces { index: KeySpace("working-memory"), values: KeySpace("working-memory-values") };
/// Namespaces of callers without a key.
const KEYLESS: MemorySpaces = MemorySpaces {
    index: KeySpace("working-memory-keyless"),
    values: KeySpace("working-memory-keyless-values"),
};

/// Maximum size in bytes of a part of a value, which is stored under one key.
const PART: usize = 256 * 1024;
/// Maximum number of parts that are read or written concurrently.
pub(super) const PARTS_AT_ONCE: usize = 8;
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
    /// Seals ids once one is needed.
    ids: Arc<OnceCell<Arc<SessionIds>>>,
}

/// An index, and its version in the store.
struct NamespaceSnapshot {
    index: NamespaceIndex,
    version: Option<u64>,
    /// Size of all entries, also of expired ones, for the ledger.
    stored_size: usize,
}

/// Sizes of a namespace before and after a change.
struct SizeChange {
    before: usize,
    after: usize,
}

impl WorkingMemory {
    /// Returns the memory of a store. Gateways on one store share it.
    #[must_use]
    pub fn new(store: Arc<dyn KeyValueStore>, limits: MemorySettings) -> Self {
        Self { store, limits, clock: Arc::new(SystemTime::now), ids: Arc::default() }
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

    /// Returns the ids of all gateways on this store.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn ids(&self) -> Result<Arc<SessionIds>, StoreError> {
        let ids = self.ids.get_or_try_init(async || SessionIds::of_store(&*self.store).await.map(Arc::new));
        ids.await.cloned()
    }

    /// Returns the access of a caller.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn access(&self, caller: MemoryCaller) -> Result<MemoryAccess, StoreError> {
        Ok(MemoryAccess::new(caller, self.ids().await?, self.now(), self.limits.shared))
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
        self.save_with("", namespace, entries, RoomPolicy::Refuse).await
    }

    /// Saves entries as [`WorkingMemory::save`] does, and makes room for them by the policy if the namespace is full. The
    /// address is that of the caller, if it has no key.
    ///
    /// # Errors
    /// Returns an error if a limit would be exceeded nevertheless or the store fails.
    pub async fn save_with(
        &self,
        address: &str,
        namespace: &MemoryNamespace,
        entries: &[NewEntry<'_>],
        room: RoomPolicy,
    ) -> Result<Vec<MemoryRecord>, MemoryError> {
        entries.iter().try_for_each(|entry| entry.check(&self.limits))?;
        let records: Vec<_> = entries.iter().map(|entry| self.record(entry)).collect::<Result<_, _>>()?;
        // An early check, so that refused entries cost no write. The check that counts is made when the index changes.
        let removed = self.read(namespace).await?.index.admit(namespace, &records, &self.limits, room)?;
        let claimed = match namespace.is_keyless() {
            true => {
                let bytes = charged_size(&records).saturating_sub(charged_size(&removed));
                let expires = records.iter().map(|record| record.expires).max().unwrap_or_default();
                self.claim_keyless(KeylessClaim { namespace, address, bytes, expires }).await?;
                bytes
            }
            false => self.check_capacity(&records).await.map(|()| 0)?,
        };
        let admitted = match self.write_values(&records, entries).await {
            Ok(()) => {
                self.change(namespace, |index| index.admit(namespace, &records, &self.limits, room)).await
            }
            Err(error) => Err(error.into()),
        };
        let (removed, sizes) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                self.discard(&records).await;
                self.settle_keyless(namespace, claimed, SizeChange { before: 0, after: 0 }).await;
                return Err(error);
            }
        };
        self.discard(&removed).await;
        self.settle_keyless(namespace, claimed, sizes).await;
        Ok(records)
    }

    /// Checks that values fit into the limit of all namespaces, without the part of callers without a key.
    async fn check_capacity(&self, records: &[MemoryRecord]) -> Result<(), MemoryError> {
        let limit = self.limits.total_bytes - self.limits.keyless_bytes();
        let needed: usize = records.iter().map(|record| record.bytes).sum();
        let used = usize::try_from(self.store.size(OWNED.values).await?).unwrap_or(usize::MAX);
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

    /// Returns the entries of several keys of one namespace; `None` for those that it does not have.
    pub(super) async fn find_all(
        &self,
        namespace: &MemoryNamespace,
        paths: impl Iterator<Item = String>,
    ) -> Result<Vec<Option<MemoryRecord>>, MemoryError> {
        let entries = self.read(namespace).await?.index.entries;
        let mut by_path: HashMap<_, _> =
            entries.into_iter().map(|record| (record.key.to_lowercase(), record)).collect();
        Ok(paths.map(|path| by_path.remove(&path.to_lowercase())).collect())
    }

    /// Returns the stored texts of entries, several of which are read at a time; `None` for those that are gone.
    pub(super) async fn stored_texts(
        &self,
        records: &[MemoryRecord],
    ) -> Result<Vec<Option<String>>, MemoryError> {
        let mut texts = Vec::with_capacity(records.len());
        for records in records.chunks(PARTS_AT_ONCE) {
            texts.extend(try_join_all(records.iter().map(|record| self.stored(record))).await?);
        }
        Ok(texts)
    }

    /// Returns the values of at most [`PARTS_AT_ONCE`] entries; `None` for those that are gone.
    pub(super) async fn values(&self, records: &[MemoryRecord]) -> Result<Vec<Option<String>>, MemoryError> {
        try_join_all(records.iter().map(|record| self.value(record))).await
    }

    /// Deletes an entry and returns it.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn delete(&self, key: &FullKey) -> Result<Option<MemoryRecord>, MemoryError> {
        if self.read(&key.namespace).await?.index.find(&key.path).is_none() {
            return Ok(None);
        }
        let (removed, sizes) = self.change(&key.namespace, |index| Ok(index.remove(&key.path))).await?;
        self.discard(removed.as_slice()).await;
        self.settle_keyless(&key.namespace, 0, sizes).await;
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
        let (prefix, mut found) = (prefix.to_lowercase(), Vec::new());
        for spaces in [OWNED, KEYLESS] {
            let mut after = None::<String>;
            for _ in 0..MAX_PAGES {
                let page = self.store.list(spaces.index, &prefix, after.as_deref(), PAGE).await?;
                let is_last = page.len() < PAGE;
                for (name, value) in &page {
                    if MemoryNamespace::from_text(name).is_some_and(|namespace| reaches(&namespace)) {
                        found.extend(parse::<NamespaceIndex>(&value.bytes)?.living(self.now()).entries);
                    }
                }
                after = page.into_iter().next_back().map(|(name, _)| name);
                if is_last || found.len() >= limit {
                    break;
                }
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
            let page = self.store.list(values_of(record), &prefix, after.as_deref(), PARTS_AT_ONCE).await?;
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

    fn record(&self, entry: &NewEntry<'_>) -> Result<MemoryRecord, StoreError> {
        let now = self.now();
        let ttl = entry.ttl.unwrap_or(self.limits.ttl).min(self.limits.longest_ttl);
        Ok(MemoryRecord {
            key: entry.key.to_owned(),
            id: fresh_id()?,
            bytes: entry.value.len(),
            chars: entry.chars(),
            saved: millis(now),
            expires: millis(now).saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            category: entry.category.map(str::to_owned),
            tags: entry.tags.to_vec(),
            chunks: entry.chunks,
            place: entry.place,
        })
    }

    async fn read(&self, namespace: &MemoryNamespace) -> Result<NamespaceSnapshot, MemoryError> {
        let Some(value) = self.store.get(spaces_of(namespace).index, namespace.as_str()).await? else {
            return Ok(NamespaceSnapshot { index: NamespaceIndex::default(), version: None, stored_size: 0 });
        };
        let index: NamespaceIndex = parse(&value.bytes)?;
        let stored_size = index.size();
        Ok(NamespaceSnapshot { index: index.living(self.now()), version: Some(value.version), stored_size })
    }

    /// Changes an index, and tries again if others change it concurrently. Also returns its sizes.
    async fn change<T>(
        &self,
        namespace: &MemoryNamespace,
        mut change: impl FnMut(&mut NamespaceIndex) -> Result<T, MemoryError>,
    ) -> Result<(T, SizeChange), MemoryError> {
        for attempt in 0..ATTEMPTS {
            let NamespaceSnapshot { mut index, version, stored_size } = self.read(namespace).await?;
            let changed = change(&mut index)?;
            let condition = version.map_or(WriteCondition::Absent, WriteCondition::Version);
            // An empty list expires at once, so that the store removes it.
            let expires = Some(index.expires_at().unwrap_or_else(|| self.now()));
            let put = PutRequest { bytes: to_bytes(&index)?, condition, expires };
            if self.store.put(spaces_of(namespace).index, namespace.as_str(), put).await?.is_some() {
                return Ok((changed, SizeChange { before: stored_size, after: index.size() }));
            }
            backoff(attempt).await;
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
        self.store.put(values_of(part.record), &part_key(part.record, part.number), put).await.map(drop)
    }

    /// Deletes values that no entry refers to. Values that cannot be deleted expire.
    async fn discard(&self, records: &[MemoryRecord]) {
        let mut names = Vec::new();
        for record in records {
            let count = record.bytes.div_ceil(PART).max(1);
            names.extend((0..count).map(|number| (values_of(record), part_key(record, number))));
        }
        for names in names.chunks(PARTS_AT_ONCE) {
            let deleted =
                try_join_all(names.iter().map(|(space, name)| self.store.delete(*space, name))).await;
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

const fn spaces_if(is_keyless: bool) -> MemorySpaces {
    if is_keyless { KEYLESS } else { OWNED }
}

fn spaces_of(namespace: &MemoryNamespace) -> MemorySpaces {
    spaces_if(namespace.is_keyless())
}

/// Returns the key space of the values of an entry.
fn values_of(record: &MemoryRecord) -> KeySpace {
    spaces_if(MemoryNamespace::of_path(&record.key).is_some_and(|(namespace, _)| namespace.is_keyless()))
        .values
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MemoryError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error).into())
}

fn to_bytes(value: &impl Serialize) -> Result<Bytes, MemoryError> {
    let bytes =
        serde_json::to_vec(value).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
    Ok(bytes.into())
}

/// Returns an id that no other value has.
fn fresh_id() -> Result<String, StoreError> {
    random_hex::<16>()
}

/// Returns random bytes in hexadecimal.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, StoreError> {
    let bytes = random_bytes::<BYTES>();
    bytes.map(|bytes| hex(&bytes)).map_err(|error| StoreError::new(StoreErrorKind::Unavailable, error))
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
