//! Parts of functions, contents and files, in the store: by their digests, each once, and swept when nothing needs them.
//!
//! A store does not list what large values it has. So each part has a mark, which is put before it and removed after it.
//! A part that nobody needs, because whoever put it was killed before the record or because its version was deleted, is
//! removed an hour later. Removing says so in the mark first, on the condition that it is as it was: who puts the same
//! part meanwhile either changes the mark before, or waits until the part is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use toolyard_core::store::{Condition, Put, Space, Store, StoreError, Trouble, Value};

use crate::record::{Content, Record, Unusable, digest, millis};
use crate::shelf;

/// Where parts are, and their marks.
pub(crate) const PARTS: Space = Space("function-parts");

/// How old a mark is at least whose part is swept: whatever put it has long ended.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// How long somebody may need to remove a part. A mark that says so for longer is of somebody who was killed.
const REMOVAL: Duration = Duration::from_secs(60);

/// How often it is looked whether a part is gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How many marks are read at a time.
const PAGE: usize = 500;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Mark {
    /// When it was put, in milliseconds since 1970.
    time: u64,
    /// Whether somebody is removing the part.
    #[serde(default)]
    going: bool,
}

impl Mark {
    fn put(going: bool, condition: Condition) -> Put {
        let mark = Self { time: millis(SystemTime::now()), going };
        Put { condition, ..Put::always(serde_json::to_vec(&mark).unwrap_or_default()) }
    }

    /// A mark that cannot be read is of no time, and goes.
    fn read(value: &Value) -> Self {
        serde_json::from_slice(&value.bytes).unwrap_or(Self { time: 0, going: false })
    }

    fn is_older_than(self, age: Duration) -> bool {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        millis(SystemTime::now()).saturating_sub(self.time) > age
    }
}

/// Keeps parts. A part that is there already is put again: it is the same.
pub(crate) async fn keep(store: &dyn Store, parts: &BTreeMap<String, Bytes>) -> Result<(), StoreError> {
    for (name, bytes) in parts {
        claim(store, name).await?;
        store.put_blob(PARTS, name, bytes.clone()).await?;
    }
    Ok(())
}

/// Marks a part as needed, so that nobody removes it for an hour.
async fn claim(store: &dyn Store, name: &str) -> Result<(), StoreError> {
    loop {
        let condition = match store.get(PARTS, name).await? {
            None => Condition::Absent,
            Some(value) => {
                let mark = Mark::read(&value);
                if mark.going && !mark.is_older_than(REMOVAL) {
                    sleep(LOOK_EVERY).await;
                    continue;
                }
                Condition::Version(value.version)
            }
        };
        if store.put(PARTS, name, Mark::put(false, condition)).await?.is_some() {
            return Ok(());
        }
    }
}

/// A part, as it was kept.
pub(crate) async fn get(store: &dyn Store, name: &str) -> Result<Result<Bytes, Unusable>, StoreError> {
    Ok(match store.get_blob(PARTS, name).await? {
        None => Err(Unusable::Missing),
        Some(bytes) if digest(&bytes) == name => Ok(bytes),
        Some(_) => Err(Unusable::Damaged("a part is not what its digest says".into())),
    })
}

/// Removes the parts that nothing needs, and that were put some time ago; gives how many that was.
pub(crate) async fn sweep(store: &dyn Store) -> Result<usize, StoreError> {
    // First the marks: what is put from now on changes its mark.
    let old = old(store).await?;
    if old.is_empty() {
        return Ok(0);
    }
    let needed = needed(store).await?;
    let mut removed = 0;
    for (name, version) in old.into_iter().filter(|(name, _)| !needed.contains(name)) {
        let going = Mark::put(true, Condition::Version(version));
        if store.put(PARTS, &name, going).await?.is_some() {
            store.delete_blob(PARTS, &name).await?;
            store.delete(PARTS, &name).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The parts that were marked some time ago, with the versions of their marks.
async fn old(store: &dyn Store) -> Result<Vec<(String, u64)>, StoreError> {
    let mut old = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(PARTS, "", last.as_deref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        last = page.last().map(|(name, _)| name.clone());
        let is_old = |value: &Value| {
            let mark = Mark::read(value);
            mark.is_older_than(if mark.going { REMOVAL } else { GRACE })
        };
        old.extend(
            page.into_iter().filter(|(_, value)| is_old(value)).map(|(name, value)| (name, value.version)),
        );
        if is_last {
            return Ok(old);
        }
    }
}

/// What versions consist of.
///
/// # Errors
/// Also when a record or a content is of a later program, which alone knows what it needs.
async fn needed(store: &dyn Store) -> Result<BTreeSet<String>, StoreError> {
    let mut needed = BTreeSet::new();
    for (_, record) in shelf::list(store).await? {
        for stored in known(record)?.iter().flat_map(Record::contents) {
            if !needed.insert(stored.digest.clone()) {
                continue;
            }
            let content = get(store, &stored.digest).await?.and_then(|bytes| Content::read(&bytes));
            // What is damaged needs nothing: it is of no use.
            let files = known(content)?.into_iter().flat_map(|content| content.files);
            needed.extend(files.map(|file| file.digest));
        }
    }
    Ok(needed)
}

fn known<T>(found: Result<T, Unusable>) -> Result<Option<T>, StoreError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(later @ Unusable::Later(_)) => Err(StoreError::new(Trouble::Unreadable, later)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests;
