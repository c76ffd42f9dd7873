//! Persistent state: the traits of [`toolyard_core::store`] on SQLite, and on PostgreSQL for several gateways.
//!
//! - [`location`]: locations of stores;
//! - [`durable_count`]: a count that survives a kill of the process;
//! - [`error`]: errors of opening and of backing up, with their remedies;
//! - [`reopening`]: a store that may be unavailable at first, or for a while;
//! - `sqlite`: one file, one writer thread, two reader threads;
//! - `postgres`: a connection pool;
//! - `convert`, `log_block`, `select`: shared by both databases.
//!
//! Durability of an acknowledged write: on SQLite, its commit has reached the disk (`fsync`), which all writes that
//! waited meanwhile share; in memory, none; on PostgreSQL, as its `synchronous_commit` says, by default the same
//! `fsync`. No other crate of the workspace contains SQL.

mod convert;
pub mod durable_count;
pub mod error;
pub mod location;
mod log_block;
mod postgres;
pub mod reopening;
mod select;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolyard_core::store::Store;

pub use durable_count::DurableCount;
pub use error::{BackupError, StoreOpenError};
pub use location::{DatabaseLocation, PostgresUrl};
pub use reopening::ReopeningStore;

/// The location of a store, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Location of the store.
    pub location: DatabaseLocation,
    /// Maximum number of waiting writes, and of waiting reads; more are refused as
    /// [`Busy`](toolyard_core::store::StoreErrorKind::Busy).
    pub queue: usize,
    /// Maximum number of connections to a database server.
    pub connections: usize,
}

impl StoreOptions {
    /// A store at this location, with the default limits of a manifest.
    #[must_use]
    pub const fn at(location: DatabaseLocation) -> Self {
        Self { location, queue: 1024, connections: 8 }
    }
}

/// The state of a store, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDescription {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: &'static str,
    /// Location of the store, without a password.
    pub location: String,
    /// Version of its tables; `None` if there are none yet.
    pub version: Option<i64>,
    /// Version that this program needs, and migrates older stores to when it opens them.
    pub supported_version: i64,
    /// Size in bytes.
    pub size: u64,
}

/// A store that can be closed before the process ends.
pub trait ClosableStore: Store {
    /// Closes the store after the work that is queued; the store accepts no more work. A store in a file is then a
    /// single file, unless another process has it open.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens a store, creates it if it does not exist, and migrates its tables to the current version.
///
/// # Errors
/// Errors if the store cannot be reached or created, or is of a newer version.
pub async fn open(options: &StoreOptions) -> Result<Arc<dyn Store>, StoreOpenError> {
    Ok(open_closable(options).await?)
}

/// Opens a store as [`open`] does, for an owner that closes it.
///
/// # Errors
/// As [`open`].
pub async fn open_closable(options: &StoreOptions) -> Result<Arc<dyn ClosableStore>, StoreOpenError> {
    match &options.location {
        DatabaseLocation::Memory => Ok(Arc::new(sqlite::memory(options.queue).await?)),
        DatabaseLocation::File(path) => Ok(Arc::new(sqlite::open(path, options.queue).await?)),
        DatabaseLocation::Postgres(url) => {
            Ok(Arc::new(postgres::open(url, options.connections, options.queue).await?))
        }
    }
}

/// Opens an existing store.
///
/// # Errors
/// Errors if there is none, and as [`open`].
pub async fn open_existing(options: &StoreOptions) -> Result<Arc<dyn ClosableStore>, StoreOpenError> {
    let StoreDescription { version, location, .. } = describe(&options.location).await?;
    match version {
        None => Err(StoreOpenError::Missing { location }),
        Some(_) => open_closable(options).await,
    }
}

/// Describes a store without changing it; a missing store is not created.
///
/// # Errors
/// Errors if the store cannot be reached, or is not a store of Toolyard.
pub async fn describe(location: &DatabaseLocation) -> Result<StoreDescription, StoreOpenError> {
    let (version, size) = match location {
        DatabaseLocation::Memory => (None, 0),
        DatabaseLocation::File(path) => sqlite::describe(path).await?,
        DatabaseLocation::Postgres(url) => postgres::describe(url).await?,
    };
    let newest = match location {
        DatabaseLocation::Postgres(_) => postgres::LATEST_VERSION,
        _ => sqlite::LATEST_VERSION,
    };
    Ok(StoreDescription {
        kind: location.kind(),
        location: location.to_string(),
        version,
        supported_version: newest,
        size,
    })
}

/// Copies a store in a file to another file, as a snapshot of one moment, while gateways go on writing. Returns the
/// size of the copy in bytes. The copy is itself a store.
///
/// # Errors
/// Errors if the store is not a file, if `to` exists, or if reading or writing fails.
pub async fn backup(location: &DatabaseLocation, to: &Path) -> Result<u64, BackupError> {
    match location {
        DatabaseLocation::Memory => Err(BackupError::Memory),
        DatabaseLocation::File(path) => sqlite::backup(path, to).await,
        DatabaseLocation::Postgres(_) => Err(BackupError::Postgres),
    }
}
