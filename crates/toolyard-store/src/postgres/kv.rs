//! Small values by key.

use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_postgres::Row;
use toolyard_core::store::{Condition, Kv, Put, Space, StoreError, Stored, Trouble, Value};

use super::{Parameter, Postgres};
use crate::convert::{self, Keys};

/// How often expired values are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// How many expired values are removed at a time.
const SWEPT: i64 = 500;

/// What has not expired.
const LIVE: &str = "(expires_ms IS NULL OR expires_ms > toolyard.now_ms())";

/// Counts the change in the same statement, if there was one.
const COUNTED: &str = "bumped AS ( \
    INSERT INTO toolyard.revision AS old (space, number) SELECT $1, 1 FROM changed \
    ON CONFLICT (space) DO UPDATE SET number = old.number + 1)";

impl Kv for Postgres {
    fn get<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, Option<Value>> {
        Box::pin(async move {
            let get = format!(
                "SELECT value, version, expires_ms FROM toolyard.kv WHERE space = $1 AND key = $2 AND {LIVE}"
            );
            let rows = self.rows(&get, &[&space.0, &key.as_bytes()]).await?;
            Ok(rows.first().map(|row| value(row, 0)))
        })
    }

    fn put<'a>(&'a self, space: Space, key: &'a str, put: Put) -> Stored<'a, Option<u64>> {
        Box::pin(async move {
            let version = self.put_now(space, key, &put).await?;
            self.sweep().await;
            Ok(version)
        })
    }

    fn delete<'a>(&'a self, space: Space, key: &'a str) -> Stored<'a, bool> {
        Box::pin(async move {
            let delete = format!(
                "WITH gone AS (DELETE FROM toolyard.kv WHERE space = $1 AND key = $2 RETURNING expires_ms), \
                 changed AS (SELECT 1 FROM gone WHERE {LIVE}), {COUNTED} SELECT 1 FROM changed"
            );
            Ok(!self.rows(&delete, &[&space.0, &key.as_bytes()]).await?.is_empty())
        })
    }

    fn list<'a>(
        &'a self,
        space: Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Stored<'a, Vec<(String, Value)>> {
        Box::pin(async move {
            let Keys { from, end } = Keys::of(prefix, after);
            let (from, end) = (from.as_bytes(), end.as_ref().map(String::as_bytes));
            let limit = convert::limit(limit);
            let mut parameters: Vec<Parameter<'_>> = vec![&space.0, &from, &limit];
            parameters.extend(end.as_ref().map(|end| end as Parameter<'_>));
            let before = if end.is_some() { "AND key < $4" } else { "" };
            let list = format!(
                "SELECT key, value, version, expires_ms FROM toolyard.kv \
                 WHERE space = $1 AND key >= $2 AND {LIVE} {before} ORDER BY key LIMIT $3"
            );
            self.rows(&list, &parameters).await?.iter().map(entry).collect()
        })
    }

    fn size(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(async move {
            let size = format!(
                "SELECT coalesce(sum(octet_length(value)), 0)::bigint FROM toolyard.kv WHERE space = $1 AND {LIVE}"
            );
            let rows = self.rows(&size, &[&space.0]).await?;
            Ok(rows.first().map_or(0, |row| convert::number(row.get(0))))
        })
    }

    fn revision(&self, space: Space) -> Stored<'_, u64> {
        Box::pin(async move {
            let number = "SELECT number FROM toolyard.revision WHERE space = $1";
            let rows = self.rows(number, &[&space.0]).await?;
            Ok(rows.first().map_or(0, |row| convert::number(row.get(0))))
        })
    }
}

impl Postgres {
    async fn put_now(&self, space: Space, key: &str, put: &Put) -> Result<Option<u64>, StoreError> {
        let expected = match put.condition {
            Condition::Version(version) => Some(convert::bound(version)),
            Condition::Always | Condition::Absent => None,
        };
        let (key, value, expires) = (key.as_bytes(), &put.bytes[..], put.expires.map(convert::millis));
        let mut parameters: Vec<Parameter<'_>> = vec![&space.0, &key, &value, &expires];
        parameters.extend(expected.as_ref().map(|expected| expected as Parameter<'_>));
        let change = change(put.condition);
        let put = format!("WITH changed AS ({change}), {COUNTED} SELECT version FROM changed");
        let rows = self.rows(&put, &parameters).await?;
        Ok(rows.first().map(|row| convert::number(row.get(0))))
    }

    /// Removes some values that have expired, if nobody has looked for them lately. Whoever was to write has written: it
    /// is not for them that this fails.
    async fn sweep(&self) {
        let sweep = format!(
            "DELETE FROM toolyard.kv WHERE (space, key) IN (SELECT space, key FROM toolyard.kv \
             WHERE expires_ms <= toolyard.now_ms() LIMIT {SWEPT} FOR UPDATE SKIP LOCKED)"
        );
        if !self.is_time_to_sweep() {
            return;
        }
        if let Err(error) = self.rows(&sweep, &[]).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "expired values cannot be removed from the store");
        }
    }

    fn is_time_to_sweep(&self) -> bool {
        let now = Instant::now();
        let mut next = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = now >= *next;
        if is_time {
            *next = now + SWEEP;
        }
        is_time
    }
}

/// The change of one row. A condition on it holds for the row as it is when its lock is had, whatever others have done
/// while that was waited for.
fn change(condition: Condition) -> String {
    let insert = "INSERT INTO toolyard.kv AS old (space, key, value, version, expires_ms) \
        VALUES ($1, $2, $3, nextval('toolyard.version'), $4) ON CONFLICT (space, key) DO UPDATE \
        SET value = excluded.value, version = excluded.version, expires_ms = excluded.expires_ms";
    match condition {
        Condition::Always => format!("{insert} RETURNING version"),
        Condition::Absent => {
            format!("{insert} WHERE old.expires_ms <= toolyard.now_ms() RETURNING version")
        }
        Condition::Version(_) => format!(
            "UPDATE toolyard.kv SET value = $3, version = nextval('toolyard.version'), expires_ms = $4 \
             WHERE space = $1 AND key = $2 AND version = $5 AND {LIVE} RETURNING version"
        ),
    }
}

fn entry(row: &Row) -> Result<(String, Value), StoreError> {
    let key = String::from_utf8(row.get(0)).map_err(|error| StoreError::new(Trouble::Unreadable, error))?;
    Ok((key, value(row, 1)))
}

/// The value whose columns begin at this one.
fn value(row: &Row, at: usize) -> Value {
    Value {
        bytes: Bytes::from(row.get::<_, Vec<u8>>(at)),
        version: convert::number(row.get(at + 1)),
        expires: row.get::<_, Option<i64>>(at + 2).map(convert::time),
    }
}
