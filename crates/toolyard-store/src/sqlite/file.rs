//! The file of a store, and connections to it.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{migration, trouble};
use crate::OpenError;

/// How long a statement waits for somebody who has the file locked, such as a command that writes beside the gateway,
/// which takes milliseconds. Whoever has it for longer is reported instead.
const LOCKED: Duration = Duration::from_millis(500);

/// What a file of the log of changes keeps on the disk after a burst.
const LOG_BYTES: u32 = 64 << 20;

/// How many prepared statements a connection keeps: about as many as there are.
const STATEMENTS: usize = 64;

/// The connection that writes. The file is made where there is none, for this user alone: it holds what keys are
/// compared with.
pub(super) fn writing(path: &Path) -> Result<Connection, OpenError> {
    make(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    connect(path, flags)
        .and_then(|connection| {
            // FULL: a commit is on the disk when it is acknowledged.
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(connection)
        })
        .map_err(|error| refused(path, error))
}

/// A connection that only reads.
pub(super) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// A database that ends with its connection.
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// The version of the tables in a file, and its size. `None`, where there are no tables yet.
pub(super) fn describe(path: &Path) -> Result<(Option<i64>, u64), OpenError> {
    match std::fs::metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, 0)),
        Err(source) => return Err(OpenError::File { path: path.to_owned(), source }),
    }
    let connection = reading(path).map_err(|error| refused(path, error))?;
    let version = migration::version(&connection).map_err(|unfit| unfit.at(&path.display()))?;
    let size = pages(&connection).map_err(|error| refused(path, error))? + log(path);
    Ok(((version > 0).then_some(version), size))
}

/// Bytes of all pages, those among them that are in the log of changes only.
fn pages(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok((pages * bytes).unsigned_abs())
}

/// Bytes of the log of changes beside the file, where there is one.
fn log(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

/// That the database at this path says no.
pub(super) fn refused(path: &Path, error: rusqlite::Error) -> OpenError {
    OpenError::Database { location: path.display().to_string(), source: trouble::error(error) }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCKED)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn make(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })?;
    }
    // SQLite gives the files that it puts beside this one the same mode.
    let made = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|source| OpenError::File { path: path.to_owned(), source })
}
