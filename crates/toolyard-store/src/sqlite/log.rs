//! Log records, in blocks.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, params};
use toolyard_core::store::{
    KeySpace, LogRecord, LogStore, RecordQuery, StoreError, StoreFuture, StoredRecord,
};

use super::{SqliteStore, log_rows};
use crate::convert;
use crate::log_block::{self, BlockBuilder, DecodedBlock, EncodedBlock, tag_hash};

/// Maximum number of blocks, and of records of earlier versions, that one write removes; other writes run in between.
const TRIM_BATCH: usize = 100;

impl LogStore for SqliteStore {
    fn append(&self, space: KeySpace, records: Arc<[LogRecord]>) -> StoreFuture<'_, ()> {
        Box::pin(self.write(move |connection| append(connection, space, &records)))
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        Box::pin(Self::read(self, move |connection| read(connection, space, &query)))
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        let before = convert::unix_millis(before);
        Box::pin(self.trim_in_batches(move |connection| trim(connection, space, before)))
    }

    fn trim_to_size(&self, space: KeySpace, bytes: u64) -> StoreFuture<'_, u64> {
        let bytes = convert::saturating_i64(bytes);
        Box::pin(self.trim_in_batches(move |connection| trim_to_size(connection, space, bytes)))
    }
}

impl SqliteStore {
    /// Repeats a write until it removes nothing. Returns the number of removed records.
    async fn trim_in_batches(
        &self,
        trim: impl Fn(&Connection) -> rusqlite::Result<u64> + Clone + Send + 'static,
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let batch = self.write(trim.clone()).await?;
            removed += batch;
            if batch == 0 {
                return Ok(removed);
            }
        }
    }
}

fn append(connection: &Connection, space: KeySpace, records: &[LogRecord]) -> rusqlite::Result<()> {
    const NEXT: &str = "SELECT next FROM log_total WHERE space = ?1";
    let next = connection.prepare_cached(NEXT)?.query_row([space.0], |row| row.get(0)).optional()?;
    let mut next: i64 = next.unwrap_or(1);
    let mut block = BlockBuilder::default();
    let mut added_bytes = 0;
    for (first, text) in small_last_blocks(connection, space, records.len())?.iter().rev() {
        block.add_block(&DecodedBlock::read(*first, text).map_err(block_error)?, |_| true);
        added_bytes -= remove(connection, space, *first)?;
    }
    for record in records {
        if block.is_full() {
            added_bytes += insert(connection, space, std::mem::take(&mut block))?;
        }
        block.add(next, record);
        next += 1;
    }
    added_bytes += insert(connection, space, block)?;
    update_space(connection, space, next, added_bytes)
}

/// Returns the last blocks that are rewritten together with `added` new records, newest first: their first numbers and
/// decompressed bodies. A damaged block is left alone.
fn small_last_blocks(
    connection: &Connection,
    space: KeySpace,
    mut added: usize,
) -> rusqlite::Result<Vec<(i64, String)>> {
    const LAST: &str = "SELECT first, records, body FROM log_block WHERE space = ?1 ORDER BY first DESC";
    let mut statement = connection.prepare_cached(LAST)?;
    let mut rows = statement.query([space.0])?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        let (first, records): (i64, i64) = (row.get(0)?, row.get(1)?);
        let body = row.get_ref(2)?.as_blob()?;
        if !log_block::is_merged(records, body.len(), added) {
            break;
        }
        let Ok(text) = log_block::decompress(body) else { break };
        if DecodedBlock::read(first, &text).is_err() {
            break;
        }
        blocks.push((first, text));
        added += usize::try_from(records).unwrap_or_default();
    }
    Ok(blocks)
}

/// Inserts a block that has records. Returns its size in bytes.
fn insert(connection: &Connection, space: KeySpace, block: BlockBuilder) -> rusqlite::Result<i64> {
    const INSERT: &str = "INSERT INTO log_block (space, first, records, earliest_ms, latest_ms, tags, body) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Some(block) = block.finish().map_err(block_error)? else { return Ok(0) };
    let EncodedBlock { first, records, earliest_ms, latest_ms, tags, body } = block;
    let tags: Vec<u8> = tags.into_iter().flat_map(i32::to_be_bytes).collect();
    let size = convert::row_limit(tags.len() + body.len());
    let row = params![space.0, first, records, earliest_ms, latest_ms, tags, body];
    connection.prepare_cached(INSERT)?.execute(row)?;
    Ok(size)
}

/// Removes a block. Returns its size in bytes.
fn remove(connection: &Connection, space: KeySpace, first: i64) -> rusqlite::Result<i64> {
    const REMOVE: &str =
        "DELETE FROM log_block WHERE space = ?1 AND first = ?2 RETURNING length(tags) + length(body)";
    connection.prepare_cached(REMOVE)?.query_row(params![space.0, first], |row| row.get(0))
}

