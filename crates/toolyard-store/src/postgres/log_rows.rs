//! Log records of earlier versions, each of which is a row. They are read and trimmed, and none is added.

use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};
use toolyard_core::store::{KeySpace, RecordQuery, StoreError, StoredRecord};

use super::{PostgresStore, SqlParameter};
use crate::convert;
use crate::select::{self, SqlDialect};

/// Returns matching records, newest first.
pub(super) async fn read(
    store: &PostgresStore,
    space: KeySpace,
    query: &RecordQuery,
) -> Result<Vec<StoredRecord>, StoreError> {
    let dialect = SqlDialect { parameter_prefix: '$', table_prefix: "toolyard." };
    let records = select::log_query(query.tags.len(), dialect);
    let since = query.since.map_or(i64::MIN, convert::unix_millis);
    let until = query.until.map_or(i64::MAX, convert::unix_millis);
    let before = query.before.map_or(i64::MAX, convert::saturating_i64);
    let limit = convert::row_limit(query.limit);
    let tags: Vec<_> = query.tags.iter().map(|(name, value)| (name, value.as_bytes())).collect();
    let mut parameters: Vec<SqlParameter<'_>> = vec![&space.0, &since, &until, &before, &limit];
    for (name, value) in &tags {
        parameters.extend([name as SqlParameter<'_>, value]);
    }
    Ok(store.read(&records, &parameters).await?.iter().map(log_record).collect())
}

/// Removes at most `limit` of the oldest records from before a time. Returns their number and the bytes of their
/// bodies.
pub(super) async fn trim(
    transaction: &Transaction<'_>,
    space: KeySpace,
    before: i64,
    limit: usize,
) -> Result<(u64, i64), Error> {
    const TRIM: &str = "DELETE FROM toolyard.log WHERE number IN (SELECT number FROM toolyard.log \
        WHERE space = $1 AND time_ms < $2 ORDER BY time_ms LIMIT $3) RETURNING octet_length(body)::bigint";
    let statement = transaction.prepare_cached(TRIM).await?;
    let rows = transaction.query(&statement, &[&space.0, &before, &convert::row_limit(limit)]).await?;
    Ok((rows.len() as u64, rows.iter().map(|row| row.get::<_, i64>(0)).sum()))
}

fn log_record(row: &Row) -> StoredRecord {
    StoredRecord {
        number: convert::to_unsigned(row.get(0)),
        time: convert::system_time(row.get(1)),
        body: row.get(2),
    }
}
