//! PostgreSQL, for several gateways: a connection pool, and one statement per method where possible.
//!
//! - [`pool`]: connections, all driven by one runtime;
//! - [`tls`]: their encryption;
//! - [`migration`]: the tables;
//! - [`kv`], [`blob`], [`lease`], [`log`]: the store traits; [`log_rows`] has log records of earlier versions;
//! - [`errors`]: classification of PostgreSQL errors.

mod blob;
mod errors;
mod kv;
mod lease;
mod log;
mod log_rows;
mod migration;
mod pool;
mod tls;

use std::sync::Mutex;
use std::time::Duration;

use deadpool_postgres::{Client, Pool};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use toolyard_core::store::{StoreError, StoreErrorKind};

use crate::{ClosableStore, PostgresUrl, StoreOpenError};

pub(crate) use self::errors::message_with_cause;
pub(crate) use self::migration::LATEST_VERSION;

/// Maximum time of a statement: a server that hangs must not block its callers.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A store on PostgreSQL.
pub(crate) struct PostgresStore {
    pool: Pool,
    /// Maximum number of callers that wait for a connection.
    queue: usize,
    /// Earliest time of the next sweep of expired values.
    next_sweep: Mutex<Instant>,
}

type SqlParameter<'a> = &'a (dyn ToSql + Sync);

/// Connects, and migrates the tables.
pub(crate) async fn open(
    url: &PostgresUrl,
    connections: usize,
    queue: usize,
) -> Result<PostgresStore, StoreOpenError> {
    let pool = pool::pool(url, connections)?;
    let postgres = PostgresStore { pool, queue, next_sweep: Mutex::new(Instant::now()) };
    let mut client = postgres.client().await.map_err(|source| database_error(url, source))?;
    migration::migrate(&mut client).await.map_err(|error| error.into_open_error(url))?;
    drop(client);
    Ok(postgres)
}

/// The version of the tables in a database, and their size.
pub(crate) async fn describe(url: &PostgresUrl) -> Result<(Option<i64>, u64), StoreOpenError> {
    // Of the tables with their indexes and TOAST data.
    const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class \
        JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'toolyard' AND relkind = 'r'";
    let postgres =
        PostgresStore { pool: pool::pool(url, 1)?, queue: 1, next_sweep: Mutex::new(Instant::now()) };
    let client = postgres.client().await.map_err(|source| database_error(url, source))?;
    let version = migration::version(&client).await.map_err(|error| error.into_open_error(url))?;
    let row = client.query_one(SIZE, &[]).await;
    let size: i64 = row.map_err(|error| database_error(url, errors::store_error(error)))?.get(0);
    Ok(((version > 0).then_some(version), size.unsigned_abs()))
}

fn database_error(url: &PostgresUrl, source: StoreError) -> StoreOpenError {
    StoreOpenError::Database { location: url.to_string(), source }
}

impl ClosableStore for PostgresStore {
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.pool.close() })
    }
}

impl PostgresStore {
    async fn client(&self) -> Result<Client, StoreError> {
        if self.pool.status().waiting >= self.queue {
            return Err(StoreError::new(StoreErrorKind::Busy, "too many callers wait for a connection"));
        }
        self.pool.get().await.map_err(errors::pool_error)
    }

    /// Runs one statement, which is its own transaction, and returns its rows.
    async fn query(&self, statement: &str, parameters: &[SqlParameter<'_>]) -> Result<Vec<Row>, StoreError> {
        query_rows(&self.client().await?, statement, parameters).await
    }

    /// Runs a statement that changes nothing. It is repeated if its connection turns out to be lost: a pooled
    /// connection notices at its next use that its server was replaced.
    async fn read(&self, statement: &str, parameters: &[SqlParameter<'_>]) -> Result<Vec<Row>, StoreError> {
        for _ in 0..self.pool.status().size {
            let client = self.client().await?;
            let outcome = query_rows(&client, statement, parameters).await;
            if outcome.is_ok() || !client.is_closed() {
                return outcome;
            }
        }
        self.query(statement, parameters).await
    }
}

async fn query_rows(
    client: &Client,
    statement: &str,
    parameters: &[SqlParameter<'_>],
) -> Result<Vec<Row>, StoreError> {
    let rows = async {
        let statement = client.prepare_cached(statement).await?;
        client.query(&statement, parameters).await
    };
    with_timeout(rows, errors::store_error).await
}

/// Fails after [`STATEMENT_TIMEOUT`]. The server may have executed the statement by then.
async fn with_timeout<T, E>(
    work: impl Future<Output = Result<T, E>>,
    store_error: impl FnOnce(E) -> StoreError,
) -> Result<T, StoreError> {
    let outcome = timeout(STATEMENT_TIMEOUT, work).await;
    let done =
        outcome.map_err(|_| StoreError::new(StoreErrorKind::Unavailable, "the server does not respond"))?;
    done.map_err(store_error)
}
