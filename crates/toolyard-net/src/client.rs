//! Requests to other servers.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as HyperClient, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tokio::runtime;

use crate::reach::{NotPublic, Reach, Resolver, is_refusal};

/// How long an unused connection is kept. Shorter than what servers commonly allow (Node.js: 5 s), so
/// that few requests meet a closed one; those that do are sent again, for they were not read.
const IDLE: Duration = Duration::from_secs(4);

/// How long a connection may take to be made: a machine that is switched off does not refuse it.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is silent before the system asks whether the peer is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// An HTTP/1.1 client with pools of connections; cloning shares them.
///
/// There is a pool for each runtime that makes requests: a connection is driven by the runtime that
/// opened it, and a request on another one's would wake its thread, twice (see [`crate::workers`]).
#[derive(Debug, Clone)]
pub struct Client {
    pools: Arc<RwLock<HashMap<runtime::Id, Pool>>>,
    connector: Connector,
    reach: Reach,
    tls: Arc<ClientConfig>,
}

type Connector = HttpsConnector<HttpConnector<Resolver>>;

type Pool = HyperClient<Connector, Full<Bytes>>;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No connection: the server has not seen the request.
    #[error("cannot connect")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The host is none that this client may connect to.
    #[error("the host has no public address")]
    NotPublic,
    /// The connection broke before the response's head had come.
    #[error("the connection broke before a response came")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl Client {
    /// A client that checks the certificates of servers against the system's roots.
    ///
    /// # Errors
    /// When the system has no root certificates, or they cannot be read.
    pub fn with_system_roots() -> std::io::Result<Self> {
        Ok(Self::new(tls()?.with_native_roots()?.with_no_client_auth()))
    }

    /// A client that trusts no certificate, for where every server is reached by plain `http`: it
    /// saves the time and the memory of reading the system's roots.
    ///
    /// # Errors
    /// When the TLS library finds its own defaults unusable.
    pub fn without_roots() -> std::io::Result<Self> {
        Ok(Self::new(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
    }

    /// A client with the same roots and with pools of its own, which connects to public addresses only. For
    /// requests whose host a caller has a say in.
    #[must_use]
    pub fn public_only(&self) -> Self {
        Self::reaching(self.tls.clone(), Reach::Public, Resolver::system(Reach::Public))
    }

    fn new(tls: ClientConfig) -> Self {
        Self::reaching(Arc::new(tls), Reach::Anywhere, Resolver::system(Reach::Anywhere))
    }

    #[cfg(test)]
    pub(crate) fn scripted(resolver: Resolver) -> Self {
        let tls = tls().unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Self::reaching(Arc::new(tls), Reach::Anywhere, resolver)
    }

    fn reaching(tls: Arc<ClientConfig>, reach: Reach, resolver: Resolver) -> Self {
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.enforce_http(false);
        // Without it a small request waits for the acknowledgement of the one before: 40 ms.
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        // For streams, which may be silent for hours: a peer that has gone without a word is noticed.
        http.set_keepalive(Some(KEEP_ALIVE));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config((*tls).clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        Self { pools: Arc::default(), connector, reach, tls }
    }

    /// Has the pool of the runtime that this is called on send a request.
    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        let runtime = runtime::Handle::current().id();
        if let Some(pool) = self.pools.read().unwrap_or_else(PoisonError::into_inner).get(&runtime) {
            return pool.request(request);
        }
        let mut builder = HyperClient::builder(TokioExecutor::new());
        let pool =
            builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(self.connector.clone());
        self.pools
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(runtime)
            .or_insert(pool)
            .request(request)
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// When there is no response. A status of failure is a response.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, RequestError> {
        self.reach.check(request.uri()).map_err(|NotPublic| RequestError::NotPublic)?;
        self.request(request).await.map_err(|error| match error.is_connect() {
            true if is_refusal(&error) => RequestError::NotPublic,
            true => RequestError::Connect(error.into()),
            false => RequestError::Broken(error.into()),
        })
    }
}

fn tls() -> std::io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    versions.map_err(std::io::Error::other)
}
