//! The certificate of the webhook, which is renewed while it serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use toolyard_core::file;

/// Maximum size of a file in bytes.
const FILE_BYTES: usize = 1024 * 1024;

/// PEM files of the certificate, as of a Secret of the type `kubernetes.io/tls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The files are unusable. Messages do not repeat their content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, String),
    /// A file has no such item.
    #[error("{0} has no {1} in PEM")]
    Item(PathBuf, &'static str),
    /// The certificate and the key do not match, or their kind is unsupported.
    #[error("{0} and {1} are not a usable pair of certificate and key")]
    Pair(PathBuf, PathBuf),
}

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CertificateText {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(super) async fn read(&self) -> Result<CertificateText, CertificateError> {
        Ok(CertificateText { certificate: read(&self.certificate).await?, key: read(&self.key).await? })
    }

    /// Returns the acceptor of TLS connections.
    ///
    /// # Errors
    /// If the texts are not a certificate and its key.
    pub(super) fn acceptor(&self, text: &CertificateText) -> Result<TlsAcceptor, CertificateError> {
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&text.certificate).collect::<Result<_, _>>().unwrap_or_default();
        if chain.is_empty() {
            return Err(CertificateError::Item(self.certificate.clone(), "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&text.key)
            .map_err(|_| CertificateError::Item(self.key.clone(), "private key"))?;
        let pair = |_| CertificateError::Pair(self.certificate.clone(), self.key.clone());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(pair)?.with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config).into())
    }
}

/// Reads a file on a blocking thread.
async fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let owned = path.to_owned();
    let text = tokio::task::spawn_blocking(move || file::read(&owned, FILE_BYTES));
    let error = |error: String| CertificateError::Read(path.to_owned(), error);
    text.await.map_err(|panic| error(panic.to_string()))?.map_err(|failure| error(failure.to_string()))
}
