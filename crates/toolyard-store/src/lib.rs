//! What outlives the process: the ports of [`toolyard_core::store`] on SQLite, and on PostgreSQL for several gateways.
//!
//! - [`location`]: where a store is;
//! - [`error`]: why one cannot be opened or backed up, and what to do;
//! - [`reopening`]: a store that may be out of order at first, or for a while;
//! - `sqlite`: one file, one thread that writes, two that read;
//! - `postgres`: a pool of connections;
//! - `convert`, `select`: what the two have in common.
//!
//! What an acknowledged write has waited for: on SQLite, that a commit has reached the disk (`fsync`), which it shares
//! with all that waited meanwhile; in a store in memory, nothing; on PostgreSQL, whatever `synchronous_commit` says there,
//! which is the same `fsync` unless somebody changed it. Nobody else in the workspace knows SQL.

mod convert;
pub mod error;
pub mod location;
#[cfg(feature = "postgres")]
mod postgres;
pub mod reopening;
mod select;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use toolyard_core::store::Store;

pub use error::{BackupError, OpenError};
pub use location::{Location, PostgresUrl};
pub use reopening::Reopening;

/// Which store, and how much may wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Where it is.
    pub location: Location,
    /// Writes that wait, and as many reads; more are refused as [`Busy`](toolyard_core::store::Trouble::Busy).
    pub queue: usize,
    /// Connections to a database server.
    pub connections: usize,
}

impl StoreOptions {
    /// A store at this place, with the bounds that a manifest has by default.
    #[must_use]
    pub const fn at(location: Location) -> Self {
        Self { location, queue: 1024, connections: 8 }
    }
}

/// How a store is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: &'static str,
    /// Where it is; a password is not in it.
    pub location: String,
    /// The version of its tables. `None`: there are none yet.
    pub version: Option<i64>,
    /// The version that this program needs, and makes of an older one when it opens it.
    pub newest: i64,
    /// Bytes that it takes.
    pub size: u64,
}

/// Opens a store, makes it where there is none, and brings its tables up to date.
///
/// # Errors
/// When it cannot be reached or made, or is of a later version.
pub async fn open(options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    match &options.location {
        Location::Memory => Ok(Arc::new(sqlite::memory(options.queue).await?)),
        Location::File(path) => Ok(Arc::new(sqlite::open(path, options.queue).await?)),
        #[cfg(feature = "postgres")]
        Location::Postgres(url) => {
            Ok(Arc::new(postgres::open(url, options.connections, options.queue).await?))
        }
        #[cfg(not(feature = "postgres"))]
        Location::Postgres(_) => Err(OpenError::WithoutPostgres),
    }
}

/// Opens a store that is there already.
///
/// # Errors
/// When there is none, or as [`open`].
pub async fn open_existing(options: &StoreOptions) -> Result<Arc<dyn Store>, OpenError> {
    let Description { version, location, .. } = describe(&options.location).await?;
    match version {
        None => Err(OpenError::Missing { location }),
        Some(_) => open(options).await,
    }
}

/// Says how a store is, and changes nothing: one that is not there is not made.
///
/// # Errors
/// When it cannot be reached, or is none of ours.
pub async fn describe(location: &Location) -> Result<Description, OpenError> {
    let (version, size) = match location {
        Location::Memory => (None, 0),
        Location::File(path) => sqlite::describe(path).await?,
        #[cfg(feature = "postgres")]
        Location::Postgres(url) => postgres::describe(url).await?,
        #[cfg(not(feature = "postgres"))]
        Location::Postgres(_) => return Err(OpenError::WithoutPostgres),
    };
    let newest = match location {
        #[cfg(feature = "postgres")]
        Location::Postgres(_) => postgres::NEWEST,
        _ => sqlite::NEWEST,
    };
    Ok(Description { kind: location.kind(), location: location.to_string(), version, newest, size })
}

/// Copies a store in a file to another file, as it is at one moment, while gateways go on writing. Gives the bytes of the
/// copy, which is a store itself.
///
/// # Errors
/// When the store is no file, when there is something at `to` already, or when one of the two fails.
pub async fn backup(location: &Location, to: &Path) -> Result<u64, BackupError> {
    match location {
        Location::Memory => Err(BackupError::Memory),
        Location::File(path) => sqlite::backup(path, to).await,
        Location::Postgres(_) => Err(BackupError::Postgres),
    }
}
