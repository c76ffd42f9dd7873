//! TLS of listeners.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pem_file;

/// The certificate of a listener, and the verification of its clients: TLS 1.2 or later.
///
/// `Debug` shows nothing, as the private key is included.
#[derive(Clone)]
pub struct TlsSettings {
    http1: TlsAcceptor,
    http2: TlsAcceptor,
}

/// The version of HTTP that a listener offers in TLS handshakes (ALPN, RFC 7301).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OfferedVersion {
    #[default]
    Http1,
    #[cfg_attr(not(feature = "http2"), expect(dead_code, reason = "no listener speaks HTTP/2"))]
    Http2,
}

/// The PEM files of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// Authorities that have to sign client certificates. `None`: clients need no certificate.
    pub client_authority: Option<PathBuf>,
}

/// The files are unusable. Messages do not repeat file contents.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing, is not PEM, or does not contain the expected item.
    #[error("cannot read {noun} from {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The expected item.
        noun: &'static str,
        /// The cause.
        source: pem::Error,
    },
    /// The certificate and the key do not match, or their kind is unsupported.
    #[error("{certificate} and {key} are not a usable pair of certificate and key")]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The certificate of an authority is unusable.
    #[error("{0} has a certificate that is unusable as an authority")]
    Authority(PathBuf, #[source] rustls::Error),
    /// Client verification is impossible.
    #[error("cannot verify clients with {0}")]
    Verifier(PathBuf, #[source] VerifierBuilderError),
}

impl TlsFiles {
    /// The paths of all files.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_authority).cloned().collect()
    }
}

impl TlsSettings {
    /// Reads the files. Blocks on the file system.
    ///
    /// # Errors
    /// Errors if a file is missing, or if the files do not match.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(default_provider());
        let chain = certificates(&files.certificate)?;
        let key = pem_file::private_key(&files.key).map_err(unreadable(&files.key, "a private key"))?;
        let clients = match &files.client_authority {
            Some(authority) => verifier(authority, &provider)?,
            None => Arc::new(NoClientAuth),
        };
        let pair = |source| TlsError::Pair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            source,
        };
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(pair)?.with_client_cert_verifier(clients);
        let mut config = config.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let http2 = Arc::new(config.clone()).into();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { http1: Arc::new(config).into(), http2 })
    }

    /// Returns the acceptor of connections that speak this version of HTTP.
    pub(super) fn acceptor(&self, version: OfferedVersion) -> TlsAcceptor {
        match version {
            OfferedVersion::Http1 => self.http1.clone(),
            OfferedVersion::Http2 => self.http2.clone(),
        }
    }
}

/// Performs the server handshake. A client that sends plain HTTP gets an error response.
pub(super) async fn handshake(
    acceptor: TlsAcceptor,
    mut stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // A method begins with a letter, a handshake does not.
    if first[0].is_ascii_alphabetic() {
        refuse_plain(&mut stream).await?;
        return Err(io::Error::other("the client does not speak TLS"));
    }
    acceptor.accept(stream).await
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Answers a plain HTTP request on a TLS port.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 33\r\n\
        Connection: close\r\n\r\nthis port speaks TLS: use https:\n";
    // Unread bytes would reset the connection, and lose the response.
    let _request = stream.read(&mut [0; 8 * 1024]).await?;
    stream.write_all(REFUSAL.as_bytes()).await?;
    stream.shutdown().await
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || {
        let all = pem_file::certificates(path)?;
        if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) }
    };
    read().map_err(unreadable(path, "certificates"))
}

fn verifier(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::Authority(path.to_owned(), error))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    verifier.build().map(|verifier| verifier as _).map_err(|error| TlsError::Verifier(path.to_owned(), error))
}

fn unreadable(path: &Path, noun: &'static str) -> impl FnOnce(pem::Error) -> TlsError {
    move |source| TlsError::Read { path: path.to_owned(), noun, source }
}
