//! A store that may be out of order at first, or for a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::Instant;
use toolyard_core::store::{
    Blob, Kept, Kv, Lease, Log, Put, Query, Record, Space, Store, StoreError, Stored, Trouble, Value,
};

use crate::{OpenError, StoreOptions};

/// How long a store that could not be opened is left alone: somebody has to do something first, and each attempt
/// makes its caller wait.
const PAUSE: Duration = Duration::from_secs(5);

/// A store that is opened when it is first needed, and if that fails, again when it is needed later. Meanwhile each of
/// its methods fails with the trouble that the last attempt was in, so that what needs no store goes on.
pub struct Reopening {
    options: StoreOptions,
    state: Mutex<State>,
}

enum State {
    Open(Arc<dyn Store>),
    /// Why the last attempt failed, if there was one, and when there may be another.
    Closed {
        trouble: Trouble,
        reason: String,
        next: Instant,
    },
}

impl Reopening {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        let reason = "it is being opened".to_owned();
        let state = State::Closed { trouble: Trouble::Unavailable, reason, next: Instant::now() };
        Self { options, state: Mutex::new(state) }
    }

    /// Opens the store now, however short ago the last attempt was.
    ///
    /// # Errors
    /// When it cannot be opened; the methods fail alike from then on, until it can.
    pub async fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        let opened = crate::open(&self.options).await;
        let state = match &opened {
            Ok(store) => State::Open(store.clone()),
            Err(error) => {
                State::Closed { trouble: error.trouble(), reason: chain(error), next: Instant::now() + PAUSE }
            }
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        opened
    }

    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(known) = self.known() {
            return known;
        }
        let opened = self.open().await;
        if opened.is_ok() {
            tracing::info!("the store {} is open", self.options.location);
        }
        opened.map_err(|error| StoreError::new(error.trouble(), error))
    }

    /// The store, or why there is none; `None` where it is the caller's turn to open it.
    fn known(&self) -> Option<Result<Arc<dyn Store>, StoreError>> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(store) => Some(Ok(store.clone())),
            State::Closed { trouble, reason, next } if Instant::now() < *next => {
                Some(Err(StoreError::new(*trouble, reason.clone())))
            }
            State::Closed { next, .. } => {
                // One caller at a time. One that gives up leaves it to another.
                *next = Instant::now() + PAUSE;
                None
            }
        }
    }
}

/// An error and its causes, as one text.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl Kv for Reopening {
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>> {
        Box::pin(async move { self.store().await?.get(space, key).await })
    }

    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>> {
        Box::pin(async move { self.store().await?.put(space, key, put).await })
    }

    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool> {
        Box::pin(async move { self.store().await?.delete(space, key).await })
    }

    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>> {
        Box::pin(async move { self.store().await?.list(space, prefix, after, limit).await })
    }

    fn size(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(async move { self.store().await?.size(space).await })
    }

    fn revision(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(async move { self.store().await?.revision(space).await })
    }
}

impl Blob for Reopening {
    fn put_blob<'a>(&'a self, space: Space, name: &'a str, bytes: Bytes) -> Stored<'a, ()> {
        Box::pin(async move { self.store().await?.put_blob(space, name, bytes).await })
    }

    fn get_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, Option<Bytes>> {
        Box::pin(async move { self.store().await?.get_blob(space, name).await })
    }

    fn delete_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, bool> {
        Box::pin(async move { self.store().await?.delete_blob(space, name).await })
    }
}

impl Lease for Reopening {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> Stored<'a, Option<u64>> {
        Box::pin(async move { self.store().await?.acquire(name, holder, time).await })
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> Stored<'a, ()> {
        Box::pin(async move { self.store().await?.release(name, holder).await })
    }
}

impl Log for Reopening {
    fn append(&self, space: Space, records: Vec<Record>) -> Stored<'_, ()> {
        Box::pin(async move { self.store().await?.append(space, records).await })
    }

    fn read(&self, space: Space, query: Query) -> Stored<'_, Vec<Kept>> {
        Box::pin(async move { self.store().await?.read(space, query).await })
    }

    fn trim(&self, space: Space, before: SystemTime) -> Stored<'_, u64> {
        Box::pin(async move { self.store().await?.trim(space, before).await })
    }
}
