//! A store whose operations are counted, and can be held.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use tokio::sync::watch;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreFuture, StoredValue};

use super::ManualStore;

/// An operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StoreOperation {
    Get,
    Put,
    Delete,
    List,
}

/// A store that counts operations, and holds those that a test names.
pub(crate) struct ObservedStore {
    inner: Arc<ManualStore>,
    counts: [AtomicUsize; 4],
    running: AtomicUsize,
    most_running: AtomicUsize,
    /// Number of puts that fail because of their condition.
    conflicts: AtomicUsize,
    held: watch::Sender<HashSet<(StoreOperation, &'static str)>>,
}

impl ObservedStore {
    pub(crate) fn new(inner: Arc<ManualStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            counts: [const { AtomicUsize::new(0) }; 4],
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            conflicts: AtomicUsize::new(0),
            held: watch::Sender::default(),
        })
    }

    /// Returns the number of operations since the last call of this function.
    pub(crate) fn take_count(&self, operation: StoreOperation) -> usize {
        self.counts[operation as usize].swap(0, Ordering::Relaxed)
    }

    /// Returns the maximum number of concurrent operations.
    pub(crate) fn most_running(&self) -> usize {
        self.most_running.load(Ordering::Relaxed)
    }

    /// Makes the next puts fail as if others had changed the values.
    pub(crate) fn conflict(&self, puts: usize) {
        self.conflicts.store(puts, Ordering::Relaxed);
    }

    /// Holds further operations in a key space until they are released.
    pub(crate) fn hold(&self, operation: StoreOperation, space: &'static str) {
        self.held.send_modify(|held| {
            held.insert((operation, space));
        });
    }

    /// Releases all operations.
    pub(crate) fn release(&self) {
        self.held.send_modify(HashSet::clear);
    }

    async fn begin(&self, operation: StoreOperation, space: KeySpace) -> RunningOperation<'_> {
        self.counts[operation as usize].fetch_add(1, Ordering::Relaxed);
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_running.fetch_max(running, Ordering::Relaxed);
        let guard = RunningOperation(self);
        // Others that are started at the same time count as concurrent.
        tokio::task::yield_now().await;
        let mut hold = self.held.subscribe();
        let _sender_lives = hold.wait_for(|hold| !hold.contains(&(operation, space.0))).await;
        guard
    }
}

struct RunningOperation<'a>(&'a ObservedStore);

impl Drop for RunningOperation<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl KeyValueStore for ObservedStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        async move {
            let _running = self.begin(StoreOperation::Get, space).await;
            self.inner.get(space, key).await
        }
        .boxed()
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        async move {
            let _running = self.begin(StoreOperation::Put, space).await;
            let left = self.conflicts.load(Ordering::Relaxed);
            if left > 0 {
                self.conflicts.store(left - 1, Ordering::Relaxed);
                return Ok(None);
            }
            self.inner.put(space, key, put).await
        }
        .boxed()
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        async move {
            let _running = self.begin(StoreOperation::Delete, space).await;
            self.inner.delete(space, key).await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        async move {
            let _running = self.begin(StoreOperation::List, space).await;
            self.inner.list(space, prefix, after, limit).await
        }
        .boxed()
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.inner.size(space)
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.inner.revision(space)
    }
}
