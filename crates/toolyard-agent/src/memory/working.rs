//! The memory itself, over a store.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::try_join_all;
use toolyard_core::store::{Condition, Kv, Put, Space, StoreError, Trouble};

use super::limits::{MemoryError, MemoryLimits};
use super::namespace::Namespace;
use super::reach::FullKey;
use super::record::{Index, NewEntry, Record, millis};

/// Which entries there are.
const INDEX: Space = Space("working-memory");
/// What they hold.
const VALUES: Space = Space("working-memory-values");

/// How much of a value is kept under one key, in bytes.
const PART: usize = 256 * 1024;
/// How many parts are read at a time, and written.
const PARTS_AT_ONCE: usize = 8;
/// How often a change is tried while others change the same namespace.
const ATTEMPTS: usize = 64;
/// How many namespaces are read at a time, and how often, for one list of several.
const PAGE: usize = 16;
const MOST_PAGES: usize = 64;

/// What tells the time.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What models put aside for a while, in a store.
#[derive(Clone)]
pub struct WorkingMemory {
    store: Arc<dyn Kv>,
    limits: MemoryLimits,
    clock: Clock,
}

/// An index as it was read, and the version to change it by.
struct Read {
    index: Index,
    version: Option<u64>,
}

impl WorkingMemory {
    /// The memory that is kept in a store. Gateways on one store share it.
    #[must_use]
    pub fn new(store: Arc<dyn Kv>, limits: MemoryLimits) -> Self {
        Self { store, limits, clock: Arc::new(SystemTime::now) }
    }

    /// The same by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Its bounds.
    #[must_use]
    pub const fn limits(&self) -> &MemoryLimits {
        &self.limits
    }

