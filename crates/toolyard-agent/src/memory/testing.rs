//! A store for tests with a clock that is set by hand. The behaviour of real stores is tested with these stores.

pub(crate) mod observed_store;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::ready;
use toolyard_core::store::{
    KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, StoreFuture, StoredValue, WriteCondition,
};
use toolyard_manifest::MemorySettings;

use super::namespace::MemoryNamespace;
use super::working_memory::{WallClock, WorkingMemory};

/// A store in memory whose clock is set by hand.
#[derive(Default)]
pub(crate) struct ManualStore {
    state: Mutex<ManualStoreState>,
}

#[derive(Default)]
struct ManualStoreState {
    values: BTreeMap<(&'static str, String), StoredValue>,
    version: u64,
    now: Duration,
    is_away: bool,
}

impl ManualStore {
    /// Returns a working memory on a new store.
    pub(crate) fn memory(limits: MemorySettings) -> (Arc<Self>, WorkingMemory) {
        let store = Arc::new(Self::default());
        store.pass(Duration::from_secs(1_800_000_000));
        let memory = WorkingMemory::new(store.clone(), limits).with_clock(store.clock());
        (store, memory)
    }

    /// Returns a handle of `session/NAME`, for callers without a key.
    pub(crate) async fn handle(memory: &WorkingMemory, name: &str) -> String {
        let ids = memory.ids().await.expect("a store");
        ids.handle(&MemoryNamespace::new("session", name), None, memory.now() + Duration::from_secs(86_400))
    }

    pub(crate) fn clock(self: &Arc<Self>) -> WallClock {
        let store = self.clone();
        Arc::new(move || UNIX_EPOCH + store.state().now)
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.state().now += time;
    }

    /// Makes every further operation fail.
    pub(crate) fn go_away(&self) {
        self.state().is_away = true;
    }

    /// Removes the values of all entries, but not the entries.
    pub(crate) fn lose_values(&self) {
        self.state().values.retain(|(space, _), _| !space.ends_with("-values"));
    }

    /// Returns the number of values that have not expired, without the key that seals ids.
    pub(crate) fn len(&self) -> usize {
        let state = self.state();
        let counts = |space: &str| space != "working-memory-seal";
        state.values.iter().filter(|((space, _), value)| counts(space) && state.lives(value)).count()
    }

    fn state(&self) -> MutexGuard<'_, ManualStoreState> {
        self.state.lock().expect("no panic")
    }

    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ManualStoreState) -> T,
    ) -> StoreFuture<'static, T> {
        let mut state = self.state();
        let answer = match state.is_away {
            true => Err(StoreError::new(StoreErrorKind::Unavailable, "it is away")),
            false => Ok(work(&mut state)),
        };
        ready(answer).boxed()
    }
}

impl ManualStoreState {
    fn lives(&self, value: &StoredValue) -> bool {
        value.expires.is_none_or(|expires: SystemTime| expires > UNIX_EPOCH + self.now)
    }

    fn get(&self, space: KeySpace, key: &str) -> Option<&StoredValue> {
        self.values.get(&(space.0, key.to_owned())).filter(|value| self.lives(value))
    }
}

impl KeyValueStore for ManualStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        self.answer(|state| state.get(space, key).cloned())
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        self.answer(|state| {
            let current = state.get(space, key).map(|value| value.version);
            let holds = match put.condition {
                WriteCondition::Always => true,
                WriteCondition::Absent => current.is_none(),
                WriteCondition::Version(version) => current == Some(version),
            };
            holds.then(|| {
                state.version += 1;
                let value = StoredValue { bytes: put.bytes, version: state.version, expires: put.expires };
                state.values.insert((space.0, key.to_owned()), value);
                state.version
            })
        })
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.answer(|state| state.values.remove(&(space.0, key.to_owned())).is_some())
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.answer(|state| {
            let fits = |(owner, key): &&(&'static str, String)| {
                *owner == space.0 && key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
            };
            let living = state.values.iter().filter(|(key, value)| fits(key) && state.lives(value));
            living.map(|((_, key), value)| (key.clone(), value.clone())).take(limit).collect()
        })
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|state| {
            let of_space =
                state.values.iter().filter(|((owner, _), value)| *owner == space.0 && state.lives(value));
            of_space.map(|(_, value)| value.bytes.len() as u64).sum()
        })
    }

    fn revision(&self, _space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|state| state.version)
    }
}
