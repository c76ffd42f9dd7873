//! Log records, in blocks.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use deadpool_postgres::{Client, Transaction};
use toolyard_core::store::{
    KeySpace, LogRecord, LogStore, RecordQuery, StoreError, StoreErrorKind, StoreFuture, StoredRecord,
};

use super::{PostgresStore, errors, log_rows, with_timeout};
use crate::convert;
use crate::log_block::{self, BlockBuilder, DecodedBlock, EncodedBlock, tag_hash};

/// Maximum number of blocks, and of records of earlier versions, that one transaction removes, as it holds their locks
/// until it ends.
const TRIM_BATCH: usize = 100;

/// Number of blocks that a search loads at once.
const READ_BATCH: usize = 8;

/// A failure of a transaction.
#[derive(Debug)]
enum LogError {
    /// A block is damaged.
    Block(io::Error),
    Database(tokio_postgres::Error),
}

impl LogStore for PostgresStore {
    fn append(&self, space: KeySpace, records: Arc<[LogRecord]>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut client = self.client().await?;
            with_timeout(append(&mut client, space, &records), store_error).await
        })
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        Box::pin(async move {
            let mut records = read_blocks(self, space, &query).await?;
            if records.len() < query.limit {
                let older = RecordQuery { limit: query.limit - records.len(), ..query };
                records.extend(log_rows::read(self, space, &older).await?);
            }
            Ok(records)
        })
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        let before = convert::unix_millis(before);
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let mut client = self.client().await?;
                match with_timeout(trim(&mut client, space, before), store_error).await? {
                    0 => return Ok(removed),
                    batch => removed += batch,
                }
            }
        })
    }

    fn trim_to_size(&self, space: KeySpace, bytes: u64) -> StoreFuture<'_, u64> {
        let bytes = convert::saturating_i64(bytes);
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let mut client = self.client().await?;
                match with_timeout(trim_to_size(&mut client, space, bytes), store_error).await? {
                    0 => return Ok(removed),
                    batch => removed += batch,
                }
            }
        })
    }
}

async fn append(client: &mut Client, space: KeySpace, records: &[LogRecord]) -> Result<(), LogError> {
    let transaction = client.transaction().await?;
    let (first, _) = lock_space(&transaction, space).await?;
    let mut block = BlockBuilder::default();
    let mut added_bytes = 0;
    for (first, text) in small_last_blocks(&transaction, space, records.len()).await?.iter().rev() {
        block.add_block(&DecodedBlock::read(*first, text)?, |_| true);
        added_bytes -= remove(&transaction, space, *first).await?;
    }
    let mut next = first;
    for record in records {
        if block.is_full() {
            added_bytes += insert(&transaction, space, std::mem::take(&mut block)).await?;
        }
        block.add(next, record);
        next += 1;
    }
    added_bytes += insert(&transaction, space, block).await?;
    update_space(&transaction, space, next - first, added_bytes).await?;
    Ok(transaction.commit().await?)
}

/// Locks a space until the end of a transaction. Returns the number of its next record, and its bytes.
async fn lock_space(transaction: &Transaction<'_>, space: KeySpace) -> Result<(i64, i64), LogError> {
    const LOCK: &str = "INSERT INTO toolyard.log_total (space, next, bytes) VALUES ($1, 1, 0) \
        ON CONFLICT (space) DO UPDATE SET next = log_total.next RETURNING next, bytes";
    let statement = transaction.prepare_cached(LOCK).await?;
    let row = transaction.query_one(&statement, &[&space.0]).await?;
    Ok((row.get(0), row.get(1)))
}

/// Counts new records and bytes of a space.
async fn update_space(
    transaction: &Transaction<'_>,
    space: KeySpace,
    new_records: i64,
    added_bytes: i64,
) -> Result<(), LogError> {
    const UPDATE: &str =
        "UPDATE toolyard.log_total SET next = next + $2, bytes = bytes + $3 WHERE space = $1";
    let statement = transaction.prepare_cached(UPDATE).await?;
    transaction.execute(&statement, &[&space.0, &new_records, &added_bytes]).await?;
    Ok(())
}

/// Returns the last blocks that are rewritten together with `added` new records, newest first: their first numbers and
/// decompressed bodies. A damaged block is left alone.
async fn small_last_blocks(
    transaction: &Transaction<'_>,
    space: KeySpace,
    mut added: usize,
) -> Result<Vec<(i64, String)>, LogError> {
    const LAST: &str = "SELECT first, records, octet_length(body)::bigint FROM toolyard.log_block \
        WHERE space = $1 ORDER BY first DESC LIMIT 16";
    const BODIES: &str = "SELECT first, body FROM toolyard.log_block \
        WHERE space = $1 AND first = ANY($2) ORDER BY first DESC";
    let statement = transaction.prepare_cached(LAST).await?;
    let mut small_blocks: Vec<i64> = Vec::new();
    for row in transaction.query(&statement, &[&space.0]).await? {
        let (records, bytes): (i64, i64) = (row.get(1), row.get(2));
        if !log_block::is_merged(records, usize::try_from(bytes).unwrap_or(usize::MAX), added) {
            break;
        }
        small_blocks.push(row.get(0));
        added += usize::try_from(records).unwrap_or_default();
    }
    if small_blocks.is_empty() {
        return Ok(Vec::new());
    }
    let statement = transaction.prepare_cached(BODIES).await?;
    let rows = transaction.query(&statement, &[&space.0, &small_blocks]).await?;
    let texts = rows.iter().map_while(|row| {
        let first = row.get(0);
        let text = log_block::decompress(row.get(1)).ok()?;
        DecodedBlock::read(first, &text).is_ok().then_some((first, text))
    });
    Ok(texts.collect())
}

