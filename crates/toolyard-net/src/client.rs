//! Requests to other servers.

mod connection_pool;

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::client::WebPkiServerVerifier;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tokio::runtime;
use toolyard_core::CauseCode;
use tower_service::Service;

pub use self::connection_pool::ResponseBody;
use self::connection_pool::{ConnectionPool, ExchangeError};
use crate::egress::{EgressPolicy, NonPublicHost, PolicyResolver, is_policy_refusal};
use crate::failure::{connection_cause, connection_reason};
use crate::pem_file;
use crate::proxy::{ProxyConnector, ProxySettings};
use crate::tls_verifier::{AnyCertificate, CertificateVerifier};

/// Maximum idle time of a connection. Shorter than common limits of servers (Node.js: 5 s), so that few requests meet
/// a closed connection; these are sent again, as the server has not read them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum time to open a connection: a machine that is off does not refuse it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle time after which the system probes the peer.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(60);

/// An HTTP/1.1 client with connection pools. Clones share the pools.
///
/// Each runtime that sends requests has a pool: a connection is driven by the runtime that opened it, and a request
/// from another runtime would wake that one's thread twice (see [`crate::workers`]).
#[derive(Debug, Clone)]
pub struct HttpClient {
    pools: Arc<RwLock<HashMap<runtime::Id, Arc<ConnectionPool>>>>,
    connector: PolicyConnector,
    policy: EgressPolicy,
    tls: Arc<ClientConfig>,
    proxies: Arc<ProxySettings>,
}

pub(crate) type PolicyConnector = HttpsConnector<ProxyConnector>;

/// A request without a response.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The connection failed; the server has not seen the request.
    #[error("cannot connect")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The policy of the client does not allow the host.
    #[error("the host has no public address")]
    NotPublic,
    /// The connection broke before the head of the response.
    #[error("the connection broke before the response")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl RequestError {
    /// Returns the reason for callers, which names no address and no host.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect(cause) => connection_reason(&**cause).unwrap_or("cannot connect"),
            Self::NotPublic => "not a public address",
            Self::Broken(cause) => connection_reason(&**cause).unwrap_or("connection broken"),
        }
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn code(&self) -> CauseCode {
        let code = match self {
            Self::Connect(cause) | Self::Broken(cause) => connection_cause(&**cause).map(|(code, _)| code),
            Self::NotPublic => None,
        };
        code.unwrap_or(match self {
            Self::Connect(_) | Self::NotPublic => CauseCode::Unreachable,
            Self::Broken(_) => CauseCode::ConnectionBroken,
        })
    }
}

impl HttpClient {
    /// A client that verifies server certificates with the system's trusted roots, or those of `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR`.
    ///
    /// # Errors
    /// Errors if the system has no root certificates, or if they cannot be read.
    pub fn with_system_roots() -> std::io::Result<Self> {
        Self::with_roots(system_roots())
    }

