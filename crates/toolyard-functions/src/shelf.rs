//! The records of functions, as a running gateway knows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::store::{Condition, Put, Space, Store, StoreError};

use crate::edition::Slot;
use crate::error::FunctionError;
use crate::record::{Record, Stored, Unusable};
use crate::version::{Version, Wanted};

/// Where the records of functions are, by their ids.
pub(crate) const FUNCTIONS: Space = Space("functions");

/// The highest number that was ever published of each id. It outlives the function: a number is never given to other code.
pub(crate) const NUMBERS: Space = Space("function-numbers");

/// How many are read at a time.
const PAGE: usize = 500;

/// A function that is not known is asked for in the store, but not more often than that.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// All functions at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// Which state of the store that is; `None` while it could not be read.
    revision: Option<u64>,
    functions: BTreeMap<String, Arc<Shelved>>,
}

/// A function, and what of its versions is loaded.
pub(crate) struct Shelved {
    pub(crate) id: Arc<str>,
    pub(crate) record: Result<Record, Unusable>,
    draft: Option<Arc<Slot>>,
    versions: BTreeMap<Version, Arc<Slot>>,
}

/// The functions, kept up with the store.
pub(crate) struct Shelf {
    store: Arc<dyn Store>,
    known: watch::Sender<Arc<Snapshot>>,
    /// One at a time reads, so that what was read before is never put in the place of what was read after.
    reading: Semaphore,
    looked_at: Mutex<Option<Instant>>,
}

/// All records, in the order of their ids.
pub(crate) async fn list(store: &dyn Store) -> Result<Vec<(String, Result<Record, Unusable>)>, StoreError> {
    let mut records = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(FUNCTIONS, "", last.as_deref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        last = page.last().map(|(id, _)| id.clone());
        records.extend(page.into_iter().map(|(id, value)| (id, Record::read(&value.bytes))));
        if is_last {
            return Ok(records);
        }
    }
}

impl Shelf {
    /// Functions that are not read yet.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let known = watch::Sender::new(Arc::default());
        Self { store, known, reading: Semaphore::new(1), looked_at: Mutex::default() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn known(&self) -> Arc<Snapshot> {
        self.known.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.known.subscribe()
    }

    /// Reads the functions if they are others than those that are known.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        // It is never closed.
        let _turn = self.reading.acquire().await;
        // First: what changes while they are read is read again.
        let revision = self.store.revision(FUNCTIONS).await?;
        if self.known.borrow().revision != Some(revision) {
            let records = list(&*self.store).await?;
            let before = self.known();
            self.known.send_replace(Arc::new(Snapshot::new(revision, records, &before)));
        }
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }

    /// Reads them for somebody who misses one: that may be a matter of a moment.
    pub(crate) async fn look_again(&self) -> Result<(), StoreError> {
        let came = Instant::now();
        let looked_at = *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = looked_at {
            sleep_until(at + ASK_EVERY).await;
        }
        // Somebody else may have asked while this one waited.
        let looked_at = *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if looked_at.is_some_and(|at| at > came) {
            return Ok(());
        }
        self.refresh().await
    }

