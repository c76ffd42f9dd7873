//! What has happened.

use std::time::SystemTime;

use rusqlite::{Connection, Row, ToSql, params, params_from_iter};
use toolyard_core::store::{Kept, Log, Query, Record, Space, Stored};

use super::Sqlite;
use crate::convert;
use crate::select::{self, Dialect};

/// How many records one write removes: others write between two of them.
const TRIMMED: usize = 1000;

impl Log for Sqlite {
    fn append(&self, space: Space, records: Vec<Record>) -> Stored<'_, ()> {
        Box::pin(self.write(move |connection| append(connection, space, &records)))
    }

    fn read(&self, space: Space, query: Query) -> Stored<'_, Vec<Kept>> {
        Box::pin(Self::read(self, move |connection| read(connection, space, &query)))
    }

    fn trim(&self, space: Space, before: SystemTime) -> Stored<'_, u64> {
        let before = convert::millis(before);
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let some = self.write(move |connection| trim(connection, space, before)).await?;
                removed += some as u64;
                if some < TRIMMED {
                    return Ok(removed);
                }
            }
        })
    }
}

fn append(connection: &Connection, space: Space, records: &[Record]) -> rusqlite::Result<()> {
    // A tag that a record has twice is one.
    const TAG: &str = "INSERT OR IGNORE INTO log_tag (space, name, value, number) VALUES (?1, ?2, ?3, ?4)";
    let mut record =
        connection.prepare_cached("INSERT INTO log (space, time_ms, body) VALUES (?1, ?2, ?3)")?;
    let mut tag = connection.prepare_cached(TAG)?;
    for Record { time, tags, body } in records {
        let number = record.insert(params![space.0, convert::millis(*time), body])?;
        for (name, value) in tags {
            tag.execute(params![space.0, name, value, number])?;
        }
    }
    Ok(())
}

fn read(connection: &Connection, space: Space, query: &Query) -> rusqlite::Result<Vec<Kept>> {
    let records = select::records(query.tags.len(), Dialect { mark: '?', schema: "" });
    let since = query.since.map_or(i64::MIN, convert::millis);
    let until = query.until.map_or(i64::MAX, convert::millis);
    let before = query.before.map_or(i64::MAX, convert::bound);
    let limit = convert::limit(query.limit);
    let mut parameters: Vec<&dyn ToSql> = vec![&space.0, &since, &until, &before, &limit];
    for (name, value) in &query.tags {
        parameters.extend([name as &dyn ToSql, value]);
    }
    connection.prepare_cached(&records)?.query_map(params_from_iter(parameters), kept)?.collect()
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(Kept { number: convert::number(row.get(0)?), time: convert::time(row.get(1)?), body: row.get(2)? })
}

fn trim(connection: &Connection, space: Space, before: i64) -> rusqlite::Result<usize> {
    const TRIM: &str = "DELETE FROM log WHERE number IN \
        (SELECT number FROM log WHERE space = ?1 AND time_ms < ?2 LIMIT ?3)";
    connection.prepare_cached(TRIM)?.execute(params![space.0, before, convert::limit(TRIMMED)])
}
