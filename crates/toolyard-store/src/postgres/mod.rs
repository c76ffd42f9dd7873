//! PostgreSQL, for several gateways: a pool of connections, and one statement for each method where that is enough.
//!
//! - [`pool`]: connections, which are one runtime's;
//! - [`tls`]: how they are encrypted;
//! - [`migration`]: the tables;
//! - [`kv`], [`blob`], [`lease`], [`log`]: the ports;
//! - [`trouble`]: what its errors mean.

mod blob;
mod kv;
mod lease;
mod log;
mod migration;
mod pool;
mod tls;
mod trouble;

use std::sync::Mutex;
use std::time::Duration;

use deadpool_postgres::{Client, Pool};
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use toolyard_core::store::{StoreError, Trouble};

use crate::{OpenError, PostgresUrl};

pub(crate) use self::migration::NEWEST;
pub(crate) use self::trouble::reason;

/// How long a statement may take: a server that hangs must not hang its callers.
const PATIENCE: Duration = Duration::from_secs(10);

/// A store on PostgreSQL.
pub(crate) struct Postgres {
    pool: Pool,
    /// Callers that may wait for a connection.
    queue: usize,
    /// When expired values are looked for the next time.
    sweep: Mutex<Instant>,
}

type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Connects, and brings the tables up to date.
pub(crate) async fn open(url: &PostgresUrl, connections: usize, queue: usize) -> Result<Postgres, OpenError> {
    let pool = pool::pool(url, connections)?;
    let postgres = Postgres { pool, queue, sweep: Mutex::new(Instant::now()) };
    let mut client = postgres.client().await.map_err(|source| refused(url, source))?;
    migration::migrate(&mut client).await.map_err(|unfit| unfit.at(url))?;
    drop(client);
    Ok(postgres)
}

/// The version of the tables in a database, and their size.
pub(crate) async fn describe(url: &PostgresUrl) -> Result<(Option<i64>, u64), OpenError> {
    // Of tables and what belongs to them, such as indices.
    const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class \
        JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'toolyard' AND relkind = 'r'";
    let postgres = Postgres { pool: pool::pool(url, 1)?, queue: 1, sweep: Mutex::new(Instant::now()) };
    let client = postgres.client().await.map_err(|source| refused(url, source))?;
    let version = migration::version(&client).await.map_err(|unfit| unfit.at(url))?;
    let row = client.query_one(SIZE, &[]).await;
    let size: i64 = row.map_err(|error| refused(url, trouble::error(error)))?.get(0);
    Ok(((version > 0).then_some(version), size.unsigned_abs()))
}

fn refused(url: &PostgresUrl, source: StoreError) -> OpenError {
    OpenError::Database { location: url.to_string(), source }
}

impl Postgres {
    async fn client(&self) -> Result<Client, StoreError> {
        if self.pool.status().waiting >= self.queue {
            return Err(StoreError::new(Trouble::Busy, "too many wait for a connection"));
        }
        self.pool.get().await.map_err(trouble::no_connection)
    }

    /// The rows that one statement gives, which is a transaction by itself.
    async fn rows(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let rows = async {
            let statement = client.prepare_cached(statement).await?;
            client.query(&statement, parameters).await
        };
        in_time(rows).await
    }
}

/// Gives up after a while. Whether the server has done its part by then is not known.
async fn in_time<T>(work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, StoreError> {
    let done = timeout(PATIENCE, work).await;
    let done = done.map_err(|_| StoreError::new(Trouble::Unavailable, "the server does not answer"))?;
    done.map_err(trouble::error)
}