/// Inserts a block, if it has records. Returns its size in bytes.
async fn insert(
    transaction: &Transaction<'_>,
    space: KeySpace,
    block: BlockBuilder,
) -> Result<i64, LogError> {
    const INSERT: &str = "INSERT INTO toolyard.log_block \
        (space, first, records, earliest_ms, latest_ms, tags, body) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let Some(block) = block.finish()? else { return Ok(0) };
    let EncodedBlock { first, records, earliest_ms, latest_ms, tags, body } = block;
    let statement = transaction.prepare_cached(INSERT).await?;
    transaction
        .execute(&statement, &[&space.0, &first, &records, &earliest_ms, &latest_ms, &tags, &body])
        .await?;
    Ok(convert::row_limit(tags.len() * size_of::<i32>() + body.len()))
}

/// Removes a block. Returns its size in bytes.
async fn remove(transaction: &Transaction<'_>, space: KeySpace, first: i64) -> Result<i64, LogError> {
    const REMOVE: &str = "DELETE FROM toolyard.log_block WHERE space = $1 AND first = $2 \
        RETURNING (cardinality(tags) * 4 + octet_length(body))::bigint";
    let statement = transaction.prepare_cached(REMOVE).await?;
    Ok(transaction.query_one(&statement, &[&space.0, &first]).await?.get(0))
}

async fn read_blocks(
    store: &PostgresStore,
    space: KeySpace,
    query: &RecordQuery,
) -> Result<Vec<StoredRecord>, StoreError> {
    const BLOCKS: &str = "SELECT first, body FROM toolyard.log_block WHERE space = $1 AND first < $2 \
        AND latest_ms >= $3 AND earliest_ms < $4 AND tags @> $5 ORDER BY first DESC LIMIT $6";
    let since = query.since.map_or(i64::MIN, convert::unix_millis);
    let until = query.until.map_or(i64::MAX, convert::unix_millis);
    let hashes: Vec<_> = query.tags.iter().map(|(name, value)| tag_hash(name, value)).collect();
    let mut before = query.before.map_or(i64::MAX, convert::saturating_i64);
    let limit = convert::row_limit(READ_BATCH);
    let mut records = Vec::new();
    while records.len() < query.limit {
        let rows = store.read(BLOCKS, &[&space.0, &before, &since, &until, &hashes, &limit]).await?;
        for row in &rows {
            let text = log_block::decompress(row.get(1)).map_err(block_error)?;
            let block = DecodedBlock::read(row.get(0), &text).map_err(block_error)?;
            records.extend(block.select(query, query.limit - records.len()));
        }
        match rows.last() {
            Some(last) if rows.len() == READ_BATCH => before = last.get(0),
            _ => break,
        }
    }
    Ok(records)
}

/// Removes records from before a time, of one batch of blocks. Returns their number.
async fn trim(client: &mut Client, space: KeySpace, before: i64) -> Result<u64, LogError> {
    const BLOCKS: &str =
        "SELECT first, body FROM toolyard.log_block WHERE space = $1 AND earliest_ms < $2 LIMIT $3";
    let transaction = client.transaction().await?;
    lock_space(&transaction, space).await?;
    let (mut removed, bytes) = log_rows::trim(&transaction, space, before, TRIM_BATCH).await?;
    let mut added_bytes = -bytes;
    let statement = transaction.prepare_cached(BLOCKS).await?;
    let limit = convert::row_limit(TRIM_BATCH);
    for row in transaction.query(&statement, &[&space.0, &before, &limit]).await? {
        let mut newer = BlockBuilder::default();
        let first = row.get(0);
        let text = log_block::decompress(row.get(1))?;
        removed += newer.add_block(&DecodedBlock::read(first, &text)?, |time_ms| time_ms >= before);
        added_bytes -= remove(&transaction, space, first).await?;
        added_bytes += insert(&transaction, space, newer).await?;
    }
    update_space(&transaction, space, 0, added_bytes).await?;
    transaction.commit().await?;
    Ok(removed)
}

/// Removes a batch of the oldest records, if a space has more bytes. Returns their number.
async fn trim_to_size(client: &mut Client, space: KeySpace, bytes: i64) -> Result<u64, LogError> {
    const OLDEST: &str =
        "SELECT first, records FROM toolyard.log_block WHERE space = $1 ORDER BY first LIMIT $2";
    let transaction = client.transaction().await?;
    let (_, size) = lock_space(&transaction, space).await?;
    let mut excess = size - bytes;
    if excess <= 0 {
        return Ok(0);
    }
    let (mut removed, row_bytes) = log_rows::trim(&transaction, space, i64::MAX, TRIM_BATCH).await?;
    let mut added_bytes = -row_bytes;
    if removed == 0 {
        let statement = transaction.prepare_cached(OLDEST).await?;
        for row in transaction.query(&statement, &[&space.0, &convert::row_limit(TRIM_BATCH)]).await? {
            if excess <= 0 {
                break;
            }
            let size = remove(&transaction, space, row.get(0)).await?;
            removed += convert::to_unsigned(row.get(1));
            (added_bytes, excess) = (added_bytes - size, excess - size);
        }
    }
    update_space(&transaction, space, 0, added_bytes).await?;
    transaction.commit().await?;
    Ok(removed)
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self::Block(error)
    }
}

impl From<tokio_postgres::Error> for LogError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

fn store_error(error: LogError) -> StoreError {
    match error {
        LogError::Block(error) => block_error(error),
        LogError::Database(error) => errors::store_error(error),
    }
}

fn block_error(error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unreadable, error)
}
