//! Small values by key.

use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_postgres::Row;
use toolyard_core::store::{
    KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, StoreFuture, StoredValue, WriteCondition,
};

use super::{PostgresStore, SqlParameter};
use crate::convert::{self, KeyRange};

/// Time between two sweeps of expired values.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of expired values that one sweep removes.
const SWEEP_BATCH: i64 = 500;

/// Condition of values that have not expired.
const IS_LIVE: &str = "(expires_ms IS NULL OR expires_ms > toolyard.now_ms())";

/// Counts the change in the same statement, if there was a change.
const COUNT_CHANGE: &str = "bumped AS ( \
    INSERT INTO toolyard.revision AS old (space, number) SELECT $1, 1 FROM changed \
    ON CONFLICT (space) DO UPDATE SET number = old.number + 1)";

impl KeyValueStore for PostgresStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        Box::pin(async move {
            let get = format!(
                "SELECT value, version, expires_ms FROM toolyard.kv WHERE space = $1 AND key = $2 AND {IS_LIVE}"
            );
            let rows = self.read(&get, &[&space.0, &key.as_bytes()]).await?;
            Ok(rows.first().map(|row| value(row, 0)))
        })
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        Box::pin(async move {
            let version = self.put_value(space, key, &put).await?;
            self.sweep().await;
            Ok(version)
        })
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let delete = format!(
                "WITH gone AS (DELETE FROM toolyard.kv WHERE space = $1 AND key = $2 RETURNING expires_ms), \
                 changed AS (SELECT 1 FROM gone WHERE {IS_LIVE}), {COUNT_CHANGE} SELECT 1 FROM changed"
            );
            Ok(!self.query(&delete, &[&space.0, &key.as_bytes()]).await?.is_empty())
        })
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        Box::pin(async move {
            let KeyRange { from, end } = KeyRange::of(prefix, after);
            let (from, end) = (from.as_bytes(), end.as_ref().map(String::as_bytes));
            let limit = convert::row_limit(limit);
            let mut parameters: Vec<SqlParameter<'_>> = vec![&space.0, &from, &limit];
            parameters.extend(end.as_ref().map(|end| end as SqlParameter<'_>));
            let before = if end.is_some() { "AND key < $4" } else { "" };
            let list = format!(
                "SELECT key, value, version, expires_ms FROM toolyard.kv \
                 WHERE space = $1 AND key >= $2 AND {IS_LIVE} {before} ORDER BY key LIMIT $3"
            );
            self.read(&list, &parameters).await?.iter().map(entry).collect()
        })
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let size = format!(
                "SELECT coalesce(sum(octet_length(value)), 0)::bigint FROM toolyard.kv WHERE space = $1 AND {IS_LIVE}"
            );
            let rows = self.read(&size, &[&space.0]).await?;
            Ok(rows.first().map_or(0, |row| convert::to_unsigned(row.get(0))))
        })
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let number = "SELECT number FROM toolyard.revision WHERE space = $1";
            let rows = self.read(number, &[&space.0]).await?;
            Ok(rows.first().map_or(0, |row| convert::to_unsigned(row.get(0))))
        })
    }
}

impl PostgresStore {
    async fn put_value(
        &self,
        space: KeySpace,
        key: &str,
        put: &PutRequest,
    ) -> Result<Option<u64>, StoreError> {
        let expected = match put.condition {
            WriteCondition::Version(version) => Some(convert::saturating_i64(version)),
            WriteCondition::Always | WriteCondition::Absent => None,
        };
        let (key, value, expires) = (key.as_bytes(), &put.bytes[..], put.expires.map(convert::unix_millis));
        let mut parameters: Vec<SqlParameter<'_>> = vec![&space.0, &key, &value, &expires];
        parameters.extend(expected.as_ref().map(|expected| expected as SqlParameter<'_>));
        let change = change_statement(put.condition);
        let put = format!("WITH changed AS ({change}), {COUNT_CHANGE} SELECT version FROM changed");
        let rows = self.query(&put, &parameters).await?;
        Ok(rows.first().map(|row| convert::to_unsigned(row.get(0))))
    }

    /// Removes some expired values if a sweep is due. The caller's write is already committed, so an error is only
    /// logged.
    async fn sweep(&self) {
        let sweep = format!(
            "DELETE FROM toolyard.kv WHERE (space, key) IN (SELECT space, key FROM toolyard.kv \
             WHERE expires_ms <= toolyard.now_ms() LIMIT {SWEEP_BATCH} FOR UPDATE SKIP LOCKED)"
        );
        if !self.claim_sweep() {
            return;
        }
        if let Err(error) = self.query(&sweep, &[]).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot remove expired values from the store");
        }
    }

    fn claim_sweep(&self) -> bool {
        let now = Instant::now();
        let mut next = self.next_sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now >= *next;
        if is_due {
            *next = now + SWEEP_INTERVAL;
        }
        is_due
    }
}

/// The statement that changes one row. Its condition holds for the row as it is once its lock is acquired, whatever
/// other transactions did meanwhile.
fn change_statement(condition: WriteCondition) -> String {
    let insert = "INSERT INTO toolyard.kv AS old (space, key, value, version, expires_ms) \
        VALUES ($1, $2, $3, nextval('toolyard.version'), $4) ON CONFLICT (space, key) DO UPDATE \
        SET value = excluded.value, version = excluded.version, expires_ms = excluded.expires_ms";
    match condition {
        WriteCondition::Always => format!("{insert} RETURNING version"),
        WriteCondition::Absent => {
            format!("{insert} WHERE old.expires_ms <= toolyard.now_ms() RETURNING version")
        }
        WriteCondition::Version(_) => format!(
            "UPDATE toolyard.kv SET value = $3, version = nextval('toolyard.version'), expires_ms = $4 \
             WHERE space = $1 AND key = $2 AND version = $5 AND {IS_LIVE} RETURNING version"
        ),
    }
}

fn entry(row: &Row) -> Result<(String, StoredValue), StoreError> {
    let key =
        String::from_utf8(row.get(0)).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
    Ok((key, value(row, 1)))
}

/// The value in the columns from `at` on.
fn value(row: &Row, at: usize) -> StoredValue {
    StoredValue {
        bytes: Bytes::from(row.get::<_, Vec<u8>>(at)),
        version: convert::to_unsigned(row.get(at + 1)),
        expires: row.get::<_, Option<i64>>(at + 2).map(convert::system_time),
    }
}
