//! A store, a clock and owners for tests. Time is that of tokio, which tests pause and advance.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::time::Instant;
use toolyard_core::Caller;
use toolyard_core::store::{
    KeySpace, KeyValueStore, LeaseStore, PutRequest, StoreError, StoreErrorKind, StoreFuture, StoredValue,
};
use toolyard_testing::memory_store::MemoryStore;

use crate::action::{OwnerDirectory, OwnerRefusal};
use crate::observer::{EndedRun, RunObserver};
use crate::schedules::ScheduleClock;
use crate::task::ScheduleOwner;

/// A store in memory whose operations end at once, so that paused time does not advance meanwhile.
#[derive(Default)]
pub(crate) struct ImmediateStore {
    values: MemoryStore,
    leases: Mutex<HashMap<String, (String, Instant)>>,
    pub(crate) is_unavailable: AtomicBool,
}

impl ImmediateStore {
    /// Returns the names of the values without an expiry, and of the leases that were not given up.
    pub(crate) fn lasting(&self) -> Vec<String> {
        let values = self.values.values();
        let lasting = values.iter().filter(|(_, value)| value.expires.is_none());
        let lasting = lasting.map(|((space, key), _)| format!("{space}/{key}"));
        lasting.chain(self.leases.lock().expect("no panic").keys().cloned()).collect()
    }

    fn answer<'a, T: Send + 'a>(&self, answer: impl FnOnce() -> StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self.is_unavailable.load(Ordering::Relaxed) {
            true => ready(Err(StoreError::new(StoreErrorKind::Unavailable, "it is away"))).boxed(),
            false => answer(),
        }
    }
}

impl KeyValueStore for ImmediateStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        self.answer(|| self.values.get(space, key))
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        self.answer(|| self.values.put(space, key, put))
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.answer(|| self.values.delete(space, key))
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.answer(|| self.values.list(space, prefix, after, limit))
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|| self.values.size(space))
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|| self.values.revision(space))
    }
}

impl LeaseStore for ImmediateStore {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>> {
        let now = Instant::now();
        let mut leases = self.leases.lock().expect("no panic");
        let is_free = leases.get(name).is_none_or(|(other, until)| other == holder || *until <= now);
        if is_free {
            leases.insert(name.to_owned(), (holder.to_owned(), now + time));
        }
        self.answer(|| ready(Ok(is_free.then_some(1))).boxed())
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        if let Some((of, until)) = self.leases.lock().expect("no panic").get_mut(name)
            && of == holder
        {
            *until = Instant::now();
        }
        self.answer(|| ready(Ok(())).boxed())
    }

    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        self.leases.lock().expect("no panic").retain(|other, (of, _)| other != name || of != holder);
        self.answer(|| ready(Ok(())).boxed())
    }
}

/// A wall clock that follows tokio's time, and can be set.
#[derive(Clone)]
pub(crate) struct ManualClock {
    start: Instant,
    base: SystemTime,
    offset: Arc<AtomicI64>,
}

impl ManualClock {
    /// Returns a clock at this time.
    pub(crate) fn at(time: &str) -> Self {
        let time: jiff::Timestamp = time.parse().expect("a time");
        Self { start: Instant::now(), base: SystemTime::from(time), offset: Arc::default() }
    }

    /// Sets the clock forward, or back.
    pub(crate) fn jump(&self, seconds: i64) {
        self.offset.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> ScheduleClock {
        let clock = self.clone();
        Arc::new(move || {
            let since = clock.base.duration_since(UNIX_EPOCH).expect("a time") + clock.start.elapsed();
            let offset = clock.offset.load(Ordering::Relaxed);
            let jump = Duration::from_secs(offset.unsigned_abs());
            UNIX_EPOCH + if offset < 0 { since - jump } else { since + jump }
        })
    }
}

/// Owners that all exist, until they are revoked.
#[derive(Default)]
pub(crate) struct ManualOwners {
    pub(crate) refusals: Mutex<HashMap<String, OwnerRefusal>>,
}

impl OwnerDirectory for ManualOwners {
    fn caller<'a>(&'a self, owner: &'a ScheduleOwner) -> BoxFuture<'a, Result<Caller, OwnerRefusal>> {
        let key = owner.key_id().unwrap_or_default();
        let refusal = self.refusals.lock().expect("no panic").get(key).cloned();
        let principal = owner.key_id().map(Into::into);
        ready(refusal.map_or_else(|| Ok(Caller { principal, ..Caller::default() }), Err)).boxed()
    }
}

/// Keeps the reported runs as lines.
#[derive(Default)]
pub(crate) struct ReportedRuns(pub(crate) Mutex<Vec<String>>);

impl RunObserver for ReportedRuns {
    fn ended(&self, run: EndedRun<'_>) {
        let EndedRun { owner, task, outcome, took, .. } = run;
        let (key, took) = (owner.key_id().unwrap_or("no key"), took.map(|took| took.as_secs()));
        let line = format!("{key} {task} {} {took:?}", outcome.word());
        self.0.lock().expect("no panic").push(line);
    }
}
