//! Log records.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
use toolyard_core::store::{KeySpace, LogRecord, LogStore, RecordQuery, StoreFuture, StoredRecord};

use super::SqliteStore;
use crate::convert;
use crate::select::{self, SqlDialect};

/// Maximum number of records that one write removes; other writes run in between.
const TRIM_BATCH: usize = 1000;

impl LogStore for SqliteStore {
    fn append(&self, space: KeySpace, records: Vec<LogRecord>) -> StoreFuture<'_, ()> {
        Box::pin(self.write(move |connection| append(connection, space, &records)))
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        Box::pin(Self::read(self, move |connection| read(connection, space, &query)))
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        let before = convert::unix_millis(before);
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let batch = self.write(move |connection| trim(connection, space, before)).await?;
                removed += batch as u64;
                if batch < TRIM_BATCH {
                    return Ok(removed);
                }
            }
        })
    }
}

fn append(connection: &Connection, space: KeySpace, records: &[LogRecord]) -> rusqlite::Result<()> {
    const RECORD: &str = "INSERT INTO log (space, time_ms, body, words) VALUES (?1, ?2, ?3, ?4)";
    // Duplicate tags of a record are stored once.
    const INSERT_OCCURRENCE: &str = "INSERT OR IGNORE INTO log_said (word, number) VALUES (?1, ?2)";
    let mut record = connection.prepare_cached(RECORD)?;
    let mut occurrences = connection.prepare_cached(INSERT_OCCURRENCE)?;
    let mut word_ids = HashMap::new();
    for LogRecord { time, tags, body } in records {
        let words = tags.iter().map(|(name, value)| match word_ids.entry((*name, value.as_str())) {
            Entry::Occupied(id) => Ok(*id.get()),
            Entry::Vacant(new) => Ok(*new.insert(word_id(connection, space, name, value)?)),
        });
        let words = words.collect::<rusqlite::Result<Vec<i64>>>()?;
        let number = record.insert(params![space.0, convert::unix_millis(*time), body, joined(&words)])?;
        for word in words {
            occurrences.execute([word, number])?;
        }
    }
    Ok(())
}

/// The ID of a tag's name and value, assigned if it has none yet.
fn word_id(connection: &Connection, space: KeySpace, name: &str, value: &str) -> rusqlite::Result<i64> {
    const FIND: &str = "SELECT word FROM log_word WHERE space = ?1 AND name = ?2 AND value = ?3";
    const GIVE: &str = "INSERT INTO log_word (space, name, value) VALUES (?1, ?2, ?3)";
    let id = connection.prepare_cached(FIND)?.query_row([space.0, name, value], |row| row.get(0));
    match id.optional()? {
        Some(word) => Ok(word),
        None => connection.prepare_cached(GIVE)?.insert([space.0, name, value]),
    }
}

/// IDs in the form in which a record stores them.
fn joined(words: &[i64]) -> String {
    let mut text = String::new();
    for word in words {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{word}");
    }
    text
}

fn read(
    connection: &Connection,
    space: KeySpace,
    query: &RecordQuery,
) -> rusqlite::Result<Vec<StoredRecord>> {
    let records = select::log_query(query.tags.len(), SqlDialect { parameter_prefix: '?', table_prefix: "" });
    let since = query.since.map_or(i64::MIN, convert::unix_millis);
    let until = query.until.map_or(i64::MAX, convert::unix_millis);
    let before = query.before.map_or(i64::MAX, convert::saturating_i64);
    let limit = convert::row_limit(query.limit);
    let mut parameters: Vec<&dyn ToSql> = vec![&space.0, &since, &until, &before, &limit];
    for (name, value) in &query.tags {
        parameters.extend([name as &dyn ToSql, value]);
    }
    connection.prepare_cached(&records)?.query_map(params_from_iter(parameters), log_record)?.collect()
}

fn log_record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        number: convert::to_unsigned(row.get(0)?),
        time: convert::system_time(row.get(1)?),
        body: row.get(2)?,
    })
}

fn trim(connection: &Connection, space: KeySpace, before: i64) -> rusqlite::Result<usize> {
    const TRIM: &str = "DELETE FROM log WHERE number IN \
        (SELECT number FROM log WHERE space = ?1 AND time_ms < ?2 LIMIT ?3) RETURNING number, words";
    const DELETE_OCCURRENCE: &str = "DELETE FROM log_said WHERE word = ?1 AND number = ?2";
    // Callers choose the values of tags, so values without records must not accumulate.
    const DELETE_UNUSED_WORD: &str =
        "DELETE FROM log_word WHERE word = ?1 AND NOT EXISTS (SELECT 1 FROM log_said WHERE word = ?1)";
    let parameters = params![space.0, before, convert::row_limit(TRIM_BATCH)];
    let mut trim = connection.prepare_cached(TRIM)?;
    let removed: Vec<(i64, String)> =
        trim.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut occurrences = connection.prepare_cached(DELETE_OCCURRENCE)?;
    let mut touched = BTreeSet::new();
    for (number, words) in &removed {
        for word in words.split(',').filter_map(|word| word.parse::<i64>().ok()) {
            occurrences.execute([word, *number])?;
            touched.insert(word);
        }
    }
    let mut unused_words = connection.prepare_cached(DELETE_UNUSED_WORD)?;
    touched.into_iter().try_for_each(|word| unused_words.execute([word]).map(drop))?;
    Ok(removed.len())
}
