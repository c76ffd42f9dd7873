//! A connector for the TLS settings in files, which are read again when they have changed: certificates in a cluster
//! live for some hours.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper_rustls::HttpsConnectorBuilder;
use tokio::task::spawn_blocking;

use super::{ClientTls, ClientTlsError, ServerTrust, tls_config};
use crate::client::PolicyConnector;
use crate::proxy::ProxyConnector;

/// The connector of a client. Clones share it.
#[derive(Clone)]
pub(super) struct RenewingConnector(Arc<ConnectorState>);

struct ConnectorState {
    proxy: ProxyConnector,
    /// Settings with files.
    files: Option<TlsFilePaths>,
    loaded: Mutex<LoadedConnector>,
}

/// A connector with the state of the files that it was made of.
struct LoadedConnector {
    connector: PolicyConnector,
    stamps: Vec<FileStamp>,
}

/// The paths of [`ClientTls`].
struct TlsFilePaths {
    authorities: Option<PathBuf>,
    accepts_any: bool,
    identity: Option<(PathBuf, PathBuf)>,
}

/// Device, inode, size and time of the last change of a file, to which a link may lead; `None` if there is none.
type FileStamp = Option<(u64, u64, u64, (i64, i64))>;

impl RenewingConnector {
    /// Reads the files. Blocks on the file system.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub(super) fn new(tls: Option<ClientTls<'_>>, proxy: ProxyConnector) -> Result<Self, ClientTlsError> {
        let files = tls.map(TlsFilePaths::of).filter(|files| files.paths().next().is_some());
        // Before the files are read: a change meanwhile is noticed later.
        let stamps = files.as_ref().map(TlsFilePaths::stamps).unwrap_or_default();
        let loaded = Mutex::new(LoadedConnector { connector: connector(tls, proxy.clone())?, stamps });
        Ok(Self(Arc::new(ConnectorState { proxy, files, loaded })))
    }

    /// Returns the connector for a new connection, with the current files.
    pub(super) async fn current(&self) -> PolicyConnector {
        if self.0.files.is_some() {
            let state = self.0.clone();
            // If it panics, the connector stays.
            let _panicked = spawn_blocking(move || state.renew()).await;
        }
        self.0.loaded().connector.clone()
    }
}

impl ConnectorState {
    fn loaded(&self) -> MutexGuard<'_, LoadedConnector> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again if they have changed. If they cannot be used, the connector stays, and the next connection
    /// tries again: they may be half written.
    fn renew(&self) {
        let Some(files) = &self.files else { return };
        let stamps = files.stamps();
        if self.loaded().stamps == stamps {
            return;
        }
        match connector(Some(files.tls()), self.proxy.clone()) {
            Ok(connector) => {
                tracing::info!("reloaded the certificates for connections to a server");
                *self.loaded() = LoadedConnector { connector, stamps };
            }
            Err(error) => tracing::warn!("the new certificates are refused; the current ones stay: {error}"),
        }
    }
}

impl TlsFilePaths {
    fn of(tls: ClientTls<'_>) -> Self {
        let authorities = match tls.trust {
            ServerTrust::Authorities(file) => Some(file.to_owned()),
            ServerTrust::System | ServerTrust::AnyCertificate => None,
        };
        let accepts_any = matches!(tls.trust, ServerTrust::AnyCertificate);
        let identity = tls.identity.map(|(chain, key)| (chain.to_owned(), key.to_owned()));
        Self { authorities, accepts_any, identity }
    }

    fn tls(&self) -> ClientTls<'_> {
        let trust = match &self.authorities {
            Some(file) => ServerTrust::Authorities(file),
            None if self.accepts_any => ServerTrust::AnyCertificate,
            None => ServerTrust::System,
        };
        ClientTls { trust, identity: self.identity.as_ref().map(|(chain, key)| (&**chain, &**key)) }
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let identity = self.identity.iter().flat_map(|(chain, key)| [chain, key]);
        self.authorities.iter().chain(identity).map(PathBuf::as_path)
    }

    fn stamps(&self) -> Vec<FileStamp> {
        self.paths().map(stamp).collect()
    }
}

fn stamp(file: &Path) -> FileStamp {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.size(), (found.ctime(), found.ctime_nsec())))
}

fn connector(tls: Option<ClientTls<'_>>, proxy: ProxyConnector) -> Result<PolicyConnector, ClientTlsError> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls_config(tls)?);
    Ok(builder.https_or_http().enable_http2().wrap_connector(proxy))
}
