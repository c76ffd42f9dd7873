//! Small values by key.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreFuture, StoredValue, WriteCondition};

use super::{SqliteStore, unix_millis_now};
use crate::convert::{self, KeyRange};

/// Maximum number of expired values that one sweep removes, so that it delays other writes no longer than a write does.
const SWEEP_BATCH: usize = 500;

impl KeyValueStore for SqliteStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        let key = key.to_owned();
        Box::pin(self.read(move |connection| get(connection, space, &key)))
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        let key = key.to_owned();
        Box::pin(self.write(move |connection| self::put(connection, space, &key, &put)))
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        let key = key.to_owned();
        Box::pin(self.write(move |connection| delete(connection, space, &key)))
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        let keys = KeyRange::of(prefix, after);
        Box::pin(self.read(move |connection| list(connection, space, &keys, limit)))
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(self.read(move |connection| size(connection, space).map(convert::to_unsigned)))
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(self.read(move |connection| revision(connection, space).map(convert::to_unsigned)))
    }
}

fn get(connection: &Connection, space: KeySpace, key: &str) -> rusqlite::Result<Option<StoredValue>> {
    const GET: &str = "SELECT value, version, expires_ms FROM kv \
        WHERE space = ?1 AND key = ?2 AND (expires_ms IS NULL OR expires_ms > ?3)";
    let mut statement = connection.prepare_cached(GET)?;
    statement.query_row(params![space.0, key, unix_millis_now()], |row| value(row, 0)).optional()
}

fn put(
    connection: &Connection,
    space: KeySpace,
    key: &str,
    put: &PutRequest,
) -> rusqlite::Result<Option<u64>> {
    const PUT: &str = "INSERT OR REPLACE INTO kv (space, key, value, version, expires_ms) \
        VALUES (:space, :key, :value, :version, :expires)";
    // No write comes between this read and the write below: SQLite has one writer at a time, across processes.
    let current = get(connection, space, key)?.map(|value| value.version);
    let condition_holds = match put.condition {
        WriteCondition::Always => true,
        WriteCondition::Absent => current.is_none(),
        WriteCondition::Version(version) => current == Some(version),
    };
    if !condition_holds {
        return Ok(None);
    }
    let version = next_revision(connection, space)?;
    connection.prepare_cached(PUT)?.execute(named_params! {
        ":space": space.0,
        ":key": key,
        ":value": &put.bytes[..],
        ":version": version,
        ":expires": put.expires.map(convert::unix_millis),
    })?;
    Ok(Some(convert::to_unsigned(version)))
}

fn delete(connection: &Connection, space: KeySpace, key: &str) -> rusqlite::Result<bool> {
    const DELETE: &str =
        "DELETE FROM kv WHERE space = ?1 AND key = ?2 RETURNING expires_ms IS NULL OR expires_ms > ?3";
    let mut statement = connection.prepare_cached(DELETE)?;
    let existed =
        statement.query_row(params![space.0, key, unix_millis_now()], |row| row.get(0)).optional()?;
    let was = existed.unwrap_or(false);
    if was {
        next_revision(connection, space)?;
    }
    Ok(was)
}

fn list(
    connection: &Connection,
    space: KeySpace,
    keys: &KeyRange,
    limit: usize,
) -> rusqlite::Result<Vec<(String, StoredValue)>> {
    const FROM: &str = "SELECT key, value, version, expires_ms FROM kv WHERE space = ?1 AND key >= ?2 \
        AND (expires_ms IS NULL OR expires_ms > ?3) ORDER BY key LIMIT ?4";
    const BETWEEN: &str = "SELECT key, value, version, expires_ms FROM kv WHERE space = ?1 AND key >= ?2 \
        AND (expires_ms IS NULL OR expires_ms > ?3) AND key < ?5 ORDER BY key LIMIT ?4";
    let entry = |row: &Row<'_>| Ok((row.get(0)?, value(row, 1)?));
    let (from, now, limit) = (&keys.from, unix_millis_now(), convert::row_limit(limit));
    match &keys.end {
        Some(end) => {
            let mut statement = connection.prepare_cached(BETWEEN)?;
            statement.query_map(params![space.0, from, now, limit, end], entry)?.collect()
        }
        None => {
            let mut statement = connection.prepare_cached(FROM)?;
            statement.query_map(params![space.0, from, now, limit], entry)?.collect()
        }
    }
}

/// SQLite knows the length of a blob without reading it.
fn size(connection: &Connection, space: KeySpace) -> rusqlite::Result<i64> {
    const SIZE: &str = "SELECT coalesce(sum(length(value)), 0) FROM kv \
        WHERE space = ?1 AND (expires_ms IS NULL OR expires_ms > ?2)";
    connection.prepare_cached(SIZE)?.query_row(params![space.0, unix_millis_now()], |row| row.get(0))
}

fn revision(connection: &Connection, space: KeySpace) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT number FROM revision WHERE space = ?1")?;
    Ok(statement.query_row([space.0], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// Counts a change of a space. The number of the change is also the version of the value; it is not reused.
fn next_revision(connection: &Connection, space: KeySpace) -> rusqlite::Result<i64> {
    const CHANGE: &str = "INSERT INTO revision (space, number) VALUES (?1, 1) \
        ON CONFLICT (space) DO UPDATE SET number = number + 1 RETURNING number";
    connection.prepare_cached(CHANGE)?.query_row([space.0], |row| row.get(0))
}

/// Removes some expired values.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    const SWEEP: &str = "DELETE FROM kv WHERE (space, key) IN \
        (SELECT space, key FROM kv WHERE expires_ms <= ?1 LIMIT ?2)";
    connection.prepare_cached(SWEEP)?.execute(params![unix_millis_now(), convert::row_limit(SWEEP_BATCH)])?;
    Ok(())
}

/// The value in the columns from `at` on.
fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<StoredValue> {
    Ok(StoredValue {
        bytes: Bytes::from(row.get::<_, Vec<u8>>(at)?),
        version: convert::to_unsigned(row.get(at + 1)?),
        expires: row.get::<_, Option<i64>>(at + 2)?.map(convert::system_time),
    })
}