    /// A client that also trusts the authorities in a file, in PEM.
    ///
    /// # Errors
    /// Errors if the file cannot be read, or has no certificate.
    pub fn with_authorities(file: &Path) -> std::io::Result<Self> {
        let mut roots = system_roots();
        let certificates = pem_file::certificates(file).map_err(std::io::Error::other)?;
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(std::io::Error::other("the file has no certificate of an authority"));
        }
        Self::with_roots(roots)
    }

    /// A client that accepts any certificate.
    ///
    /// # Errors
    /// Errors if the defaults of the TLS library are unusable.
    pub fn without_verification() -> std::io::Result<Self> {
        let tls = tls()?.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::default()));
        Ok(Self::new(tls.with_no_client_auth()))
    }

    /// The same client with other proxies and pools of its own.
    #[must_use]
    pub fn with_proxies(&self, proxies: ProxySettings) -> Self {
        Self::with_policy(self.tls.clone(), self.policy, PolicyResolver::system(self.policy), proxies)
    }

    fn with_roots(roots: RootCertStore) -> std::io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = CertificateVerifier(verifier.map_err(std::io::Error::other)?);
        let tls = tls()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Self::new(tls.with_no_client_auth()))
    }

    /// A client that trusts no certificates, for servers that are all reached through plain `http`. It saves the time
    /// and the memory of the system's roots.
    ///
    /// # Errors
    /// Errors if the defaults of the TLS library are unusable.
    pub fn without_roots() -> std::io::Result<Self> {
        Ok(Self::new(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
    }

    /// A client with the same roots and pools of its own, which connects to public addresses only. For requests with
    /// a host that a caller can influence. It uses no proxy, which would resolve the name again.
    #[must_use]
    pub fn public_only(&self) -> Self {
        Self::with_policy(
            self.tls.clone(),
            EgressPolicy::Public,
            PolicyResolver::system(EgressPolicy::Public),
            ProxySettings::none(),
        )
    }

    fn new(tls: ClientConfig) -> Self {
        Self::with_policy(
            Arc::new(tls),
            EgressPolicy::Anywhere,
            PolicyResolver::system(EgressPolicy::Anywhere),
            ProxySettings::from_environment(),
        )
    }

    #[cfg(test)]
    pub(crate) fn with_resolver(resolver: PolicyResolver) -> Self {
        let tls = tls().unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Self::with_policy(Arc::new(tls), EgressPolicy::Anywhere, resolver, ProxySettings::none())
    }

    fn with_policy(
        tls: Arc<ClientConfig>,
        policy: EgressPolicy,
        resolver: PolicyResolver,
        proxies: ProxySettings,
    ) -> Self {
        let proxies = Arc::new(proxies);
        let http = tcp_connector(resolver);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config((*tls).clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(ProxyConnector { direct: http, proxies: proxies.clone() });
        Self { pools: Arc::default(), connector, policy, tls, proxies }
    }

    /// Sends a request through the pool of the current runtime, and waits for the head of the response.
    ///
    /// # Errors
    /// Errors if there is no response. An error status is a response.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        if let Some(credentials) = self.proxies.request_credentials(request.uri()) {
            let credentials = credentials.clone();
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials);
        }
        self.policy.check(request.uri()).map_err(|NonPublicHost| RequestError::NotPublic)?;
        self.pool().send(request).await.map_err(|error| match error {
            ExchangeError::Connect(error) if is_policy_refusal(&*error) => RequestError::NotPublic,
            ExchangeError::Connect(error) => RequestError::Connect(error),
            ExchangeError::Broken(error) => RequestError::Broken(error.into()),
        })
    }

    /// Opens a connection to the host of a URL, with a TLS handshake for `https`, and closes it.
    ///
    /// # Errors
    /// If the connection cannot be opened.
    pub async fn check_connection(&self, url: Uri) -> Result<(), RequestError> {
        self.policy.check(&url).map_err(|NonPublicHost| RequestError::NotPublic)?;
        let connection = self.connector.clone().call(url).await;
        connection.map(drop).map_err(RequestError::Connect)
    }

    /// Returns the pool of the current runtime.
    fn pool(&self) -> Arc<ConnectionPool> {
        let runtime = runtime::Handle::current().id();
        if let Some(pool) = self.pools.read().unwrap_or_else(PoisonError::into_inner).get(&runtime) {
            return pool.clone();
        }
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        pools.entry(runtime).or_insert_with(|| Arc::new(ConnectionPool::new(self.connector.clone()))).clone()
    }
}

/// Returns the connector below TLS and proxies.
pub(crate) fn tcp_connector(resolver: PolicyResolver) -> HttpConnector<PolicyResolver> {
    let mut http = HttpConnector::new_with_resolver(resolver);
    http.enforce_http(false);
    // Otherwise a small request waits for the acknowledgement of the one before: 40 ms.
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    // For streams, which may be silent for hours, so that a vanished peer is detected.
    http.set_keepalive(Some(KEEP_ALIVE_TIME));
    http
}

pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

pub(crate) fn tls() -> std::io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    versions.map_err(std::io::Error::other)
}
