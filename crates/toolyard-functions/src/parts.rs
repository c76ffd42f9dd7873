//! Parts of functions (contents and files) in the store, addressed by digest. Unused parts are swept.
//!
//! A store cannot list its large values, so each part has a mark, which is written before the part and removed after
//! it. An unused part remains if its writer was killed before it wrote the record, or if its version was deleted; it is
//! removed an hour later. The sweeper first updates the mark, on the condition that it is unchanged: a concurrent
//! writer of the same part either updates the mark before, or waits until the part is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use toolyard_core::store::{
    KeySpace, PutRequest, Store, StoreError, StoreErrorKind, StoredValue, WriteCondition,
};

use crate::function_index;
use crate::record::{FunctionRecord, RecordError, VersionContent, digest, millis};

/// Space of the parts and their marks.
pub(crate) const PARTS: KeySpace = KeySpace("function-parts");

/// Minimum age of a mark before its part is swept: its writer has ended by then.
const MIN_SWEEP_AGE: Duration = Duration::from_secs(60 * 60);

/// Time limit of the removal of a part. An older removal mark belongs to a process that was killed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval of checks for the end of a removal.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of marks read at a time.
const PAGE_SIZE: usize = 500;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct PartMark {
    /// Time of the mark, in milliseconds since 1970.
    time: u64,
    /// True while the part is being removed.
    #[serde(default)]
    going: bool,
}

impl PartMark {
    fn put(going: bool, condition: WriteCondition) -> PutRequest {
        let mark = Self { time: millis(SystemTime::now()), going };
        PutRequest { condition, ..PutRequest::always(serde_json::to_vec(&mark).unwrap_or_default()) }
    }

    /// Reads a mark. An unreadable one counts as old, so that it is removed.
    fn read(value: &StoredValue) -> Self {
        serde_json::from_slice(&value.bytes).unwrap_or(Self { time: 0, going: false })
    }

    fn is_older_than(self, age: Duration) -> bool {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        millis(SystemTime::now()).saturating_sub(self.time) > age
    }
}

/// Stores parts. An existing part is written again with the same content.
pub(crate) async fn store_parts(
    store: &dyn Store,
    parts: &BTreeMap<String, Bytes>,
) -> Result<(), StoreError> {
    for (name, bytes) in parts {
        claim(store, name).await?;
        store.put_blob(PARTS, name, bytes.clone()).await?;
    }
    Ok(())
}

/// Marks a part as needed, so that it is not removed for an hour.
async fn claim(store: &dyn Store, name: &str) -> Result<(), StoreError> {
    loop {
        let condition = match store.get(PARTS, name).await? {
            None => WriteCondition::Absent,
            Some(value) => {
                let mark = PartMark::read(&value);
                if mark.going && !mark.is_older_than(REMOVAL_TIMEOUT) {
                    sleep(POLL_INTERVAL).await;
                    continue;
                }
                WriteCondition::Version(value.version)
            }
        };
        if store.put(PARTS, name, PartMark::put(false, condition)).await?.is_some() {
            return Ok(());
        }
    }
}

/// Reads a part and checks its digest.
pub(crate) async fn get(store: &dyn Store, name: &str) -> Result<Result<Bytes, RecordError>, StoreError> {
    Ok(match store.get_blob(PARTS, name).await? {
        None => Err(RecordError::Missing),
        Some(bytes) if digest(&bytes) == name => Ok(bytes),
        Some(_) => Err(RecordError::Damaged("a part does not match its digest".into())),
    })
}

/// Removes unused parts with old marks, and returns their number.
pub(crate) async fn sweep(store: &dyn Store) -> Result<usize, StoreError> {
    // Read first: parts that are stored from now on have a newer mark.
    let old = old_marks(store).await?;
    if old.is_empty() {
        return Ok(0);
    }
    let needed = needed_parts(store).await?;
    let mut removed = 0;
    for (name, version) in old.into_iter().filter(|(name, _)| !needed.contains(name)) {
        let going = PartMark::put(true, WriteCondition::Version(version));
        if store.put(PARTS, &name, going).await?.is_some() {
            store.delete_blob(PARTS, &name).await?;
            store.delete(PARTS, &name).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns the parts with old marks, and the versions of the marks.
async fn old_marks(store: &dyn Store) -> Result<Vec<(String, u64)>, StoreError> {
    let mut old = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(PARTS, "", last.as_deref(), PAGE_SIZE).await?;
        let is_last = page.len() < PAGE_SIZE;
        last = page.last().map(|(name, _)| name.clone());
        let is_old = |value: &StoredValue| {
            let mark = PartMark::read(value);
            mark.is_older_than(if mark.going { REMOVAL_TIMEOUT } else { MIN_SWEEP_AGE })
        };
        old.extend(
            page.into_iter().filter(|(_, value)| is_old(value)).map(|(name, value)| (name, value.version)),
        );
        if is_last {
            return Ok(old);
        }
    }
}

/// Returns the parts that versions need.
///
/// # Errors
/// If a record or content has a later format, so that its parts are not known.
async fn needed_parts(store: &dyn Store) -> Result<BTreeSet<String>, StoreError> {
    let mut needed = BTreeSet::new();
    for (_, record) in function_index::list(store).await? {
        for stored in ignore_damaged(record)?.iter().flat_map(FunctionRecord::contents) {
            if !needed.insert(stored.digest.clone()) {
                continue;
            }
            let content = get(store, &stored.digest).await?.and_then(|bytes| VersionContent::read(&bytes));
            // A damaged content cannot be used, so its files are not needed.
            let files = ignore_damaged(content)?.into_iter().flat_map(|content| content.files);
            needed.extend(files.map(|file| file.digest));
        }
    }
    Ok(needed)
}

fn ignore_damaged<T>(found: Result<T, RecordError>) -> Result<Option<T>, StoreError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(later @ RecordError::Later(_)) => Err(StoreError::new(StoreErrorKind::Unreadable, later)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests;
