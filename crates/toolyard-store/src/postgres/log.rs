//! What has happened.

use std::time::SystemTime;

use tokio_postgres::Row;
use toolyard_core::store::{Kept, Log, Query, Record, Space, Stored};

use super::{Parameter, Postgres, in_time};
use crate::convert;
use crate::select::{self, Dialect};

/// How many records one statement removes: it holds their locks until it has ended.
const TRIMMED: usize = 1000;

impl Log for Postgres {
    fn append(&self, space: Space, records: Vec<Record>) -> Stored<'_, ()> {
        Box::pin(async move {
            let mut client = self.client().await?;
            in_time(append(&mut client, space, &records)).await
        })
    }

    fn read(&self, space: Space, query: Query) -> Stored<'_, Vec<Kept>> {
        Box::pin(async move {
            let records = select::records(query.tags.len(), Dialect { mark: '$', schema: "toolyard." });
            let since = query.since.map_or(i64::MIN, convert::millis);
            let until = query.until.map_or(i64::MAX, convert::millis);
            let before = query.before.map_or(i64::MAX, convert::bound);
            let limit = convert::limit(query.limit);
            let tags: Vec<_> = query.tags.iter().map(|(name, value)| (name, value.as_bytes())).collect();
            let mut parameters: Vec<Parameter<'_>> = vec![&space.0, &since, &until, &before, &limit];
            for (name, value) in &tags {
                parameters.extend([name as Parameter<'_>, value]);
            }
            Ok(self.rows(&records, &parameters).await?.iter().map(kept).collect())
        })
    }

    fn trim(&self, space: Space, before: SystemTime) -> Stored<'_, u64> {
        const TRIM: &str = "DELETE FROM toolyard.log WHERE number IN (SELECT number FROM toolyard.log \
            WHERE space = $1 AND time_ms < $2 LIMIT $3) RETURNING 1";
        Box::pin(async move {
            let (before, limit) = (convert::millis(before), convert::limit(TRIMMED));
            let mut removed = 0;
            loop {
                let some = self.rows(TRIM, &[&space.0, &before, &limit]).await?.len();
                removed += some as u64;
                if some < TRIMMED {
                    return Ok(removed);
                }
            }
        })
    }
}

async fn append(
    client: &mut deadpool_postgres::Client,
    space: Space,
    records: &[Record],
) -> Result<(), tokio_postgres::Error> {
    // The numbers are given in the order of the records, and come back in it.
    const RECORDS: &str = "INSERT INTO toolyard.log (space, time_ms, body) \
        SELECT $1, time_ms, body FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS new (time_ms, body, place) \
        ORDER BY place RETURNING number";
    // A tag that a record has twice is one.
    const TAGS: &str = "INSERT INTO toolyard.log_tag (space, name, value, number) \
        SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::bigint[]) ON CONFLICT DO NOTHING";
    let times: Vec<_> = records.iter().map(|record| convert::millis(record.time)).collect();
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

fn kept(row: &Row) -> Kept {
    Kept { number: convert::number(row.get(0)), time: convert::time(row.get(1)), body: row.get(2) }
}
