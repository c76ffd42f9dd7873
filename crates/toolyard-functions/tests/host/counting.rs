//! A store that counts how often it is asked, and that can be out of order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use toolyard_core::store::{
    Blob, Kept, Kv, Lease, Log, Put, Query, Record, Space, Store, StoreError, Stored, Trouble, Value,
};

pub(crate) struct Counting {
    inner: Arc<dyn Store>,
    pub(crate) asked: AtomicUsize,
    pub(crate) is_broken: AtomicBool,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, asked: AtomicUsize::new(0), is_broken: AtomicBool::new(false) })
    }

    fn ask<'a, T: Send + 'a>(&'a self, work: Stored<'a, T>) -> Stored<'a, T> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.is_broken.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::new(Trouble::Unavailable, "out of order")) }),
            false => work,
        }
    }
}

impl Kv for Counting {
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>> {
        self.ask(self.inner.get(space, key))
    }

    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>> {
        self.ask(self.inner.put(space, key, put))
    }

    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool> {
        self.ask(self.inner.delete(space, key))
    }

    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>> {
        self.ask(self.inner.list(space, prefix, after, limit))
    }

    fn size(&self, space: Space) -> Stored<'_, u64> {
        self.ask(self.inner.size(space))
    }

    fn revision(&self, space: Space) -> Stored<'_, u64> {
        self.ask(self.inner.revision(space))
    }
}

impl Blob for Counting {
    fn put_blob<'a>(&'a self, space: Space, name: &'a str, bytes: Bytes) -> Stored<'a, ()> {
        self.ask(self.inner.put_blob(space, name, bytes))
    }

    fn get_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, Option<Bytes>> {
        self.ask(self.inner.get_blob(space, name))
    }

    fn delete_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, bool> {
        self.ask(self.inner.delete_blob(space, name))
    }
}

impl Lease for Counting {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> Stored<'a, Option<u64>> {
        self.ask(self.inner.acquire(name, holder, time))
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> Stored<'a, ()> {
        self.ask(self.inner.release(name, holder))
    }
}

impl Log for Counting {
    fn append(&self, space: Space, records: Vec<Record>) -> Stored<'_, ()> {
        self.ask(self.inner.append(space, records))
    }

    fn read(&self, space: Space, query: Query) -> Stored<'_, Vec<Kept>> {
        self.ask(self.inner.read(space, query))
    }

    fn trim(&self, space: Space, before: SystemTime) -> Stored<'_, u64> {
        self.ask(self.inner.trim(space, before))
    }
}
