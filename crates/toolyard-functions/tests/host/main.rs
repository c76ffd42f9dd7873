//! The function host: one suite for all stores, concurrent gateways, and killed gateways.
//!
//! The tests use a scripted runner, except for `languages`, which uses real workers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod call_log;
mod counting;
mod crash;
mod exchange;
mod gateways;
mod languages;
mod scripted;
mod suite;

use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions};

/// Returns the options of a store at a URL or path.
fn at(place: &str) -> StoreOptions {
    StoreOptions::at(match place.starts_with("postgres://") {
        true => DatabaseLocation::Postgres(PostgresUrl::parse(place).unwrap()),
        false => DatabaseLocation::File(place.into()),
    })
}
