//! Ports for what outlives the process: who implements them decides where it is kept.
//!
//! Four shapes are enough for everything that the yard remembers: small values by key ([`Kv`]), large ones ([`Blob`]),
//! who may do something alone ([`Lease`]), and what has happened ([`Log`]). What is acknowledged survives the end of
//! the process, however that ends. Each method fails with a [`StoreError`] that says what kind of trouble it is; calls
//! that need nothing of the store go on meanwhile.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Everything that is kept.
pub trait Store: Kv + Blob + Lease + Log {}

impl<T: Kv + Blob + Lease + Log + ?Sized> Store for T {}

/// What a method of a store comes to.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A part of a store that one owner has for itself, such as `keys`. Owners declare theirs as constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Space(pub &'static str);

/// Small values by key. A key is any text, and is found again as it was given.
pub trait Kv: Send + Sync {
    /// The value of a key. One that has expired is none.
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>>;

    /// Sets a value where `condition` holds; gives its version, or `None` where the condition did not hold.
    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>>;

    /// Removes a key. Whether there was one.
    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool>;

    /// At most `limit` keys that begin with `prefix` and come behind `after`, in the order of their bytes.
    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>>;

    /// How many bytes all values of a space have together. Those that have expired may be counted for a while.
    fn size(&self, space: Space) -> Stored<'_, u64>;

    /// A number that grows with every change in a space, by whichever process: who has seen it knows whether to look
    /// again. That something expired is no change.
    fn revision(&self, space: Space) -> Stored<'_, u64>;
}

/// A value as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What was put.
    pub bytes: Bytes,
    /// Which of the values of its key it is: no two have the same.
    pub version: u64,
    /// From when on it is none, by the store's own clock; kept to the millisecond.
    pub expires: Option<SystemTime>,
}

/// A value that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The value.
    pub bytes: Bytes,
    /// What must be true of the key.
    pub condition: Condition,
    /// From when on it is none, by the store's own clock. `None`: it stays.
    pub expires: Option<SystemTime>,
}

impl Put {
    /// A value that stays, whatever there was.
    pub fn always(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), condition: Condition::Always, expires: None }
    }
}

/// What must be true of a key for a value to be put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Always,
    /// It has no value.
    Absent,
    /// Its value has this version.
    Version(u64),
}

/// Large values, such as files.
pub trait Blob: Send + Sync {
    /// Keeps bytes under a name, in the place of what it had.
    fn put_blob<'a>(&'a self, space: Space, name: &'a str, bytes: Bytes) -> Stored<'a, ()>;

    /// The bytes of a name.
    fn get_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, Option<Bytes>>;

    /// Removes a name. Whether there was one.
    fn delete_blob<'a>(&'a self, space: Space, name: &'a str) -> Stored<'a, bool>;
}

/// Who may do something alone, for a time.
pub trait Lease: Send + Sync {
    /// Takes, or prolongs, the right for `holder` until `time` from now, by the store's own clock. Gives a number that grows with each new
    /// holder (others can tell an old holder's writes by it), or `None` while somebody else has it.
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> Stored<'a, Option<u64>>;

    /// Gives the right back, if `holder` has it.
    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> Stored<'a, ()>;
}

/// What has happened: records are added, read, and after their time removed, but never changed.
pub trait Log: Send + Sync {
    /// Adds records, all or none. They are kept in this order.
    fn append(&self, space: Space, records: Vec<Record>) -> Stored<'_, ()>;

    /// Records that fit, newest first.
    fn read(&self, space: Space, query: Query) -> Stored<'_, Vec<Kept>>;

    /// Removes what is older than `before`; gives how many records that was.
    fn trim(&self, space: Space, before: SystemTime) -> Stored<'_, u64>;
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When; kept to the millisecond.
    pub time: SystemTime,
    /// What it can be found by, such as `("tool", "search")`.
    pub tags: Vec<(&'static str, String)>,
    /// All that is known of it, as JSON.
    pub body: String,
}

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its number: later ones have larger ones.
    pub number: u64,
    /// When it happened.
    pub time: SystemTime,
    /// All that is known of it.
    pub body: String,
}

/// Which records to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Those that have all of these tags.
    pub tags: Vec<(&'static str, String)>,
    /// Those that happened then or later.
    pub since: Option<SystemTime>,
    /// Those that happened before then.
    pub until: Option<SystemTime>,
    /// Those with a smaller number: the next page.
    pub before: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// What kind of trouble a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It cannot be reached, or somebody else has it locked. Worth another try.
    Unavailable,
    /// There is no room left.
    Full,
    /// What is kept is not what was written, or of a later version of Toolyard.
    Unreadable,
    /// So much waits to be written already that it takes no more.
    Busy,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "the store cannot be reached",
            Self::Full => "the store has no room left",
            Self::Unreadable => "the store cannot be read",
            Self::Busy => "the store has too much to write",
        })
    }
}

/// Why something was not kept, or not read.
#[derive(Debug, thiserror::Error)]
#[error("{trouble}")]
pub struct StoreError {
    /// The kind of trouble.
    pub trouble: Trouble,
    /// What the database says, for the log.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    /// An error of this kind.
    pub fn new(trouble: Trouble, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { trouble, source: source.into() }
    }
}
