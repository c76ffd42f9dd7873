//! Connections to a server, and which runtime drives them.

use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};
use tokio_rustls::rustls;
use toolyard_core::store::{StoreError, Trouble};

use super::tls::Tls;
use super::trouble;
use crate::{OpenError, PostgresUrl};

/// How long a server may take to accept a connection, and how long a caller waits for one of those that there are.
const WAIT: Duration = Duration::from_secs(5);

/// A pool of at most so many connections. None is made yet.
pub(super) fn pool(url: &PostgresUrl, connections: usize) -> Result<Pool, OpenError> {
    let mut config: Config = url.expose().parse().map_err(|error| OpenError::Url(trouble::reason(&error)))?;
    config.connect_timeout(config.get_connect_timeout().copied().unwrap_or(WAIT));
    if config.get_application_name().is_none() {
        config.application_name("toolyard");
    }
    let useless = |error| super::refused(url, StoreError::new(Trouble::Unavailable, error));
    let tls = tls(&config).map_err(|error| useless(error.to_string()))?;
    let connect = Connecting { tls, runtime: Handle::current() };
    // What happened to a connection is known without asking: its task has ended.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let builder = Pool::builder(Manager::from_connect(config, connect, recycling))
        .max_size(connections)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(WAIT))
        .runtime(Runtime::Tokio1);
    builder.build().map_err(|error| useless(error.to_string()))
}

/// TLS where the URL wants it. `prefer`, which is what a URL without a word means, would encrypt without knowing for whom;
/// what is to be secret has to be asked for, and then its certificate is checked.
fn tls(config: &Config) -> Result<Option<Tls>, rustls::Error> {
    match config.get_ssl_mode() {
        SslMode::Require => Tls::with_system_roots().map(Some),
        _ => Ok(None),
    }
}

/// Makes connections on the runtime on which the store was opened. Callers come from several, and any of these may end
/// before the pool does.
struct Connecting {
    tls: Option<Tls>,
    runtime: Handle,
}

impl Connect for Connecting {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (config, tls, runtime) = (config.clone(), self.tls.clone(), self.runtime.clone());
        let connected = self.runtime.spawn(async move {
            match tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    Ok((client, drive(&runtime, connection)))
                }
                None => {
                    let (client, connection) = plain(config).connect(NoTls).await?;
                    Ok((client, drive(&runtime, connection)))
                }
            }
        });
        Box::pin(async move {
            match connected.await {
                Ok(connected) => connected,
                // The runtime is ending, and so is whoever asked.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

fn plain(mut config: Config) -> Config {
    config.ssl_mode(SslMode::Disable);
    config
}

fn drive<S>(runtime: &Handle, connection: tokio_postgres::Connection<Socket, S>) -> JoinHandle<()>
where
    tokio_postgres::Connection<Socket, S>: Future<Output = Result<(), Error>> + Send + 'static,
{
    runtime.spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a connection to the store has broken");
        }
    })
}
