//! The host as its users have it: one suite over each store, and what happens when gateways meet, or one is killed.
//!
//! What runs is a script of the test where the host's own part is looked at, and workers in `languages`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod counting;
mod crash;
mod exchange;
mod gateways;
mod languages;
mod scripted;
mod suite;

#[expect(dead_code, reason = "it can do more than is needed here")]
#[path = "../../../toolyard-store/tests/it/server.rs"]
mod server;

use toolyard_store::{Location, PostgresUrl, StoreOptions};

/// The options of a store at a place: a URL or a path.
fn at(place: &str) -> StoreOptions {
    StoreOptions::at(match place.starts_with("postgres://") {
        true => Location::Postgres(PostgresUrl::parse(place).unwrap()),
        false => Location::File(place.into()),
    })
}
