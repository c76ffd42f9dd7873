//! SQLite: one file, one thread that writes, two that read.
//!
//! - [`mod@file`]: the file, and connections to it;
//! - [`migration`]: its tables;
//! - [`writer`], [`readers`]: the threads;
//! - [`kv`], [`blob`], [`lease`], [`log`]: the ports;
//! - [`trouble`]: what its errors mean;
//! - [`mod@copy`]: how backups are made.

mod blob;
mod copy;
mod file;
mod kv;
mod lease;
mod log;
mod migration;
mod readers;
mod trouble;
mod writer;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::Connection;
use tokio::task::spawn_blocking;
use toolyard_core::store::{StoreError, Trouble};

use self::readers::Readers;
use self::writer::Writer;
use crate::{BackupError, OpenError, convert};

pub(crate) use self::migration::NEWEST;

/// A store on SQLite. When it is dropped, its threads end after what waits for them.
pub(crate) struct Sqlite {
    writer: Writer,
    /// None: what is in memory is known to one connection only.
    readers: Option<Readers>,
}

/// Opens a store in a file.
pub(crate) async fn open(path: &Path, queue: usize) -> Result<Sqlite, OpenError> {
    let path = path.to_owned();
    blocking(move || {
        let mut connection = file::writing(&path)?;
        migration::migrate(&mut connection).map_err(|unfit| unfit.at(&path.display()))?;
        let database = |error| file::refused(&path, error);
        let reading = [file::reading(&path).map_err(database)?, file::reading(&path).map_err(database)?];
        let readers = Some(Readers::start(reading, queue).map_err(|error| no_thread(&path, error))?);
        let writer = Writer::start(connection, queue).map_err(|error| no_thread(&path, error))?;
        Ok(Sqlite { writer, readers })
    })
    .await
}

/// Opens a store in memory.
pub(crate) async fn memory(queue: usize) -> Result<Sqlite, OpenError> {
    blocking(move || {
        let path = Path::new("memory");
        let mut connection = file::in_memory().map_err(|error| file::refused(path, error))?;
        migration::migrate(&mut connection).map_err(|unfit| unfit.at(&path.display()))?;
        let writer = Writer::start(connection, queue).map_err(|error| no_thread(path, error))?;
        Ok(Sqlite { writer, readers: None })
    })
    .await
}

/// The version of the tables in a file, and its size.
pub(crate) async fn describe(path: &Path) -> Result<(Option<i64>, u64), OpenError> {
    let path = path.to_owned();
    blocking(move || file::describe(&path)).await
}

/// Copies the store in a file.
pub(crate) async fn backup(path: &Path, to: &Path) -> Result<u64, BackupError> {
    let (path, to): (PathBuf, PathBuf) = (path.to_owned(), to.to_owned());
    blocking(move || copy::copy(&path, &to)).await
}

/// What waits for the disk does it where nobody else waits with it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn no_thread(path: &Path, source: std::io::Error) -> OpenError {
    let source = StoreError::new(Trouble::Unavailable, source);
    OpenError::Database { location: path.display().to_string(), source }
}

impl Sqlite {
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

/// The time by this machine's clock, in milliseconds since 1970.
fn now() -> i64 {
    convert::millis(SystemTime::now())
}
