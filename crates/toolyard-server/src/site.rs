//! Where the gateway listens, and the certificate that it shows there.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolyard_manifest::{Listen, ListenerTls, Process};
use toolyard_net::listener::{Listener, Tls, TlsError, TlsFiles};

use crate::edits::Edits;
use crate::server::StartError;
use crate::status::LastEdit;

/// The sockets of a gateway, before anybody is served.
pub(crate) struct Site {
    pub(crate) listeners: Vec<Listener>,
    /// The same places, with the ports that the system chose.
    pub(crate) listening: Vec<Listen>,
    /// `None` where nothing is encrypted.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// Edits of the certificate's files since it was read.
    pub(crate) renewals: Edits,
}

impl Site {
    /// Listens wherever the manifest says.
    ///
    /// # Errors
    /// When a place is not to be had, or the certificate cannot be used.
    pub(crate) async fn open(process: &Process) -> Result<Self, StartError> {
        let files = process.tls.clone().map(|ListenerTls { certificate, key, client_authority }| TlsFiles {
            certificate,
            key,
            client_authority,
        });
        let renewals = Edits::of(files.iter().flat_map(TlsFiles::paths).collect()).await;
        let certificate = match files {
            Some(files) => Some(Arc::new(Certificate::read(files).await.map_err(StartError::Certificate)?)),
            None => None,
        };
        let mut site = Self { listeners: Vec::new(), listening: Vec::new(), certificate, renewals };
        for place in &process.listen {
            let opened = site.listen(place, process).await;
            opened.map_err(|error| StartError::Listen(place.clone(), error))?;
        }
        Ok(site)
    }

    async fn listen(&mut self, place: &Listen, process: &Process) -> std::io::Result<()> {
        let listener = match place {
            Listen::Unix(path) => Listener::unix(path).await?,
            Listen::Tcp(address) => {
                Listener::from(TcpListener::bind(address).await?).behind(&process.proxy_protocol)
            }
        };
        let address = listener.tcp_address()?;
        self.listening.push(address.map_or_else(|| place.clone(), Listen::Tcp));
        self.listeners.push(match &self.certificate {
            Some(certificate) => listener.with_tls(certificate.current.subscribe()),
            None => listener,
        });
        Ok(())
    }
}

/// The certificate of the moment, and the files that it is read from.
pub(crate) struct Certificate {
    files: TlsFiles,
    current: watch::Sender<Tls>,
}

impl Certificate {
    async fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let current = watch::Sender::new(read(files.clone()).await?);
        Ok(Self { files, current })
    }

    /// Reads the files again whenever they change. They are looked at every so often.
    pub(crate) async fn follow(
        self: Arc<Self>,
        mut renewals: Edits,
        every: Duration,
        last_edit: watch::Sender<Option<LastEdit>>,
    ) {
        loop {
            renewals.next(every).await;
            self.reload(&last_edit).await;
        }
    }

    /// Reads the files again. New connections are shown what they say now; if that is of no use, what they said before.
    pub(crate) async fn reload(&self, last_edit: &watch::Sender<Option<LastEdit>>) {
        let outcome = match read(self.files.clone()).await {
            Ok(tls) => {
                self.current.send_replace(tls);
                tracing::info!("the certificate is read again");
                LastEdit::now(true, "the certificate is read again".to_owned())
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                let reason = format!("{error}{}", cause.unwrap_or_default());
                tracing::error!("a new certificate is refused, and the old one stays: {reason}");
                LastEdit::now(false, reason)
            }
        };
        last_edit.send_replace(Some(outcome));
    }
}

/// A file system may take its time.
async fn read(files: TlsFiles) -> Result<Tls, TlsError> {
    match spawn_blocking(move || Tls::read(&files)).await {
        Ok(read) => read,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
