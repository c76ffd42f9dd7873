//! Log records.

use std::time::SystemTime;

use tokio_postgres::Row;
use toolyard_core::store::{KeySpace, LogRecord, LogStore, RecordQuery, StoreFuture, StoredRecord};

use super::{PostgresStore, SqlParameter, with_timeout};
use crate::convert;
use crate::select::{self, SqlDialect};

/// Maximum number of records that one statement removes, as it holds their locks until it ends.
const TRIM_BATCH: usize = 1000;

impl LogStore for PostgresStore {
    fn append(&self, space: KeySpace, records: Vec<LogRecord>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut client = self.client().await?;
            with_timeout(append(&mut client, space, &records)).await
        })
    }

    fn read(&self, space: KeySpace, query: RecordQuery) -> StoreFuture<'_, Vec<StoredRecord>> {
        Box::pin(async move {
            let records = select::log_query(
                query.tags.len(),
                SqlDialect { parameter_prefix: '$', table_prefix: "toolyard." },
            );
            let since = query.since.map_or(i64::MIN, convert::unix_millis);
            let until = query.until.map_or(i64::MAX, convert::unix_millis);
            let before = query.before.map_or(i64::MAX, convert::saturating_i64);
            let limit = convert::row_limit(query.limit);
            let tags: Vec<_> = query.tags.iter().map(|(name, value)| (name, value.as_bytes())).collect();
            let mut parameters: Vec<SqlParameter<'_>> = vec![&space.0, &since, &until, &before, &limit];
            for (name, value) in &tags {
                parameters.extend([name as SqlParameter<'_>, value]);
            }
            Ok(self.read(&records, &parameters).await?.iter().map(log_record).collect())
        })
    }

    fn trim(&self, space: KeySpace, before: SystemTime) -> StoreFuture<'_, u64> {
        const TRIM: &str = "DELETE FROM toolyard.log WHERE number IN (SELECT number FROM toolyard.log \
            WHERE space = $1 AND time_ms < $2 LIMIT $3) RETURNING 1";
        Box::pin(async move {
            let (before, limit) = (convert::unix_millis(before), convert::row_limit(TRIM_BATCH));
            let mut removed = 0;
            loop {
                let batch = self.query(TRIM, &[&space.0, &before, &limit]).await?.len();
                removed += batch as u64;
                if batch < TRIM_BATCH {
                    return Ok(removed);
                }
            }
        })
    }
}

async fn append(
    client: &mut deadpool_postgres::Client,
    space: KeySpace,
    records: &[LogRecord],
) -> Result<(), tokio_postgres::Error> {
    // The numbers are assigned and returned in the order of the records.
    const RECORDS: &str = "INSERT INTO toolyard.log (space, time_ms, body) \
        SELECT $1, time_ms, body FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS new (time_ms, body, place) \
        ORDER BY place RETURNING number";
    // Duplicate tags of a record are stored once.
    const TAGS: &str = "INSERT INTO toolyard.log_tag (space, name, value, number) \
        SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::bigint[]) ON CONFLICT DO NOTHING";
    let times: Vec<_> = records.iter().map(|record| convert::unix_millis(record.time)).collect();
    let bodies: Vec<_> = records.iter().map(|record| record.body.as_str()).collect();
    let transaction = client.transaction().await?;
    let statement = transaction.prepare_cached(RECORDS).await?;
    let numbers = transaction.query(&statement, &[&space.0, &times, &bodies]).await?;
    let tagged = numbers.iter().map(|row| row.get::<_, i64>(0)).zip(records);
    let tags = tagged.flat_map(|(number, record)| record.tags.iter().map(move |tag| (number, tag)));
    let (mut names, mut values, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (name, value)) in tags {
        names.push(*name);
        values.push(value.as_bytes());
        owners.push(number);
    }
    let statement = transaction.prepare_cached(TAGS).await?;
    transaction.execute(&statement, &[&space.0, &names, &values, &owners]).await?;
    transaction.commit().await
}

fn log_record(row: &Row) -> StoredRecord {
    StoredRecord {
        number: convert::to_unsigned(row.get(0)),
        time: convert::system_time(row.get(1)),
        body: row.get(2),
    }
}
