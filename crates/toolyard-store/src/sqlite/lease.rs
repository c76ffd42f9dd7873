//! Leases.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};
use toolyard_core::store::{LeaseStore, StoreFuture};

use super::{SqliteStore, unix_millis_now};
use crate::convert;

impl LeaseStore for SqliteStore {
    fn acquire<'a>(&'a self, name: &'a str, holder: &'a str, time: Duration) -> StoreFuture<'a, Option<u64>> {
        // An expired lease gets a new number, even if its last holder acquires it again.
        const ACQUIRE: &str = "INSERT INTO lease AS old (name, holder, number, until_ms) VALUES (?1, ?2, 1, ?4) \
            ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms, \
            number = old.number + (old.until_ms <= ?3) \
            WHERE old.holder = excluded.holder OR old.until_ms <= ?3 RETURNING number";
        let (name, holder) = (name.to_owned(), holder.to_owned());
        Box::pin(self.write(move |connection| {
            let now = unix_millis_now();
            let until = now.saturating_add(convert::duration_millis(time));
            let mut statement = connection.prepare_cached(ACQUIRE)?;
            let number = statement.query_row(params![name, holder, now, until], |row| row.get(0)).optional();
            Ok(number?.map(convert::to_unsigned))
        }))
    }

    fn release<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        const RELEASE: &str = "UPDATE lease SET until_ms = 0 WHERE name = ?1 AND holder = ?2";
        let (name, holder) = (name.to_owned(), holder.to_owned());
        Box::pin(self.write(move |connection| {
            connection.prepare_cached(RELEASE)?.execute(params![name, holder]).map(drop)
        }))
    }

    fn forget<'a>(&'a self, name: &'a str, holder: &'a str) -> StoreFuture<'a, ()> {
        const FORGET: &str = "DELETE FROM lease WHERE name = ?1 AND holder = ?2";
        let (name, holder) = (name.to_owned(), holder.to_owned());
        Box::pin(self.write(move |connection| {
            connection.prepare_cached(FORGET)?.execute(params![name, holder]).map(drop)
        }))
    }
}
