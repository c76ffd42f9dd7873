//! A client for protocols on HTTP/2, such as gRPC. It resolves, connects and verifies as [`crate::client`] does.
//!
//! Each runtime has one connection, which carries all of its requests and is opened by the first one. A request on a
//! connection that has just been closed is sent again on another one if the server has not processed it.

mod renewing_connector;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime;
use tokio::sync::watch;
use tower_service::Service;

use self::renewing_connector::RenewingConnector;
use crate::annotated_stream::{AnnotatedStream, ConnectionNote};
use crate::client::{PolicyConnector, RequestError, system_roots, tcp_connector, tls};
use crate::egress::{EgressPolicy, PolicyResolver};
use crate::pem_file;
use crate::proxy::{ProxyConnector, ProxySettings};
use crate::tls_verifier::{AnyCertificate, CertificateVerifier};

/// The certificates of servers that a client trusts.
#[derive(Debug, Clone, Copy)]
pub enum ServerTrust<'a> {
    /// Those of the system's authorities.
    System,
    /// Those of the authorities in a file, in PEM.
    Authorities(&'a Path),
    /// Any certificate.
    AnyCertificate,
}

/// The encryption of connections.
#[derive(Debug, Clone, Copy)]
pub struct ClientTls<'a> {
    /// Trusted servers.
    pub trust: ServerTrust<'a>,
    /// Files with the certificate chain and the key of the client, in PEM.
    pub identity: Option<(&'a Path, &'a Path)>,
}

/// Pings on a connection, by which a vanished server is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlivePings {
    /// Time between two pings.
    pub interval: Duration,
    /// Time limit of the answer.
    pub timeout: Duration,
}

/// The TLS settings are unusable. The error names the field of the settings.
#[derive(Debug, thiserror::Error)]
#[error("{field}: cannot use {path}: {error}")]
pub struct ClientTlsError {
    field: &'static str,
    path: String,
    #[source]
    error: io::Error,
}

/// An HTTP/2 client. Clones share the connections.
pub struct Http2Client<B> {
    shared: Arc<SharedClient<B>>,
}

struct SharedClient<B> {
    pools: RwLock<HashMap<runtime::Id, ConnectionPool<B>>>,
    connector: ObservedConnector,
    pings: Option<KeepAlivePings>,
}

type ConnectionPool<B> = HyperClient<ObservedConnector, B>;

impl<B> Clone for Http2Client<B> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<B> Http2Client<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Creates a client for URLs with `https` if there are TLS settings, which uses the proxies of the environment, and
    /// otherwise for those with `http`, without proxies: an HTTP proxy cannot relay HTTP/2. Files of the TLS settings
    /// that have changed are read again for the next connection.
    ///
    /// # Errors
    /// Errors if a file cannot be read, or the defaults of the TLS library are unusable.
    pub fn new(tls: Option<ClientTls<'_>>, pings: Option<KeepAlivePings>) -> Result<Self, ClientTlsError> {
        let proxies = if tls.is_some() { ProxySettings::from_environment() } else { ProxySettings::none() };
        let http = tcp_connector(PolicyResolver::system(EgressPolicy::Anywhere));
        let proxy = ProxyConnector { direct: http, proxies: Arc::new(proxies) };
        let connector = RenewingConnector::new(tls, proxy)?;
        let connector = ObservedConnector { connector, closed: Arc::new(watch::Sender::new(0)) };
        Ok(Self { shared: Arc::new(SharedClient { pools: RwLock::default(), connector, pings }) })
    }

    /// Returns the number of closed connections so far, and its changes.
    #[must_use]
    pub fn closed_connections(&self) -> watch::Receiver<u64> {
        self.shared.connector.closed.subscribe()
    }

    /// Sends a request on the connection of the current runtime, and waits for the head of the response.
    ///
    /// # Errors
    /// Errors if there is no response. An error status is a response.
    pub async fn send(&self, request: Request<B>) -> Result<Response<Incoming>, RequestError> {
        let runtime = runtime::Handle::current().id();
        let pools = || self.shared.pools.read().unwrap_or_else(PoisonError::into_inner);
        let response = if let Some(pool) = pools().get(&runtime) {
            pool.request(request)
        } else {
            self.add_pool(runtime).request(request)
        };
        response.await.map_err(|error| match error.is_connect() {
            true => RequestError::Connect(error.into()),
            false => RequestError::Broken(error.into()),
        })
    }

    /// Opens a connection to the host of a URL, with a TLS handshake for `https`, and closes it.
    ///
    /// # Errors
    /// If the connection cannot be opened.
    pub async fn check_connection(&self, url: Uri) -> Result<(), RequestError> {
        self.shared.connector.connect(url).await.map(drop).map_err(RequestError::Connect)
    }

    /// Adds the connection of a runtime.
    fn add_pool(&self, runtime: runtime::Id) -> ConnectionPool<B> {
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.http2_only(true).timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(None);
        if let Some(pings) = self.shared.pings {
            builder.http2_keep_alive_interval(pings.interval).http2_keep_alive_timeout(pings.timeout);
            builder.http2_keep_alive_while_idle(true);
        }
        let pool = builder.build(self.shared.connector.clone());
        let mut pools = self.shared.pools.write().unwrap_or_else(PoisonError::into_inner);
        pools.entry(runtime).or_insert(pool).clone()
    }
}

