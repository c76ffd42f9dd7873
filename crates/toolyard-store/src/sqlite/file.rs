//! The file of the store, and connections to it.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{errors, migration};
use crate::StoreOpenError;

/// Maximum time that a statement waits for a lock on the file. Commands that write beside the gateway hold it for
/// milliseconds; a longer lock is an error.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time that opening waits for a lock on the file. Processes that start at once create the tables in turn, and
/// each commit waits for the disk.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between attempts to switch a new file to a write-ahead log, about the time that the switch takes.
const WAL_SWITCH_PAUSE: Duration = Duration::from_millis(2);

/// Size in bytes to which the write-ahead log shrinks after a burst.
const WAL_SIZE_LIMIT: u32 = 64 << 20;

/// Number of prepared statements that a connection caches: about the number of statements in this crate.
const CACHED_STATEMENTS: usize = 64;

/// Opens the connection that writes, and migrates the tables. Creates a missing file for this user alone: it contains
/// the hashes of keys.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreOpenError> {
    create_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database_error = |error| database_error(path, error);
    let mut connection = connect(path, flags, OPEN_TIMEOUT).map_err(database_error)?;
    configure_writer(&connection).map_err(database_error)?;
    migration::migrate(&mut connection).map_err(|error| error.into_open_error(&path.display()))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(database_error)?;
    Ok(connection)
}

fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    use_write_ahead_log(connection)?;
    // FULL: a commit is on the disk when it is acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_SIZE_LIMIT)?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX, BUSY_TIMEOUT)
}

/// Switches the file to a write-ahead log.
///
/// Retries while other processes do the same: each of them holds a shared lock and asks for the exclusive one, a
/// deadlock that SQLite reports at once, without the busy timeout.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                thread::sleep(WAL_SWITCH_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Copies the write-ahead log into the file, so that the file is complete by itself.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Opens a database that ends with its connection.
pub(super) fn open_in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// The version of the tables in a file (`None` if there are none yet), and its size.
pub(super) fn describe(path: &Path) -> Result<(Option<i64>, u64), StoreOpenError> {
    match std::fs::metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, 0)),
        Err(source) => return Err(StoreOpenError::File { path: path.to_owned(), source }),
    }
    let connection = open_reader(path).map_err(|error| database_error(path, error))?;
    let version = migration::version(&connection).map_err(|error| error.into_open_error(&path.display()))?;
    let size = database_bytes(&connection).map_err(|error| database_error(path, error))? + wal_bytes(path);
    Ok(((version > 0).then_some(version), size))
}

/// Size of all pages in bytes, including pages that are only in the write-ahead log.
fn database_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok((pages * bytes).unsigned_abs())
}

/// Size of the write-ahead log in bytes; zero if there is none.
fn wal_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

/// An error of the database at this path.
pub(super) fn database_error(path: &Path, error: rusqlite::Error) -> StoreOpenError {
    StoreOpenError::Database { location: path.display().to_string(), source: errors::store_error(error) }
}

fn connect(path: &Path, flags: OpenFlags, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

fn create_file(path: &Path) -> Result<(), StoreOpenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        let outcome = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        outcome.map_err(|source| StoreOpenError::Folder { folder: folder.to_owned(), source })?;
    }
    // SQLite creates its other files with the same mode.
    let outcome =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    outcome.map(drop).map_err(|source| StoreOpenError::File { path: path.to_owned(), source })
}
