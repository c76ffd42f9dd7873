//! Who may do something alone.

use std::time::Duration;

use toolyard_core::store::{Lease, Stored};

use super::Postgres;
use crate::convert;

/// The longest lease: a century, so that the end of one is still a number.
const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1000;

impl Lease for Postgres {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> Stored<'a, Option<u64>> {
        // Who was late begins anew, also where nobody else came.
        const ACQUIRE: &str = "INSERT INTO toolyard.lease AS old (name, holder, number, until_ms) \
            VALUES ($1, $2, 1, toolyard.now_ms() + $3) ON CONFLICT (name) DO UPDATE \
            SET holder = excluded.holder, until_ms = excluded.until_ms, \
            number = old.number + (old.until_ms <= toolyard.now_ms())::int \
            WHERE old.holder = excluded.holder OR old.until_ms <= toolyard.now_ms() RETURNING number";
        Box::pin(async move {
            let time = convert::span(time).min(LONGEST);
            let rows = self.rows(ACQUIRE, &[&name.as_bytes(), &holder.as_bytes(), &time]).await?;
            Ok(rows.first().map(|row| convert::number(row.get(0))))
        })
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> Stored<'a, ()> {
        const RELEASE: &str = "UPDATE toolyard.lease SET until_ms = 0 WHERE name = $1 AND holder = $2";
        Box::pin(async move { self.rows(RELEASE, &[&name.as_bytes(), &holder.as_bytes()]).await.map(drop) })
    }
}