fn tls_config(tls: Option<ClientTls<'_>>) -> Result<ClientConfig, ClientTlsError> {
    let unusable = |error| ClientTlsError { field: "tls", path: "the TLS library".to_owned(), error };
    let builder = self::tls().map_err(unusable)?;
    let Some(tls) = tls else {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    };
    let builder = match tls.trust {
        ServerTrust::AnyCertificate => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::default()))
        }
        trust => {
            let roots = roots(trust)?;
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = CertificateVerifier(verifier.map_err(io::Error::other).map_err(unusable)?);
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let Some((chain, key)) = tls.identity else { return Ok(builder.with_no_client_auth()) };
    let key_der = pem_file::private_key(key).map_err(|error| in_file("tlsKeyPath", key, error))?;
    let chain_der = certificates("tlsCertPath", chain)?;
    builder.with_client_auth_cert(chain_der, key_der).map_err(|error| in_file("tlsKeyPath", key, error))
}

fn roots(trust: ServerTrust<'_>) -> Result<RootCertStore, ClientTlsError> {
    let ServerTrust::Authorities(file) = trust else { return Ok(system_roots()) };
    let mut roots = RootCertStore::empty();
    if roots.add_parsable_certificates(certificates("tlsCAPath", file)?).0 == 0 {
        return Err(in_file("tlsCAPath", file, "the file has no certificate of an authority"));
    }
    Ok(roots)
}

fn certificates(field: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, ClientTlsError> {
    let certificates = pem_file::certificates(file).map_err(|error| in_file(field, file, error))?;
    if certificates.is_empty() {
        return Err(in_file(field, file, "the file has no certificate"));
    }
    Ok(certificates)
}

fn in_file(
    field: &'static str,
    path: &Path,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ClientTlsError {
    ClientTlsError { field, path: path.display().to_string(), error: io::Error::other(error) }
}

// === connections that report their end ===

/// Opens connections that count themselves when they are closed.
#[derive(Clone)]
struct ObservedConnector {
    connector: RenewingConnector,
    closed: Arc<watch::Sender<u64>>,
}

impl ObservedConnector {
    /// Opens a connection that is not counted.
    async fn connect(
        &self,
        url: Uri,
    ) -> Result<<PolicyConnector as Service<Uri>>::Response, <PolicyConnector as Service<Uri>>::Error> {
        let mut connector = self.connector.current().await;
        poll_fn(|context| connector.poll_ready(context)).await?;
        connector.call(url).await
    }
}

/// A connection that is counted when it is dropped.
type ObservedStream = AnnotatedStream<<PolicyConnector as Service<Uri>>::Response, CloseCounter>;

/// Counts a connection when it is dropped.
struct CloseCounter(Arc<watch::Sender<u64>>);

impl ConnectionNote for CloseCounter {}

impl Drop for CloseCounter {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl Service<Uri> for ObservedConnector {
    type Response = ObservedStream;
    type Error = <PolicyConnector as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<ObservedStream, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let stream = this.connect(url).await?;
            Ok(ObservedStream { stream, note: CloseCounter(this.closed) })
        })
    }
}
