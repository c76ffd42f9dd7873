//! A store in memory, where nothing expires. Its operations end at once, so that paused time does not advance meanwhile.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::ready;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreFuture, StoredValue, WriteCondition};

/// Values by space and key.
type MemoryValues = BTreeMap<(&'static str, String), StoredValue>;

/// The store. Its versions are numbers of changes.
#[derive(Default)]
pub struct MemoryStore(Mutex<(u64, MemoryValues)>);

impl MemoryStore {
    /// Returns the values by space and key.
    pub fn values(&self) -> Vec<((&'static str, String), StoredValue)> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.1.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut u64, &mut MemoryValues) -> T,
    ) -> StoreFuture<'static, T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, map) = &mut *values;
        ready(Ok(work(version, map))).boxed()
    }
}

impl KeyValueStore for MemoryStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        self.answer(|_, values| values.get(&(space.0, key.to_owned())).cloned())
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        self.answer(|version, values| {
            let current = values.get(&(space.0, key.to_owned())).map(|value| value.version);
            let holds = match put.condition {
                WriteCondition::Always => true,
                WriteCondition::Absent => current.is_none(),
                WriteCondition::Version(version) => current == Some(version),
            };
            holds.then(|| {
                *version += 1;
                let value = StoredValue { bytes: put.bytes, version: *version, expires: put.expires };
                values.insert((space.0, key.to_owned()), value);
                *version
            })
        })
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.answer(|version, values| {
            *version += 1;
            values.remove(&(space.0, key.to_owned())).is_some()
        })
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.answer(|_, values| {
            let fits = |(of, key): &&(&'static str, String)| {
                *of == space.0 && key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
            };
            let values = values.iter().filter(|(key, _)| fits(key));
            values.map(|((_, key), value)| (key.clone(), value.clone())).take(limit).collect()
        })
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|_, values| {
            let of_space = values.iter().filter(|((of, _), _)| *of == space.0);
            of_space.map(|(_, value)| value.bytes.len() as u64).sum()
        })
    }

    fn revision(&self, _space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|version, _| *version)
    }
}
