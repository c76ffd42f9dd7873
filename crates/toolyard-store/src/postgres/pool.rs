//! Connections to the server, and the runtime that drives them.

use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};
use tokio_rustls::rustls;
use toolyard_core::store::{StoreError, StoreErrorKind};

use super::errors;
use super::tls::PostgresTls;
use crate::{PostgresUrl, StoreOpenError};

/// Maximum time that the server takes to accept a connection, and that a caller waits for a free one.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// A pool of at most `connections` connections. It opens none yet.
pub(super) fn pool(url: &PostgresUrl, connections: usize) -> Result<Pool, StoreOpenError> {
    let mut config: Config =
        url.expose().parse().map_err(|error| StoreOpenError::Url(errors::message_with_cause(&error)))?;
    config.connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECTION_TIMEOUT));
    if config.get_application_name().is_none() {
        config.application_name("toolyard");
    }
    let unavailable = |error| super::database_error(url, StoreError::new(StoreErrorKind::Unavailable, error));
    let tls = tls(&config).map_err(|error| unavailable(error.to_string()))?;
    let connect = RuntimeConnector { tls, runtime: Handle::current() };
    // A broken connection needs no probe: its task has ended.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let builder = Pool::builder(Manager::from_connect(config, connect, recycling))
        .max_size(connections)
        .wait_timeout(Some(CONNECTION_TIMEOUT))
        .create_timeout(Some(CONNECTION_TIMEOUT))
        .runtime(Runtime::Tokio1);
    builder.build().map_err(|error| unavailable(error.to_string()))
}

/// TLS if the URL has `sslmode=require`. `prefer`, the default, would encrypt without authenticating the server; with
/// `require` the certificate is checked.
fn tls(config: &Config) -> Result<Option<PostgresTls>, rustls::Error> {
    match config.get_ssl_mode() {
        SslMode::Require => PostgresTls::with_system_roots().map(Some),
        _ => Ok(None),
    }
}

/// Opens connections on the runtime on which the store was opened. Callers run on several runtimes, any of which may
/// end before the pool does.
struct RuntimeConnector {
    tls: Option<PostgresTls>,
    runtime: Handle,
}

impl Connect for RuntimeConnector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (config, tls, runtime) = (config.clone(), self.tls.clone(), self.runtime.clone());
        let connecting = self.runtime.spawn(async move {
            match tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    Ok((client, spawn_driver(&runtime, connection)))
                }
                None => {
                    let (client, connection) = without_tls(config).connect(NoTls).await?;
                    Ok((client, spawn_driver(&runtime, connection)))
                }
            }
        });
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => connected,
                // The runtime shuts down, and the caller with it.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

fn without_tls(mut config: Config) -> Config {
    config.ssl_mode(SslMode::Disable);
    config
}

fn spawn_driver<S>(runtime: &Handle, connection: tokio_postgres::Connection<Socket, S>) -> JoinHandle<()>
where
    tokio_postgres::Connection<Socket, S>: Future<Output = Result<(), Error>> + Send + 'static,
{
    runtime.spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "lost a connection to the store");
        }
    })
}
