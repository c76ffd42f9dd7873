//! Small values by key.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use toolyard_core::store::{Condition, Kv, Put, Space, Stored, Value};

use super::{Sqlite, now};
use crate::convert::{self, Keys};

/// How many expired values are removed at a time: what waits behind a sweep waits no longer than for a write.
const SWEPT: usize = 500;

impl Kv for Sqlite {
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>> {
        let key = key.to_owned();
        Box::pin(self.read(move |connection| get(connection, space, &key)))
    }

    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>> {
        let key = key.to_owned();
        Box::pin(self.write(move |connection| self::put(connection, space, &key, &put)))
    }

    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool> {
        let key = key.to_owned();
        Box::pin(self.write(move |connection| delete(connection, space, &key)))
    }

    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>> {
        let keys = Keys::of(prefix, after);
        Box::pin(self.read(move |connection| list(connection, space, &keys, limit)))
    }

    fn size(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(self.read(move |connection| size(connection, space).map(convert::number)))
    }

    fn revision(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(self.read(move |connection| revision(connection, space).map(convert::number)))
    }
}

fn get(connection: &Connection, space: Space, key: &str) -> rusqlite::Result<Option<Value>> {
    const GET: &str = "SELECT value, version, expires_ms FROM kv \
        WHERE space = ?1 AND key = ?2 AND (expires_ms IS NULL OR expires_ms > ?3)";
    let mut statement = connection.prepare_cached(GET)?;
    statement.query_row(params![space.0, key, now()], |row| value(row, 0)).optional()
}

fn put(connection: &Connection, space: Space, key: &str, put: &Put) -> rusqlite::Result<Option<u64>> {
    const PUT: &str = "INSERT OR REPLACE INTO kv (space, key, value, version, expires_ms) \
        VALUES (:space, :key, :value, :version, :expires)";
    // Nobody writes between this look and the write: there is one writer at a time, of all processes.
    let current = get(connection, space, key)?.map(|value| value.version);
    let holds = match put.condition {
        Condition::Always => true,
        Condition::Absent => current.is_none(),
        Condition::Version(version) => current == Some(version),
    };
    if !holds {
        return Ok(None);
    }
    let version = change(connection, space)?;
    connection.prepare_cached(PUT)?.execute(named_params! {
        ":space": space.0,
        ":key": key,
        ":value": &put.bytes[..],
        ":version": version,
        ":expires": put.expires.map(convert::millis),
    })?;
    Ok(Some(convert::number(version)))
}

fn delete(connection: &Connection, space: Space, key: &str) -> rusqlite::Result<bool> {
    const DELETE: &str =
        "DELETE FROM kv WHERE space = ?1 AND key = ?2 RETURNING expires_ms IS NULL OR expires_ms > ?3";
    let mut statement = connection.prepare_cached(DELETE)?;
    let was = statement.query_row(params![space.0, key, now()], |row| row.get(0)).optional()?;
    let was = was.unwrap_or(false);
    if was {
        change(connection, space)?;
    }
    Ok(was)
}

fn list(
    connection: &Connection,
    space: Space,
    keys: &Keys,
    limit: usize,
) -> rusqlite::Result<Vec<(String, Value)>> {
    const FROM: &str = "SELECT key, value, version, expires_ms FROM kv WHERE space = ?1 AND key >= ?2 \
        AND (expires_ms IS NULL OR expires_ms > ?3) ORDER BY key LIMIT ?4";
    const BETWEEN: &str = "SELECT key, value, version, expires_ms FROM kv WHERE space = ?1 AND key >= ?2 \
        AND (expires_ms IS NULL OR expires_ms > ?3) AND key < ?5 ORDER BY key LIMIT ?4";
    let entry = |row: &Row<'_>| Ok((row.get(0)?, value(row, 1)?));
    let (from, now, limit) = (&keys.from, now(), convert::limit(limit));
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

/// Of a blob its length is known without reading it.
fn size(connection: &Connection, space: Space) -> rusqlite::Result<i64> {
    const SIZE: &str = "SELECT coalesce(sum(length(value)), 0) FROM kv \
        WHERE space = ?1 AND (expires_ms IS NULL OR expires_ms > ?2)";
    connection.prepare_cached(SIZE)?.query_row(params![space.0, now()], |row| row.get(0))
}

fn revision(connection: &Connection, space: Space) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT number FROM revision WHERE space = ?1")?;
    Ok(statement.query_row([space.0], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// Counts a change of a space. The number of the change is the version of what it puts: it is not given again.
fn change(connection: &Connection, space: Space) -> rusqlite::Result<i64> {
    const CHANGE: &str = "INSERT INTO revision (space, number) VALUES (?1, 1) \
        ON CONFLICT (space) DO UPDATE SET number = number + 1 RETURNING number";
    connection.prepare_cached(CHANGE)?.query_row([space.0], |row| row.get(0))
}

/// Removes some values that have expired.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    const SWEEP: &str = "DELETE FROM kv WHERE (space, key) IN \
        (SELECT space, key FROM kv WHERE expires_ms <= ?1 LIMIT ?2)";
    connection.prepare_cached(SWEEP)?.execute(params![now(), convert::limit(SWEPT)])?;
    Ok(())
}

/// The value whose columns begin at this one.
fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<Value> {
    Ok(Value {
        bytes: Bytes::from(row.get::<_, Vec<u8>>(at)?),
        version: convert::number(row.get(at + 1)?),
        expires: row.get::<_, Option<i64>>(at + 2)?.map(convert::time),
    })
}