    /// Follows the changes of other processes, for as long as it is polled. A change is known after `every` at most.
    pub(crate) async fn follow(&self, every: Duration) {
        let mut is_well = true;
        loop {
            let outcome = self.refresh().await;
            if let (Err(error), true) = (&outcome, is_well) {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "cannot read the functions: those that are known go on");
            }
            is_well = outcome.is_ok();
            sleep(every).await;
        }
    }

    /// The record of a function as it is now in the store.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<(Record, u64)>, FunctionError> {
        let Some(value) = self.store.get(FUNCTIONS, id).await? else { return Ok(None) };
        let record = Record::read(&value.bytes).map_err(|why| unreadable(id, &why))?;
        Ok(Some((record, value.version)))
    }

    /// Puts a record in the place of the one that was read; whether that is still there.
    pub(crate) async fn put(
        &self,
        id: &str,
        record: &Record,
        read: Option<u64>,
    ) -> Result<bool, FunctionError> {
        let condition = read.map_or(Condition::Absent, Condition::Version);
        let put = Put { condition, ..Put::always(record.written()) };
        Ok(self.store.put(FUNCTIONS, id, put).await?.is_some())
    }

    /// The highest number that was published under an id, of a function that is there or was.
    pub(crate) async fn last_number(&self, id: &str) -> Result<Option<Version>, FunctionError> {
        let kept = self.store.get(NUMBERS, id).await?;
        let Some(kept) = kept else { return Ok(None) };
        let number = std::str::from_utf8(&kept.bytes).ok().and_then(|text| text.parse().ok());
        let damaged = || unreadable(id, &Unusable::Damaged("its last number is none".to_owned()));
        number.map(Some).ok_or_else(damaged)
    }

    /// Keeps a number as the highest, unless there is a higher one. It is to be done before the number is given.
    pub(crate) async fn keep_number(&self, id: &str, number: Version) -> Result<(), FunctionError> {
        loop {
            let kept = self.store.get(NUMBERS, id).await?;
            let before = kept.as_ref().and_then(|kept| std::str::from_utf8(&kept.bytes).ok());
            if before.and_then(|text| text.parse::<Version>().ok()).is_some_and(|before| before >= number) {
                return Ok(());
            }
            let condition = kept.as_ref().map_or(Condition::Absent, |kept| Condition::Version(kept.version));
            let put = Put { condition, ..Put::always(number.to_string()) };
            if self.store.put(NUMBERS, id, put).await?.is_some() {
                return Ok(());
            }
        }
    }

    pub(crate) async fn remove(&self, id: &str) -> Result<bool, FunctionError> {
        Ok(self.store.delete(FUNCTIONS, id).await?)
    }
}

pub(crate) fn unreadable(id: &str, why: &Unusable) -> FunctionError {
    FunctionError::Unreadable { id: id.to_owned(), why: why.to_string() }
}

impl Snapshot {
    fn new(revision: u64, records: Vec<(String, Result<Record, Unusable>)>, before: &Self) -> Self {
        let shelved = |(id, record): (String, Result<Record, Unusable>)| {
            let before = before.functions.get(&id);
            if let Err(why) = &record
                && before.is_none_or(|before| before.record.as_ref().err() != Some(why))
            {
                tracing::error!(function = id, %why, "a function cannot be used here");
            }
            let shelved = Shelved::new(&id, record, before.map(|before| &**before));
            (id, Arc::new(shelved))
        };
        Self { revision: Some(revision), functions: records.into_iter().map(shelved).collect() }
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Arc<Shelved>> {
        self.functions.values()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Shelved>> {
        self.functions.get(id)
    }

    /// What tells the version that is meant from all others; `None` where there is none.
    pub(crate) fn mark(&self, id: &str, wanted: Wanted) -> Option<String> {
        let (version, slot) = self.get(id)?.pick(wanted)?;
        Some(format!("{version:?}#{}", slot.digest()))
    }

    /// What of all versions is, or may be, loaded.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.functions.values().flat_map(|shelved| shelved.draft.iter().chain(shelved.versions.values()))
    }
}

impl Shelved {
    /// What is loaded of versions that are the same stays loaded.
    fn new(id: &str, record: Result<Record, Unusable>, before: Option<&Self>) -> Self {
        let slot = |old: Option<&Arc<Slot>>, stored: &Stored| match old {
            Some(old) if old.digest() == stored.digest => old.clone(),
            _ => Arc::new(Slot::new(stored.digest.clone())),
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

    /// The version that is meant, and its number; a draft has none.
    pub(crate) fn pick(&self, wanted: Wanted) -> Option<(Option<Version>, &Arc<Slot>)> {
        if wanted == Wanted::Draft {
            return self.draft.as_ref().map(|slot| (None, slot));
        }
        let version = wanted.pick(self.versions.keys().copied())?;
        self.versions.get(&version).map(|slot| (Some(version), slot))
    }
}
