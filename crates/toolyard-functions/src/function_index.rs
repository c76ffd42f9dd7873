//! Index of the functions of a store, which a running gateway keeps in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError, WriteCondition};

use crate::error::FunctionError;
use crate::loaded_version::VersionSlot;
use crate::record::{FunctionRecord, RecordError, StoredContent};
use crate::version::{FunctionVersion, VersionSelector};

/// Space of the records, by function id.
pub(crate) const FUNCTIONS: KeySpace = KeySpace("functions");

/// Space of the highest published number of each id. It outlives the function, so that numbers are not reused.
pub(crate) const LAST_NUMBERS: KeySpace = KeySpace("function-numbers");

/// Number of records read at a time.
const PAGE_SIZE: usize = 500;

/// Minimum interval of reads for unknown functions.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(100);

/// All functions at one revision of the store.
#[derive(Default)]
pub(crate) struct IndexSnapshot {
    /// Revision of the store; `None` before the first successful read.
    revision: Option<u64>,
    functions: BTreeMap<String, Arc<IndexedFunction>>,
}

/// A function and its version slots.
pub(crate) struct IndexedFunction {
    pub(crate) id: Arc<str>,
    pub(crate) record: Result<FunctionRecord, RecordError>,
    draft: Option<Arc<VersionSlot>>,
    versions: BTreeMap<FunctionVersion, Arc<VersionSlot>>,
}

/// Index of the functions, updated from the store.
pub(crate) struct FunctionIndex {
    store: Arc<dyn Store>,
    known: watch::Sender<Arc<IndexSnapshot>>,
    /// Allows one reader at a time, so that an older state never replaces a newer one.
    reading: Semaphore,
    /// Start of the last successful read: it may lack later changes.
    read_at: Mutex<Option<Instant>>,
}

/// Lists all records in the order of their ids.
pub(crate) async fn list(
    store: &dyn Store,
) -> Result<Vec<(String, Result<FunctionRecord, RecordError>)>, StoreError> {
    let mut records = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(FUNCTIONS, "", last.as_deref(), PAGE_SIZE).await?;
        let is_last = page.len() < PAGE_SIZE;
        last = page.last().map(|(id, _)| id.clone());
        records.extend(page.into_iter().map(|(id, value)| (id, FunctionRecord::read(&value.bytes))));
        if is_last {
            return Ok(records);
        }
    }
}

impl FunctionIndex {
    /// Creates an empty index.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let snapshots = watch::Sender::new(Arc::default());
        Self { store, known: snapshots, reading: Semaphore::new(1), read_at: Mutex::default() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn snapshot(&self) -> Arc<IndexSnapshot> {
        self.known.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Arc<IndexSnapshot>> {
        self.known.subscribe()
    }

    /// Reads the functions if the revision of the store has changed.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        // The semaphore is never closed.
        let _turn = self.reading.acquire().await;
        let began_at = Instant::now();
        // Read first: later changes have a new revision.
        let revision = self.store.revision(FUNCTIONS).await?;
        if self.known.borrow().revision != Some(revision) {
            let records = list(&*self.store).await?;
            let before = self.snapshot();
            self.known.send_replace(Arc::new(IndexSnapshot::new(revision, records, &before)));
        }
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began_at);
        Ok(())
    }

    /// Reads the functions for a lookup that failed: the index may be out of date.
    pub(crate) async fn refresh_if_stale(&self) -> Result<(), StoreError> {
        let called_at = Instant::now();
        let last_read_at = *self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = last_read_at {
            sleep_until(at + MIN_READ_INTERVAL).await;
        }
        // Another caller may have begun to read them meanwhile.
        let last_read_at = *self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if last_read_at.is_some_and(|at| at > called_at) {
            return Ok(());
        }
        self.refresh().await
    }

