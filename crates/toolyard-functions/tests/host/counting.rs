//! A store that counts its operations, and can simulate failures and slow reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolyard_core::store::{
    BlobStore, KeySpace, KeyValueStore, LeaseStore, LogRecord, LogStore, PutRequest, RecordQuery, Store,
    StoreError, StoreErrorKind, StoreFuture, StoredRecord, StoredValue,
};
use toolyard_testing::wait::until_async;

pub(crate) struct Counting {
    inner: Arc<dyn Store>,
    pub(crate) asked: AtomicUsize,
    pub(crate) is_broken: AtomicBool,
    /// Withholds revisions that were read.
    pub(crate) holds_revisions: AtomicBool,
    /// Number of revisions that were withheld.
    pub(crate) held: AtomicUsize,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let (is_broken, holds_revisions) = (AtomicBool::new(false), AtomicBool::new(false));
        let (asked, held) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { inner, asked, is_broken, holds_revisions, held })
    }

    fn ask<'a, T: Send + 'a>(&'a self, work: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.is_broken.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::new(StoreErrorKind::Unavailable, "out of order")) }),
            false => work,
        }
    }
}

impl KeyValueStore for Counting {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        self.ask(self.inner.get(space, key))
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        self.ask(self.inner.put(space, key, put))
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.ask(self.inner.delete(space, key))
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.ask(self.inner.list(space, prefix, after, limit))
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.ask(self.inner.size(space))
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        let read = self.ask(self.inner.revision(space));
        Box::pin(async {
            let revision = read.await;
            if self.holds_revisions.load(Ordering::SeqCst) {
                self.held.fetch_add(1, Ordering::SeqCst);
            }
            until_async("a released revision", || !self.holds_revisions.load(Ordering::SeqCst)).await;
            revision
        })
    }
}

impl BlobStore for Counting {
    fn put_blob<'a>(&'a self, space: KeySpace, name: &'a str, bytes: Bytes) -> StoreFuture<'a, ()> {
        self.ask(self.inner.put_blob(space, name, bytes))
    }

    fn get_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, Option<Bytes>> {
        self.ask(self.inner.get_blob(space, name))
    }

    fn delete_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, bool> {
        self.ask(self.inner.delete_blob(space, name))
    }
}

impl LeaseStore for Counting {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>> {
        self.ask(self.inner.acquire(name, holder, time))
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        self.ask(self.inner.release(name, holder))
    }

    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        self.ask(self.inner.forget(name, holder))
    }
}

impl LogStore for Counting {
    fn append(&self, space: KeySpace, records: Arc<[LogRecord]>) -> StoreFuture<'_, ()> {
        self.ask(self.inner.append(space, records))
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        self.ask(self.inner.read(space, query))
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        self.ask(self.inner.trim(space, before))
    }

    fn trim_to_size(&self, space: KeySpace, bytes: u64) -> StoreFuture<'_, u64> {
        self.ask(self.inner.trim_to_size(space, bytes))
    }
}
