//! SQLite: one file, one writer thread, two reader threads.
//!
//! - [`mod@file`]: the file, and connections to it;
//! - [`migration`]: its tables;
//! - [`writer`], [`readers`]: the threads;
//! - [`kv`], [`blob`], [`lease`], [`log`]: the store traits; [`log_rows`] has log records of earlier versions;
//! - [`errors`]: classification of SQLite errors;
//! - [`backup_file`]: consistent copies of the file.

mod backup_file;
mod blob;
mod errors;
mod file;
mod kv;
mod lease;
mod log;
mod log_rows;
mod migration;
mod readers;
mod writer;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::task::spawn_blocking;
use toolyard_core::store::{StoreError, StoreErrorKind};

use self::readers::SqliteReaders;
use self::writer::SqliteWriter;
use crate::{BackupError, ClosableStore, StoreOpenError, convert};

pub(crate) use self::migration::LATEST_VERSION;

/// A store on SQLite. Its threads end after the drop, once their queues are empty.
pub(crate) struct SqliteStore {
    writer: SqliteWriter,
    /// `None` in memory: only one connection can see such a database.
    readers: Option<SqliteReaders>,
}

/// Opens a store in a file.
pub(crate) async fn open(path: &Path, queue: usize) -> Result<SqliteStore, StoreOpenError> {
    let path = path.to_owned();
    run_blocking(move || {
        let connection = file::open_writer(&path)?;
        let database_error = |error| file::database_error(&path, error);
        let connections = [
            file::open_reader(&path).map_err(database_error)?,
            file::open_reader(&path).map_err(database_error)?,
        ];
        let readers =
            Some(SqliteReaders::start(connections, queue).map_err(|error| thread_error(&path, error))?);
        let writer = SqliteWriter::start(connection, queue).map_err(|error| thread_error(&path, error))?;
        Ok(SqliteStore { writer, readers })
    })
    .await
}

/// Opens a store in memory.
pub(crate) async fn memory(queue: usize) -> Result<SqliteStore, StoreOpenError> {
    run_blocking(move || {
        let path = Path::new("memory");
        let mut connection = file::open_in_memory().map_err(|error| file::database_error(path, error))?;
        migration::migrate(&mut connection).map_err(|error| error.into_open_error(&path.display()))?;
        let writer = SqliteWriter::start(connection, queue).map_err(|error| thread_error(path, error))?;
        Ok(SqliteStore { writer, readers: None })
    })
    .await
}

/// The version of the tables in a file, and its size in bytes.
pub(crate) async fn describe(path: &Path) -> Result<(Option<i64>, u64), StoreOpenError> {
    let path = path.to_owned();
    run_blocking(move || file::describe(&path)).await
}

/// Copies the store in a file.
pub(crate) async fn backup(path: &Path, to: &Path) -> Result<u64, BackupError> {
    let (path, to): (PathBuf, PathBuf) = (path.to_owned(), to.to_owned());
    run_blocking(move || backup_file::back_up(&path, &to)).await
}

/// Runs blocking work on a thread of its own.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn thread_error(path: &Path, source: std::io::Error) -> StoreOpenError {
    let source = StoreError::new(StoreErrorKind::Unavailable, source);
    StoreOpenError::Database { location: path.display().to_string(), source }
}

impl ClosableStore for SqliteStore {
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The last connection that closes removes the files beside the store; one that only reads cannot.
            if let Some(readers) = &self.readers {
                readers.close().await;
            }
            self.writer.close().await;
        })
    }
}

impl SqliteStore {
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.readers {
            Some(readers) => readers.read(work).await,
            None => self.writer.write(work).await,
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.write(work).await
    }
}

/// The time of this machine's clock, in milliseconds since the Unix epoch.
fn unix_millis_now() -> i64 {
    convert::unix_millis(SystemTime::now())
}