    /// Follows changes by other processes while it is polled, with this interval.
    pub(crate) async fn follow(&self, every: Duration) {
        let mut is_well = true;
        loop {
            let outcome = self.refresh().await;
            if let (Err(error), true) = (&outcome, is_well) {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "cannot read the functions: the known ones remain available");
            }
            is_well = outcome.is_ok();
            sleep(every).await;
        }
    }

    /// Reads the current record of a function.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<(FunctionRecord, u64)>, FunctionError> {
        let Some(value) = self.store.get(FUNCTIONS, id).await? else { return Ok(None) };
        let record = FunctionRecord::read(&value.bytes).map_err(|why| unreadable(id, &why))?;
        Ok(Some((record, value.version)))
    }

    /// Replaces the record that was read; returns false if it has changed meanwhile.
    pub(crate) async fn put(
        &self,
        id: &str,
        record: &FunctionRecord,
        read: Option<u64>,
    ) -> Result<bool, FunctionError> {
        let condition = read.map_or(WriteCondition::Absent, WriteCondition::Version);
        let put = PutRequest { condition, ..PutRequest::always(record.to_bytes()) };
        Ok(self.store.put(FUNCTIONS, id, put).await?.is_some())
    }

    /// Returns the highest number published under an id, including deleted functions.
    pub(crate) async fn last_number(&self, id: &str) -> Result<Option<FunctionVersion>, FunctionError> {
        let stored = self.store.get(LAST_NUMBERS, id).await?;
        let Some(stored) = stored else { return Ok(None) };
        let number = std::str::from_utf8(&stored.bytes).ok().and_then(|text| text.parse().ok());
        let damaged = || unreadable(id, &RecordError::Damaged("its last number is invalid".to_owned()));
        number.map(Some).ok_or_else(damaged)
    }

    /// Records a number as the highest, unless a higher one is recorded. Must precede publication.
    pub(crate) async fn record_number(&self, id: &str, number: FunctionVersion) -> Result<(), FunctionError> {
        loop {
            let stored = self.store.get(LAST_NUMBERS, id).await?;
            let before = stored.as_ref().and_then(|stored| std::str::from_utf8(&stored.bytes).ok());
            if before
                .and_then(|text| text.parse::<FunctionVersion>().ok())
                .is_some_and(|before| before >= number)
            {
                return Ok(());
            }
            let condition = stored
                .as_ref()
                .map_or(WriteCondition::Absent, |stored| WriteCondition::Version(stored.version));
            let put = PutRequest { condition, ..PutRequest::always(number.to_string()) };
            if self.store.put(LAST_NUMBERS, id, put).await?.is_some() {
                return Ok(());
            }
        }
    }

    pub(crate) async fn remove(&self, id: &str) -> Result<bool, FunctionError> {
        Ok(self.store.delete(FUNCTIONS, id).await?)
    }
}

pub(crate) fn unreadable(id: &str, why: &RecordError) -> FunctionError {
    FunctionError::Unreadable { id: id.to_owned(), why: why.to_string() }
}

impl IndexSnapshot {
    fn new(
        revision: u64,
        records: Vec<(String, Result<FunctionRecord, RecordError>)>,
        before: &Self,
    ) -> Self {
        let function = |(id, record): (String, Result<FunctionRecord, RecordError>)| {
            let before = before.functions.get(&id);
            if let Err(why) = &record
                && before.is_none_or(|before| before.record.as_ref().err() != Some(why))
            {
                tracing::error!(function = id, reason = %why, "unusable function");
            }
            let function = IndexedFunction::new(&id, record, before.map(|before| &**before));
            (id, Arc::new(function))
        };
        Self { revision: Some(revision), functions: records.into_iter().map(function).collect() }
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Arc<IndexedFunction>> {
        self.functions.values()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<IndexedFunction>> {
        self.functions.get(id)
    }

    /// Returns a text that identifies the selected version; `None` if there is none.
    pub(crate) fn version_key(&self, id: &str, wanted: VersionSelector) -> Option<String> {
        let (version, slot) = self.get(id)?.select(wanted)?;
        Some(format!("{version:?}#{}", slot.digest()))
    }

    /// Returns the slots of all versions.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Arc<VersionSlot>> {
        self.functions.values().flat_map(|function| function.draft.iter().chain(function.versions.values()))
    }
}

impl IndexedFunction {
    /// Keeps the slots of unchanged versions.
    fn new(id: &str, record: Result<FunctionRecord, RecordError>, before: Option<&Self>) -> Self {
        let slot = |old: Option<&Arc<VersionSlot>>, stored: &StoredContent| match old {
            Some(old) if old.digest() == stored.digest => old.clone(),
            _ => Arc::new(VersionSlot::new(stored.digest.clone())),
        };
        let draft = record.as_ref().ok().and_then(|record| record.draft.as_ref());
        let draft = draft.map(|stored| slot(before.and_then(|before| before.draft.as_ref()), stored));
        let published = record.as_ref().map(|record| &*record.versions).unwrap_or_default();
        let versions = published.iter().map(|published| {
            let old = before.and_then(|before| before.versions.get(&published.version));
            (published.version, slot(old, &published.content))
        });
        let versions = versions.collect();
        let id = before.map_or_else(|| id.into(), |before| before.id.clone());
        Self { id, record, draft, versions }
    }

    /// Returns the selected version and its number; a draft has none.
    pub(crate) fn select(
        &self,
        wanted: VersionSelector,
    ) -> Option<(Option<FunctionVersion>, &Arc<VersionSlot>)> {
        if wanted == VersionSelector::Draft {
            return self.draft.as_ref().map(|slot| (None, slot));
        }
        let version = wanted.select(self.versions.keys().copied())?;
        self.versions.get(&version).map(|slot| (Some(version), slot))
    }
}
