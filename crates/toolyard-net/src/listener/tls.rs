//! How connections are encrypted.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What a listener shows its clients, and asks of them: TLS 1.2 or later, HTTP/1.1 in it.
///
/// `Debug` shows nothing: the private key is in it.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Where it is read from; all files are PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and behind it those that lead to an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities, one of which has to vouch for each client. None: clients need no certificate.
    pub client_authority: Option<PathBuf>,
}

/// Why files are of no use. No message repeats what is in them.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not there, or not PEM, or has nothing of what it should have.
    #[error("{path} cannot be read as {noun}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// What it should have.
        noun: &'static str,
        /// Why not.
        source: pem::Error,
    },
    /// The certificate and the key do not fit together, or are of a kind that cannot be used.
    #[error("{certificate} and {key} cannot be used together")]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// An authority's certificate cannot be used.
    #[error("{0} has a certificate that cannot be used as an authority's")]
    Authority(PathBuf, #[source] rustls::Error),
    /// Clients cannot be verified.
    #[error("{0} cannot be used to verify clients")]
    Verifier(PathBuf, #[source] VerifierBuilderError),
}

impl TlsFiles {
    /// All of them.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_authority).cloned().collect()
    }
}

impl Tls {
    /// Reads the files, which takes as long as their file system does.
    ///
    /// # Errors
    /// When something is missing, or does not fit together.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(default_provider());
        let chain = certificates(&files.certificate)?;
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(unreadable(&files.key, "a private key"))?;
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
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// Shakes hands as the server. Who speaks HTTP without TLS is told so.
    pub(super) async fn shake_hands(self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        stream.peek(&mut first).await?;
        // A method begins with a letter, a handshake does not.
        if first[0].is_ascii_alphabetic() {
            refuse_plain(&mut stream).await?;
            return Err(io::Error::other("the client does not speak TLS"));
        }
        self.0.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Answers whoever forgot the `s` of `https`.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 33\r\n\
        Connection: close\r\n\r\nthis port speaks TLS: use https:\n";
    // What was not read would reset the connection, and the answer with it.
    let _request = stream.read(&mut [0; 8 * 1024]).await?;
    stream.write_all(REFUSAL.as_bytes()).await?;
    stream.shutdown().await
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || {
        let all: Vec<_> = CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?;
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
