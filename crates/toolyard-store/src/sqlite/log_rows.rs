//! Log records of earlier versions, each of which is a row. They are read and trimmed, and none is added.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, ToSql, params, params_from_iter};
use toolyard_core::store::{KeySpace, RecordQuery, StoredRecord};

use crate::convert;
use crate::select::{self, SqlDialect};

/// Returns matching records, newest first.
pub(super) fn read(
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

/// Removes at most `limit` of the oldest records from before a time. Returns their number and the bytes of their
/// bodies.
pub(super) fn trim(
    connection: &Connection,
    space: KeySpace,
    before: i64,
    limit: usize,
) -> rusqlite::Result<(usize, i64)> {
    const TRIM: &str = "DELETE FROM log WHERE number IN \
        (SELECT number FROM log WHERE space = ?1 AND time_ms < ?2 ORDER BY time_ms LIMIT ?3) \
        RETURNING number, words, length(body)";
    const DELETE_OCCURRENCE: &str = "DELETE FROM log_said WHERE word = ?1 AND number = ?2";
    // Callers choose the values of tags, so values without records must not accumulate.
    const DELETE_UNUSED_WORD: &str =
        "DELETE FROM log_word WHERE word = ?1 AND NOT EXISTS (SELECT 1 FROM log_said WHERE word = ?1)";
    let parameters = params![space.0, before, convert::row_limit(limit)];
    let mut trim = connection.prepare_cached(TRIM)?;
    let removed = trim.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let removed: Vec<(i64, String, i64)> = removed.collect::<Result<_, _>>()?;
    let mut occurrences = connection.prepare_cached(DELETE_OCCURRENCE)?;
    let mut touched = BTreeSet::new();
    for (number, words, _) in &removed {
        for word in words.split(',').filter_map(|word| word.parse::<i64>().ok()) {
            occurrences.execute([word, *number])?;
            touched.insert(word);
        }
    }
    let mut unused_words = connection.prepare_cached(DELETE_UNUSED_WORD)?;
    touched.into_iter().try_for_each(|word| unused_words.execute([word]).map(drop))?;
    Ok((removed.len(), removed.iter().map(|(_, _, bytes)| bytes).sum()))
}