    /// The time, as entries are held to it.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Keeps entries of one namespace, in the place of those of the same keys: all or none.
    ///
    /// # Errors
    /// Where they are more than the namespace may hold, or the store does not take them.
    pub async fn save(
        &self,
        namespace: &Namespace,
        entries: &[NewEntry<'_>],
    ) -> Result<Vec<Record>, MemoryError> {
        entries.iter().try_for_each(|entry| entry.check(&self.limits))?;
        let records: Vec<_> = entries.iter().map(|entry| self.record(entry)).collect();
        // Before anything is written, so that what is refused costs nothing. What counts is the look behind it.
        self.read(namespace).await?.index.admit(namespace, &records, &self.limits)?;
        self.make_sure_of_room(&records).await?;
        let admitted = match self.write_values(&records, entries).await {
            Ok(()) => self.change(namespace, |index| index.admit(namespace, &records, &self.limits)).await,
            Err(error) => Err(error.into()),
        };
        let replaced = match admitted {
            Ok(replaced) => replaced,
            Err(error) => {
                self.discard(&records).await;
                return Err(error);
            }
        };
        self.discard(&replaced).await;
        Ok(records)
    }

    /// Makes sure that values have room beside those of all namespaces.
    async fn make_sure_of_room(&self, records: &[Record]) -> Result<(), MemoryError> {
        let limit = self.limits.total_bytes;
        let needed: usize = records.iter().map(|record| record.bytes).sum();
        let held = usize::try_from(self.store.size(VALUES).await?).unwrap_or(usize::MAX);
        match held.saturating_add(needed) <= limit {
            true => Ok(()),
            false => Err(MemoryError::Full { limit }),
        }
    }

    /// The entry of a key, and its value.
    ///
    /// # Errors
    /// Where the store does not give it.
    pub async fn get(&self, key: &FullKey) -> Result<Option<(Record, String)>, MemoryError> {
        let mut missing = None;
        for _ in 0..ATTEMPTS {
            let Read { index, .. } = self.read(&key.namespace).await?;
            let Some(record) = index.find(&key.path) else { return Ok(None) };
            if let Some(value) = self.value(record).await? {
                return Ok(Some((record.clone(), value)));
            }
            // Whoever saved it again meanwhile has removed the value that was listed: there is another one. The same that
            // is missing twice is lost.
            if missing.as_deref() == Some(&*record.id) {
                return Ok(None);
            }
            missing = Some(record.id.clone());
        }
        Err(MemoryError::Contended)
    }

    /// Removes an entry; gives what it was.
    ///
    /// # Errors
    /// Where the store does not do it.
    pub async fn delete(&self, key: &FullKey) -> Result<Option<Record>, MemoryError> {
        if self.read(&key.namespace).await?.index.find(&key.path).is_none() {
            return Ok(None);
        }
        let removed = self.change(&key.namespace, |index| Ok(index.remove(&key.path))).await?;
        self.discard(removed.as_slice()).await;
        Ok(removed)
    }

    /// The entries of a namespace, in the order in which they were saved.
    ///
    /// # Errors
    /// Where the store does not give them.
    pub async fn list(&self, namespace: &Namespace) -> Result<Vec<Record>, MemoryError> {
        Ok(self.read(namespace).await?.index.entries)
    }

    /// The entries of all namespaces that begin with `prefix` and that `reaches` lets through, at most `limit` of them. No more
    /// than the first thousand namespaces are looked at: who knows which one it wants says so.
    ///
    /// # Errors
    /// Where the store does not give them.
    pub async fn list_all(
        &self,
        prefix: &str,
        reaches: impl Fn(&Namespace) -> bool,
        limit: usize,
    ) -> Result<Vec<Record>, MemoryError> {
        let (prefix, mut after, mut found) = (prefix.to_lowercase(), None::<String>, Vec::new());
        for _ in 0..MOST_PAGES {
            let page = self.store.list(INDEX, &prefix, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            for (name, value) in &page {
                if Namespace::named(name).is_some_and(|namespace| reaches(&namespace)) {
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

    /// The value of an entry; `None` where it is not there any more.
    ///
    /// # Errors
    /// Where the store does not give it.
    pub async fn value(&self, record: &Record) -> Result<Option<String>, MemoryError> {
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
        let text = String::from_utf8(bytes).map_err(|error| StoreError::new(Trouble::Unreadable, error))?;
        Ok(Some(text))
    }

    fn record(&self, entry: &NewEntry<'_>) -> Record {
        let now = self.now();
        let ttl = entry.ttl.unwrap_or(self.limits.ttl).min(self.limits.longest_ttl);
        Record {
            key: entry.key.to_owned(),
            id: fresh_id(),
            bytes: entry.value.len(),
            chars: entry.value.chars().count(),
            saved: millis(now),
            expires: millis(now).saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            category: entry.category.map(str::to_owned),
            tags: entry.tags.to_vec(),
            chunks: entry.chunks,
        }
    }

    async fn read(&self, namespace: &Namespace) -> Result<Read, MemoryError> {
        let Some(value) = self.store.get(INDEX, namespace.as_str()).await? else {
            return Ok(Read { index: Index::default(), version: None });
        };
        let index = parse(&value.bytes)?.living(self.now());
        Ok(Read { index, version: Some(value.version) })
    }

    /// Changes an index, whoever else does meanwhile.
    async fn change<T>(
        &self,
        namespace: &Namespace,
        mut change: impl FnMut(&mut Index) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        for _ in 0..ATTEMPTS {
            let Read { mut index, version } = self.read(namespace).await?;
            let changed = change(&mut index)?;
            let condition = version.map_or(Condition::Absent, Condition::Version);
            // A list of nothing is over at once: the store sweeps it.
            let expires = Some(index.expires_at().unwrap_or_else(|| self.now()));
            let bytes = serde_json::to_vec(&index)
                .map_err(|error| StoreError::new(Trouble::Unreadable, error))?
                .into();
            let put = Put { bytes, condition, expires };
            if self.store.put(INDEX, namespace.as_str(), put).await?.is_some() {
                return Ok(changed);
            }
        }
        Err(MemoryError::Contended)
    }

    /// Writes values, some parts at a time.
    async fn write_values(&self, records: &[Record], entries: &[NewEntry<'_>]) -> Result<(), StoreError> {
        let mut parts = Vec::new();
        for (record, entry) in records.iter().zip(entries) {
            let numbered = (0..).zip(parts_of(entry.value));
            parts.extend(numbered.map(|(number, bytes)| Part { record, number, bytes }));
        }
        for parts in parts.chunks(PARTS_AT_ONCE) {
            try_join_all(parts.iter().map(|part| self.write_part(part))).await?;
        }
        Ok(())
    }

    async fn write_part(&self, part: &Part<'_>) -> Result<(), StoreError> {
        let expires = Some(part.record.expires_at());
        let put = Put { expires, ..Put::always(Bytes::copy_from_slice(part.bytes)) };
        self.store.put(VALUES, &part_key(part.record, part.number), put).await.map(drop)
    }

    /// Removes values that nobody finds any more. What is not removed now expires.
    async fn discard(&self, records: &[Record]) {
        let mut names = Vec::new();
        for record in records {
            let count = record.bytes.div_ceil(PART).max(1);
            names.extend((0..count).map(|number| part_key(record, number)));
        }
        for names in names.chunks(PARTS_AT_ONCE) {
            let deleted = try_join_all(names.iter().map(|name| self.store.delete(VALUES, name))).await;
            if let Err(error) = deleted {
                let error = &error as &dyn std::error::Error;
                return tracing::debug!(error, "values of working memory stay until they expire");
            }
        }
    }
}

/// A part of a value that is to be written.
struct Part<'a> {
    record: &'a Record,
    number: usize,
    bytes: &'a [u8],
}

/// Shows the bounds, and nothing that anybody keeps.
impl fmt::Debug for WorkingMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkingMemory").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A value in parts; one that is empty has one.
fn parts_of(value: &str) -> impl Iterator<Item = &[u8]> {
    let empty = value.is_empty().then_some(&[][..]);
    empty.into_iter().chain(value.as_bytes().chunks(PART))
}

/// Keys are ordered as their parts are.
fn part_key(record: &Record, number: usize) -> String {
    format!("{}/{number:06}", record.id)
}

fn parse(bytes: &[u8]) -> Result<Index, MemoryError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::new(Trouble::Unreadable, error).into())
}

/// An id that no other value has.
fn fresh_id() -> String {
    random_hex::<16>()
}

/// Random bytes, in hexadecimal.
pub(crate) fn random_hex<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    // Without random numbers there is no TLS and no key either: the system does not run at all then.
    let _unlikely = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::with_capacity(BYTES * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// How long something lives, for people: `4m59s`. It is rounded, so that a time that has just begun is told as it was said.
pub(crate) fn shown_time(time: Duration) -> String {
    let seconds = time.saturating_add(Duration::from_millis(500)).as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
