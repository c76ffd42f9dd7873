//! What has happened.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
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
    const RECORD: &str = "INSERT INTO log (space, time_ms, body, words) VALUES (?1, ?2, ?3, ?4)";
    // A tag that a record has twice is one.
    const SAID: &str = "INSERT OR IGNORE INTO log_said (word, number) VALUES (?1, ?2)";
    let mut record = connection.prepare_cached(RECORD)?;
    let mut said = connection.prepare_cached(SAID)?;
    let mut known = HashMap::new();
    for Record { time, tags, body } in records {
        let words = tags.iter().map(|(name, value)| match known.entry((*name, value.as_str())) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => Ok(*new.insert(word(connection, space, name, value)?)),
        });
        let words = words.collect::<rusqlite::Result<Vec<i64>>>()?;
        let number = record.insert(params![space.0, convert::millis(*time), body, listed(&words)])?;
        for word in words {
            said.execute([word, number])?;
        }
    }
    Ok(())
}

/// The number of what a tag says, which is given where it has none yet.
fn word(connection: &Connection, space: Space, name: &str, value: &str) -> rusqlite::Result<i64> {
    const FIND: &str = "SELECT word FROM log_word WHERE space = ?1 AND name = ?2 AND value = ?3";
    const GIVE: &str = "INSERT INTO log_word (space, name, value) VALUES (?1, ?2, ?3)";
    let found = connection.prepare_cached(FIND)?.query_row([space.0, name, value], |row| row.get(0));
    match found.optional()? {
        Some(word) => Ok(word),
        None => connection.prepare_cached(GIVE)?.insert([space.0, name, value]),
    }
}

/// Words as they stand in a record.
fn listed(words: &[i64]) -> String {
    let mut listed = String::new();
    for word in words {
        let comma = if listed.is_empty() { "" } else { "," };
        let _ = write!(listed, "{comma}{word}");
    }
    listed
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
        (SELECT number FROM log WHERE space = ?1 AND time_ms < ?2 LIMIT ?3) RETURNING number, words";
    const UNSAID: &str = "DELETE FROM log_said WHERE word = ?1 AND number = ?2";
    // Callers invent what tags say: what no record says any more must not stay.
    const UNUSED: &str =
        "DELETE FROM log_word WHERE word = ?1 AND NOT EXISTS (SELECT 1 FROM log_said WHERE word = ?1)";
    let parameters = params![space.0, before, convert::limit(TRIMMED)];
    let mut trim = connection.prepare_cached(TRIM)?;
    let removed: Vec<(i64, String)> =
        trim.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut unsaid = connection.prepare_cached(UNSAID)?;
    let mut touched = BTreeSet::new();
    for (number, words) in &removed {
        for word in words.split(',').filter_map(|word| word.parse::<i64>().ok()) {
            unsaid.execute([word, *number])?;
            touched.insert(word);
        }
    }
    let mut unused = connection.prepare_cached(UNUSED)?;
    touched.into_iter().try_for_each(|word| unused.execute([word]).map(drop))?;
    Ok(removed.len())
}
