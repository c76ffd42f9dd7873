//! Ports for persistence; their implementations decide about the medium.
//!
//! Four ports suffice for all state of the gateway: small values by key ([`KeyValueStore`]), large ones
//! ([`BlobStore`]), exclusive rights ([`LeaseStore`]), and records of events ([`LogStore`]). Acknowledged writes
//! survive the end of the process, however it ends. Each method fails with a [`StoreError`] that states its kind; calls
//! without need of the store continue meanwhile.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// All four ports.
pub trait Store: KeyValueStore + BlobStore + LeaseStore + LogStore {}

impl<T: KeyValueStore + BlobStore + LeaseStore + LogStore + ?Sized> Store for T {}

/// The result of a method of a store.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A key space of one owner, such as `keys`. Owners declare theirs as constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeySpace(pub &'static str);

/// Small values by key. A key is any text, and is compared byte by byte.
pub trait KeyValueStore: Send + Sync {
    /// Returns the value of a key. Expired values are absent.
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>>;

    /// Sets a value if `condition` holds. Returns its version, or `None` if the condition did not hold.
    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>>;

    /// Removes a key. Returns `true` if there was one.
    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool>;

    /// Returns at most `limit` keys with the prefix `prefix` after `after`, in the order of their bytes.
    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>>;

    /// Returns the size of all values in a space, in bytes. Expired values may be counted for a while.
    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64>;

    /// Returns a number that grows with every change in a space by any process: a reader with the same number is up to
    /// date. Expiry is not a change.
    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64>;
}

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// Bytes of the value.
    pub bytes: Bytes,
    /// Version of the value, unique for its key.
    pub version: u64,
    /// Expiry by the store's clock, with millisecond precision.
    pub expires: Option<SystemTime>,
}

/// A value to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRequest {
    /// Bytes of the value.
    pub bytes: Bytes,
    /// Condition on the current value.
    pub condition: WriteCondition,
    /// Expiry by the store's clock. `None`: never.
    pub expires: Option<SystemTime>,
}

impl PutRequest {
    /// Creates an unconditional write without expiry.
    pub fn always(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), condition: WriteCondition::Always, expires: None }
    }
}

/// The condition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCondition {
    /// None.
    Always,
    /// The key has no value.
    Absent,
    /// The value has this version.
    Version(u64),
}

/// Large values, such as files.
pub trait BlobStore: Send + Sync {
    /// Stores bytes under a name, replacing earlier ones.
    fn put_blob<'a>(&'a self, space: KeySpace, name: &'a str, bytes: Bytes) -> StoreFuture<'a, ()>;

    /// Returns the bytes of a name.
    fn get_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, Option<Bytes>>;

    /// Removes a name. Returns `true` if there was one.
    fn delete_blob<'a>(&'a self, space: KeySpace, name: &'a str) -> StoreFuture<'a, bool>;
}

/// Exclusive rights with a time limit.
pub trait LeaseStore: Send + Sync {
    /// Acquires or extends the right of `holder` until `time` from now, by the store's clock. Returns a fencing number
    /// that grows with each new holder, or `None` while another holder has the right.
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>>;

    /// Releases the right, if `holder` has it.
    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()>;

    /// Releases the right and forgets its number, if `holder` has it. Only for names that are never used again, which
    /// would otherwise stay in the store.
    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()>;
}

/// Records of events: they are appended, read, and removed after their time, but never changed.
pub trait LogStore: Send + Sync {
    /// Appends records in order, all or none. They are shared, so that a caller can keep them for another attempt.
    fn append(&self, space: KeySpace, records: Arc<[LogRecord]>) -> StoreFuture<'_, ()>;

    /// Returns matching records, newest first.
    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>>;

    /// Removes records older than `before`. Returns their number.
    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64>;

    /// Removes the oldest records until the space has at most `bytes` bytes as stored. Returns their number. Records
    /// that were appended together may go together.
    fn trim_to_size(&self, space: KeySpace, bytes: u64) -> StoreFuture<'_, u64>;
}

/// Name and value of a tag, such as `("tool", "search")`.
pub type RecordTag = (&'static str, Cow<'static, str>);

/// A record of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Time, with millisecond precision.
    pub time: SystemTime,
    /// Tags to find it by.
    pub tags: Vec<RecordTag>,
    /// The record as JSON.
    pub body: String,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Number, which grows with each record.
    pub number: u64,
    /// Time of the event.
    pub time: SystemTime,
    /// The record as JSON.
    pub body: String,
}

/// A selection of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Tags that records must have, all of them.
    pub tags: Vec<(&'static str, String)>,
    /// Earliest time, inclusive.
    pub since: Option<SystemTime>,
    /// Latest time, exclusive.
    pub until: Option<SystemTime>,
    /// Upper bound of numbers, exclusive: for the next page.
    pub before: Option<u64>,
    /// Maximum number of records.
    pub limit: usize,
}

/// The kind of a store's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Not reachable, or locked by another process. A retry may succeed.
    Unavailable,
    /// No space left.
    Full,
    /// The data is corrupt, or of a later version of Toolyard.
    Unreadable,
    /// The queue of writes is full.
    Busy,
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "the store cannot be reached",
            Self::Full => "the store has no room left",
            Self::Unreadable => "the store cannot be read",
            Self::Busy => "the store has too much to write",
        })
    }
}

/// The error of a store.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct StoreError {
    /// Kind of the error.
    pub kind: StoreErrorKind,
    /// Cause, for the log.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    /// Creates an error.
    pub fn new(kind: StoreErrorKind, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }
}
