//! A store for tests of what is kept in one. What stores really do is shown where there are some.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::ready;
use toolyard_core::store::{Condition, Kv, Put, Space, StoreError, Stored, Trouble, Value};

use super::MemoryLimits;
use super::working::{Clock, WorkingMemory};

/// Keeps values in memory, by a clock that is set by hand.
#[derive(Default)]
pub(crate) struct Kept {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    values: BTreeMap<(&'static str, String), Value>,
    version: u64,
    now: Duration,
    is_away: bool,
}

impl Kept {
    /// A memory on a new store.
    pub(crate) fn memory(limits: MemoryLimits) -> (Arc<Self>, WorkingMemory) {
        let kept = Arc::new(Self::default());
        kept.pass(Duration::from_secs(1_800_000_000));
        let memory = WorkingMemory::new(kept.clone(), limits).with_clock(kept.clock());
        (kept, memory)
    }

    pub(crate) fn clock(self: &Arc<Self>) -> Clock {
        let kept = self.clone();
        Arc::new(move || UNIX_EPOCH + kept.state().now)
    }

    /// Time goes by.
    pub(crate) fn pass(&self, time: Duration) {
        self.state().now += time;
    }

    /// From now on nothing works.
    pub(crate) fn go_away(&self) {
        self.state().is_away = true;
    }

    /// Somebody removes what entries hold.
    pub(crate) fn lose_values(&self) {
        self.state().values.retain(|(space, _), _| *space == "working-memory");
    }

    /// How many values there are that have not expired.
    pub(crate) fn len(&self) -> usize {
        let state = self.state();
        state.values.values().filter(|value| state.lives(value)).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn answer<T: Send + 'static>(&self, work: impl FnOnce(&mut State) -> T) -> Stored<'static, T> {
        let mut state = self.state();
        let answer = match state.is_away {
            true => Err(StoreError::new(Trouble::Unavailable, "it is away")),
            false => Ok(work(&mut state)),
        };
        ready(answer).boxed()
    }
}

impl State {
    fn lives(&self, value: &Value) -> bool {
        value.expires.is_none_or(|expires: SystemTime| expires > UNIX_EPOCH + self.now)
    }

    fn get(&self, space: Space, key: &str) -> Option<&Value> {
        self.values.get(&(space.0, key.to_owned())).filter(|value| self.lives(value))
    }
}

impl Kv for Kept {
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>> {
        self.answer(|state| state.get(space, key).cloned())
    }

    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>> {
        self.answer(|state| {
            let current = state.get(space, key).map(|value| value.version);
            let holds = match put.condition {
                Condition::Always => true,
                Condition::Absent => current.is_none(),
                Condition::Version(version) => current == Some(version),
            };
            holds.then(|| {
                state.version += 1;
                let value = Value { bytes: put.bytes, version: state.version, expires: put.expires };
                state.values.insert((space.0, key.to_owned()), value);
                state.version
            })
        })
    }

    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool> {
        self.answer(|state| state.values.remove(&(space.0, key.to_owned())).is_some())
    }

    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>> {
        self.answer(|state| {
            let fits = |(owner, key): &&(&'static str, String)| {
                *owner == space.0 && key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
            };
            let living = state.values.iter().filter(|(key, value)| fits(key) && state.lives(value));
            living.map(|((_, key), value)| (key.clone(), value.clone())).take(limit).collect()
        })
    }

    fn size(&self, space: Space) -> Stored<'_, u64> {
        self.answer(|state| {
            let of_space =
                state.values.iter().filter(|((owner, _), value)| *owner == space.0 && state.lives(value));
            of_space.map(|(_, value)| value.bytes.len() as u64).sum()
        })
    }

    fn revision(&self, _space: Space) -> Stored<'_, u64> {
        self.answer(|state| state.version)
    }
}
