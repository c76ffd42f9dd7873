//! The tables of a database, and how older ones become these.

use std::fmt::Display;

use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Error;

use super::trouble;
use crate::OpenError;

/// What makes of each version the next.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/postgres/0001_tables.sql")];

/// The version of the tables that the statements here are written for.
pub(crate) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Two gateways that start at once do not both make tables. The number is "Tool" in ASCII: nobody else should have it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1416589164)";

const BEGINNING: &str = "CREATE SCHEMA toolyard; \
    CREATE TABLE toolyard.migration (version bigint PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())";

/// Why a database is of no use.
pub(super) enum Unfit {
    Later(i64),
    Failed(Error),
}

/// Brings the tables up to date, each version in a transaction of its own.
pub(super) async fn migrate(client: &mut Client) -> Result<(), Unfit> {
    loop {
        let transaction = client.transaction().await?;
        transaction.batch_execute(LOCK).await?;
        let version = version(&transaction).await?;
        if version > NEWEST {
            return Err(Unfit::Later(version));
        }
        let Some(next) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
            return Ok(());
        };
        if version == 0 {
            transaction.batch_execute(BEGINNING).await?;
        }
        transaction.batch_execute(next).await?;
        let applied = "INSERT INTO toolyard.migration (version) VALUES ($1)";
        transaction.execute(applied, &[&(version + 1)]).await?;
        transaction.commit().await?;
    }
}

/// The version of the tables; zero where there are none yet.
pub(super) async fn version(client: &impl GenericClient) -> Result<i64, Unfit> {
    let exists = client.query_one("SELECT to_regclass('toolyard.migration') IS NOT NULL", &[]).await?;
    if !exists.get::<_, bool>(0) {
        return Ok(0);
    }
    let version = client.query_one("SELECT coalesce(max(version), 0) FROM toolyard.migration", &[]).await?;
    Ok(version.get(0))
}

impl Unfit {
    /// As an error that says where.
    pub(super) fn at(self, location: &impl Display) -> OpenError {
        let location = location.to_string();
        match self {
            Self::Later(found) => OpenError::Later { location, found, newest: NEWEST },
            Self::Failed(error) => OpenError::Database { location, source: trouble::error(error) },
        }
    }
}

impl From<Error> for Unfit {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
