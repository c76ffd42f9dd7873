//! The listening sockets and their TLS certificate.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolyard_manifest::{ListenAddress, ListenerTls, ProcessSettings};
use toolyard_net::listener::{SocketListener, TlsError, TlsFiles, TlsSettings};

use crate::file_watcher::FileWatcher;
use crate::server::StartError;
use crate::status::LastEdit;

/// The bound sockets of a gateway, before it serves.
pub(crate) struct BoundListeners {
    pub(crate) listeners: Vec<SocketListener>,
    /// The bound addresses, with the ports that the system chose.
    pub(crate) listening: Vec<ListenAddress>,
    /// `None` without TLS.
    pub(crate) certificate: Option<Arc<ServerCertificate>>,
    /// Watches the files of the certificate.
    pub(crate) renewal: FileWatcher,
}

impl BoundListeners {
    /// Binds every address of the manifest.
    ///
    /// # Errors
    /// If an address cannot be bound or the certificate cannot be used.
    pub(crate) async fn open(process: &ProcessSettings) -> Result<Self, StartError> {
        let files = process.tls.clone().map(|ListenerTls { certificate, key, client_authority }| TlsFiles {
            certificate,
            key,
            client_authority,
        });
        let renewal = FileWatcher::of(files.iter().flat_map(TlsFiles::paths).collect()).await;
        let certificate = match files {
            Some(files) => {
                Some(Arc::new(ServerCertificate::read(files).await.map_err(StartError::Certificate)?))
            }
            None => None,
        };
        let mut site = Self { listeners: Vec::new(), listening: Vec::new(), certificate, renewal };
        for address in &process.listen {
            let outcome = site.listen(address, process).await;
            outcome.map_err(|error| StartError::Listen(address.clone(), error))?;
        }
        Ok(site)
    }

    async fn listen(&mut self, address: &ListenAddress, process: &ProcessSettings) -> std::io::Result<()> {
        let listener = match address {
            ListenAddress::Unix(path) => SocketListener::unix(path).await?,
            ListenAddress::Tcp(address) => {
                SocketListener::from(TcpListener::bind(address).await?).with_proxies(&process.proxy_protocol)
            }
        };
        let bound = listener.tcp_address()?;
        self.listening.push(bound.map_or_else(|| address.clone(), ListenAddress::Tcp));
        self.listeners.push(match &self.certificate {
            Some(certificate) => listener.with_tls(certificate.current.subscribe()),
            None => listener,
        });
        Ok(())
    }
}

/// The current certificate and its files.
pub(crate) struct ServerCertificate {
    files: TlsFiles,
    current: watch::Sender<TlsSettings>,
}

impl ServerCertificate {
    async fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let current = watch::Sender::new(read(files.clone()).await?);
        Ok(Self { files, current })
    }

    /// Reloads the certificate when its files change, checking them at the interval `every`.
    pub(crate) async fn follow(
        self: Arc<Self>,
        mut renewal: FileWatcher,
        every: Duration,
        last_edit: watch::Sender<Option<LastEdit>>,
    ) {
        loop {
            renewal.next(every).await;
            let files = self.files.clone();
            let tls = renewal.read(move || TlsSettings::read(&files)).await;
            self.replace(tls, &last_edit);
        }
    }

    /// Reloads the certificate for new connections. An unusable one is refused, and the current one stays.
    pub(crate) async fn reload(&self, last_edit: &watch::Sender<Option<LastEdit>>) {
        let tls = read(self.files.clone()).await;
        self.replace(tls, last_edit);
    }

    fn replace(&self, tls: Result<TlsSettings, TlsError>, last_edit: &watch::Sender<Option<LastEdit>>) {
        let outcome = match tls {
            Ok(tls) => {
                self.current.send_replace(tls);
                tracing::info!("the certificate is reloaded");
                LastEdit::now(true, "the certificate is reloaded".to_owned())
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                let reason = format!("{error}{}", cause.unwrap_or_default());
                tracing::error!("the new certificate is refused; the current one stays: {reason}");
                LastEdit::now(false, reason)
            }
        };
        last_edit.send_replace(Some(outcome));
    }
}

/// Reads the files on a blocking thread.
async fn read(files: TlsFiles) -> Result<TlsSettings, TlsError> {
    match spawn_blocking(move || TlsSettings::read(&files)).await {
        Ok(read) => read,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
