//! Tables of the database, and their migrations.

use std::fmt::Display;

use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Error;

use super::errors;
use crate::StoreOpenError;

/// Migrations from each version to the next.
const MIGRATIONS: [&str; 2] = [
    include_str!("../../migrations/postgres/0001_tables.sql"),
    include_str!("../../migrations/postgres/0002_blocks.sql"),
];

/// The version of the tables that this program uses.
pub(crate) const LATEST_VERSION: i64 = MIGRATIONS.len() as i64;

/// Serializes the migrations of gateways that start at once. The number is "Tool" in ASCII, to avoid collisions.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1416589164)";

const CREATE_SCHEMA: &str = "CREATE SCHEMA toolyard; \
    CREATE TABLE toolyard.migration (version bigint PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())";

/// A database that cannot be used.
pub(super) enum PostgresMigrationError {
    NewerVersion(i64),
    Database(Error),
}

/// Brings the tables up to date, each version in a transaction of its own.
pub(super) async fn migrate(client: &mut Client) -> Result<(), PostgresMigrationError> {
    loop {
        let transaction = client.transaction().await?;
        transaction.batch_execute(LOCK).await?;
        let version = version(&transaction).await?;
        if version > LATEST_VERSION {
            return Err(PostgresMigrationError::NewerVersion(version));
        }
        let Some(next) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
            return Ok(());
        };
        if version == 0 {
            transaction.batch_execute(CREATE_SCHEMA).await?;
        }
        transaction.batch_execute(next).await?;
        let applied = "INSERT INTO toolyard.migration (version) VALUES ($1)";
        transaction.execute(applied, &[&(version + 1)]).await?;
        transaction.commit().await?;
    }
}

/// The version of the tables; zero if there are none yet.
pub(super) async fn version(client: &impl GenericClient) -> Result<i64, PostgresMigrationError> {
    let exists = client.query_one("SELECT to_regclass('toolyard.migration') IS NOT NULL", &[]).await?;
    if !exists.get::<_, bool>(0) {
        return Ok(0);
    }
    let version = client.query_one("SELECT coalesce(max(version), 0) FROM toolyard.migration", &[]).await?;
    Ok(version.get(0))
}

impl PostgresMigrationError {
    /// Adds the location.
    pub(super) fn into_open_error(self, location: &impl Display) -> StoreOpenError {
        let location = location.to_string();
        match self {
            Self::NewerVersion(found) => {
                StoreOpenError::NewerVersion { location, version: found, supported: LATEST_VERSION }
            }
            Self::Database(error) => {
                StoreOpenError::Database { location, source: errors::store_error(error) }
            }
        }
    }
}

impl From<Error> for PostgresMigrationError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}
