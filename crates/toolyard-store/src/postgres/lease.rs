//! Leases.

use std::time::Duration;

use toolyard_core::store::{LeaseStore, StoreFuture};

use super::PostgresStore;
use crate::convert;

/// Maximum length of a lease in milliseconds: a century, so that its end does not overflow.
const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1000;

impl LeaseStore for PostgresStore {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>> {
        // An expired lease gets a new number, even if its last holder acquires it again.
        const ACQUIRE: &str = "INSERT INTO toolyard.lease AS old (name, holder, number, until_ms) \
            VALUES ($1, $2, 1, toolyard.now_ms() + $3) ON CONFLICT (name) DO UPDATE \
            SET holder = excluded.holder, until_ms = excluded.until_ms, \
            number = old.number + (old.until_ms <= toolyard.now_ms())::int \
            WHERE old.holder = excluded.holder OR old.until_ms <= toolyard.now_ms() RETURNING number";
        Box::pin(async move {
            let time = convert::duration_millis(time).min(LONGEST);
            let rows = self.query(ACQUIRE, &[&name.as_bytes(), &holder.as_bytes(), &time]).await?;
            Ok(rows.first().map(|row| convert::to_unsigned(row.get(0))))
        })
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        const RELEASE: &str = "UPDATE toolyard.lease SET until_ms = 0 WHERE name = $1 AND holder = $2";
        Box::pin(async move { self.query(RELEASE, &[&name.as_bytes(), &holder.as_bytes()]).await.map(drop) })
    }

    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        const FORGET: &str = "DELETE FROM toolyard.lease WHERE name = $1 AND holder = $2";
        Box::pin(async move { self.query(FORGET, &[&name.as_bytes(), &holder.as_bytes()]).await.map(drop) })
    }
}
