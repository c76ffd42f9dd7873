//! A store that may be unavailable at first, or for a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::Instant;
use toolyard_core::store::{
    BlobStore, KeySpace, KeyValueStore, LeaseStore, LogRecord, LogStore, PutRequest, RecordQuery, Store,
    StoreError, StoreErrorKind, StoreFuture, StoredRecord, StoredValue,
};

use crate::{ClosableStore, DatabaseLocation, StoreOpenError, StoreOptions};

/// Time between two attempts to open the store. The cause seldom goes away by itself, and each attempt delays its
/// caller.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// A store that is opened at its first use and, if that fails, at a later use. Meanwhile each of its methods fails
/// with the error of the last attempt, so that features that need no store go on.
pub struct ReopeningStore {
    options: StoreOptions,
    state: Mutex<StoreState>,
}

enum StoreState {
    Open(Arc<dyn ClosableStore>),
    /// The error of the last attempt, if there was one, and the time of the next.
    Closed {
        kind: StoreErrorKind,
        reason: String,
        retry_at: Instant,
    },
}

impl ReopeningStore {
    /// Creates the store without opening it.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        let reason = "the store is being opened".to_owned();
        let state =
            StoreState::Closed { kind: StoreErrorKind::Unavailable, reason, retry_at: Instant::now() };
        Self { options, state: Mutex::new(state) }
    }

    /// Returns the location of the store.
    #[must_use]
    pub const fn location(&self) -> &DatabaseLocation {
        &self.options.location
    }

    /// Opens the store now, even if the last attempt was a moment ago.
    ///
    /// # Errors
    /// Errors if the store cannot be opened; its methods fail with the same error until it can.
    pub async fn open(&self) -> Result<Arc<dyn Store>, StoreOpenError> {
        let opened = crate::open_closable(&self.options).await;
        let state = match &opened {
            Ok(store) => StoreState::Open(store.clone()),
            Err(error) => StoreState::Closed {
                kind: error.kind(),
                reason: error_chain(error),
                retry_at: Instant::now() + RETRY_DELAY,
            },
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        Ok(opened?)
    }

    /// Closes the store if it is open. It is not opened again.
    pub async fn close(&self) {
        let store = match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            StoreState::Open(store) => Some(store.clone()),
            StoreState::Closed { .. } => None,
        };
        if let Some(store) = store {
            store.close().await;
        }
    }

    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(current) = self.current_store() {
            return current;
        }
        let opened = self.open().await;
        if opened.is_ok() {
            tracing::info!("opened the store {}", self.options.location);
        }
        opened.map_err(|error| StoreError::new(error.kind(), error))
    }

    /// The store, or the error of the last attempt; `None` if the caller has to open it.
    fn current_store(&self) -> Option<Result<Arc<dyn Store>, StoreError>> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            StoreState::Open(store) => Some(Ok(store.clone())),
            StoreState::Closed { kind, reason, retry_at: next } if Instant::now() < *next => {
                Some(Err(StoreError::new(*kind, reason.clone())))
            }
            StoreState::Closed { retry_at: next, .. } => {
                // One caller at a time. If it is cancelled, another caller tries after the delay.
                *next = Instant::now() + RETRY_DELAY;
                None
            }
        }
    }
}

/// An error and its causes, as one text.
fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl KeyValueStore for ReopeningStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        Box::pin(async move { self.store().await?.get(space, key).await })
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        Box::pin(async move { self.store().await?.put(space, key, put).await })
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.store().await?.delete(space, key).await })
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        Box::pin(async move { self.store().await?.list(space, prefix, after, limit).await })
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.store().await?.size(space).await })
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.store().await?.revision(space).await })
    }
}

impl BlobStore for ReopeningStore {
    fn put_blob<'a>(&'a self, space: KeySpace, name: &'a str, bytes: Bytes) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.store().await?.put_blob(space, name, bytes).await })
    }

    fn get_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, Option<Bytes>> {
        Box::pin(async move { self.store().await?.get_blob(space, name).await })
    }

    fn delete_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.store().await?.delete_blob(space, name).await })
    }
}

impl LeaseStore for ReopeningStore {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>> {
        Box::pin(async move { self.store().await?.acquire(name, holder, time).await })
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.store().await?.release(name, holder).await })
    }

    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.store().await?.forget(name, holder).await })
    }
}

impl LogStore for ReopeningStore {
    fn append(&self, space: KeySpace, records: Arc<[LogRecord]>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.store().await?.append(space, records).await })
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        Box::pin(async move { self.store().await?.read(space, query).await })
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.store().await?.trim(space, before).await })
    }

    fn trim_to_size(&self, space: KeySpace, bytes: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.store().await?.trim_to_size(space, bytes).await })
    }
}