/// Sets the number of the next record, and changes the size of a space.
fn update_space(
    connection: &Connection,
    space: KeySpace,
    next: i64,
    added_bytes: i64,
) -> rusqlite::Result<()> {
    const UPDATE: &str = "INSERT INTO log_total (space, next, bytes) VALUES (?1, ?2, ?3) \
        ON CONFLICT (space) DO UPDATE SET next = max(next, excluded.next), bytes = bytes + excluded.bytes";
    connection.prepare_cached(UPDATE)?.execute(params![space.0, next, added_bytes]).map(drop)
}

fn read(
    connection: &Connection,
    space: KeySpace,
    query: &RecordQuery,
) -> rusqlite::Result<Vec<StoredRecord>> {
    const BLOCKS: &str = "SELECT first, tags, body FROM log_block \
        WHERE space = ?1 AND first < ?2 AND latest_ms >= ?3 AND earliest_ms < ?4 ORDER BY first DESC";
    let before = query.before.map_or(i64::MAX, convert::saturating_i64);
    let since = query.since.map_or(i64::MIN, convert::unix_millis);
    let until = query.until.map_or(i64::MAX, convert::unix_millis);
    let hashes: Vec<_> = query.tags.iter().map(|(name, value)| tag_hash(name, value).to_be_bytes()).collect();
    let mut statement = connection.prepare_cached(BLOCKS)?;
    let mut rows = statement.query(params![space.0, before, since, until])?;
    let mut records = Vec::new();
    while records.len() < query.limit
        && let Some(row) = rows.next()?
    {
        let (tags, _) = row.get_ref(1)?.as_blob()?.as_chunks();
        if hashes.iter().all(|hash| tags.contains(hash)) {
            let text = log_block::decompress(row.get_ref(2)?.as_blob()?).map_err(block_error)?;
            let block = DecodedBlock::read(row.get(0)?, &text).map_err(block_error)?;
            records.extend(block.select(query, query.limit - records.len()));
        }
    }
    if records.len() < query.limit {
        let older = RecordQuery { limit: query.limit - records.len(), ..query.clone() };
        records.extend(log_rows::read(connection, space, &older)?);
    }
    Ok(records)
}

/// Removes records from before a time, of one batch of blocks. Returns their number.
fn trim(connection: &Connection, space: KeySpace, before: i64) -> rusqlite::Result<u64> {
    const BLOCKS: &str = "SELECT first, body FROM log_block WHERE space = ?1 AND earliest_ms < ?2 LIMIT ?3";
    let (rows, bytes) = log_rows::trim(connection, space, before, TRIM_BATCH)?;
    let mut removed = rows as u64;
    let mut added_bytes = -bytes;
    let mut statement = connection.prepare_cached(BLOCKS)?;
    let parameters = params![space.0, before, convert::row_limit(TRIM_BATCH)];
    let blocks = statement.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (first, body) in blocks.collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>()? {
        let mut newer = BlockBuilder::default();
        let text = log_block::decompress(&body).map_err(block_error)?;
        removed += newer
            .add_block(&DecodedBlock::read(first, &text).map_err(block_error)?, |time_ms| time_ms >= before);
        added_bytes -= remove(connection, space, first)?;
        added_bytes += insert(connection, space, newer)?;
    }
    if removed > 0 {
        update_space(connection, space, 0, added_bytes)?;
    }
    Ok(removed)
}

/// Removes a batch of the oldest records, if a space has more bytes. Returns their number.
fn trim_to_size(connection: &Connection, space: KeySpace, bytes: i64) -> rusqlite::Result<u64> {
    const SIZE: &str = "SELECT bytes FROM log_total WHERE space = ?1";
    const OLDEST: &str = "SELECT first, records FROM log_block WHERE space = ?1 ORDER BY first LIMIT ?2";
    let size = connection.prepare_cached(SIZE)?.query_row([space.0], |row| row.get(0)).optional()?;
    let mut excess = size.unwrap_or(0) - bytes;
    if excess <= 0 {
        return Ok(0);
    }
    let (rows, row_bytes) = log_rows::trim(connection, space, i64::MAX, TRIM_BATCH)?;
    let (mut removed, mut added_bytes) = (rows as u64, -row_bytes);
    if rows == 0 {
        let mut statement = connection.prepare_cached(OLDEST)?;
        let blocks = statement.query_map(params![space.0, convert::row_limit(TRIM_BATCH)], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for (first, records) in blocks.collect::<rusqlite::Result<Vec<(i64, i64)>>>()? {
            if excess <= 0 {
                break;
            }
            let size = remove(connection, space, first)?;
            (removed, added_bytes, excess) =
                (removed + convert::to_unsigned(records), added_bytes - size, excess - size);
        }
    }
    update_space(connection, space, 0, added_bytes)?;
    Ok(removed)
}

/// The error of a block that cannot be read.
fn block_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(error))
}
