//! The authentication layer in front of the routes that require a key.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use http::request::Parts;
use http::{HeaderMap, Method, Request, header};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use toolyard_core::access::{AccessGrant, AccessScope};
use toolyard_core::{Caller, ErrorCode, ToolError};
use toolyard_mcp::server::HttpPrincipal;
use toolyard_mcp::server::http::PATH;
use toolyard_mcp::server::refusal::{BodyLimits, refuse_http, refuse_without_id};
use toolyard_net::guard::{self, BrowserGuard};
use toolyard_net::header_values::{Credentials, EVENT_STREAM, content_is};
use toolyard_net::listener::ClientConnection;
use tower_layer::Layer;
use tower_service::Service;

use super::key::{ApiKey, KeyScope};
use super::key_cache::{KeyCache, KeyVerdict};
use crate::frontends::rest::ProblemDetails;

/// Parts of the gateway that a caller may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeyAccess {
    /// The REST API for calls and lists, and the status.
    pub rest: bool,
    /// The operators' API.
    pub admin: bool,
    /// Hosted functions.
    pub functions: bool,
    /// The metrics.
    pub metrics: bool,
    /// Publishing of at least some hosted functions.
    pub publish: bool,
}

impl KeyAccess {
    /// Access to everything.
    pub const ALL: Self = Self { rest: true, admin: true, functions: true, metrics: true, publish: true };

    pub(super) fn of(scopes: &[KeyScope]) -> Self {
        let has = |scope: &KeyScope| scopes.contains(scope);
        Self {
            rest: has(&KeyScope::Rest),
            admin: has(&KeyScope::Admin),
            functions: has(&KeyScope::Functions),
            metrics: has(&KeyScope::Metrics),
            publish: scopes.iter().any(|scope| matches!(scope, KeyScope::Publish(_))),
        }
    }
}

/// An authenticated caller. The layer adds one to the extensions of every request that it admits.
#[derive(Debug, Clone)]
pub struct AuthenticatedCaller {
    /// Id and name of the key, if the request has one.
    pub key: Option<Arc<(Arc<str>, Arc<str>)>>,
    /// Parts of the gateway that the caller may use.
    pub access: KeyAccess,
    /// Tools that exist for the caller, and its limits. `None`: everything.
    pub grant: Option<Arc<AccessGrant>>,
    /// Ids of the hosted functions that the caller may publish.
    publish_scope: AccessScope,
    /// Lifetime of the access.
    lifetime: KeyLifetime,
}

/// Lifetime of a key's access.
#[derive(Debug, Clone)]
pub(super) struct KeyLifetime {
    /// Closed when the key changes. No value is ever sent.
    pub(super) unchanged: watch::Receiver<()>,
    /// Expiry of the key.
    pub(super) expires: Option<SystemTime>,
}

impl KeyLifetime {
    /// Waits until the key expires or changes.
    async fn ended(mut self) {
        let expired = async {
            let Some(expires) = self.expires else { return std::future::pending().await };
            // The system clock may be set, so it is checked again and again.
            while let Ok(left) = expires.duration_since(SystemTime::now()) {
                sleep(left.min(CLOCK_CHECK_INTERVAL)).await;
            }
        };
        tokio::select! {
            _ = self.unchanged.changed() => {}
            () = expired => {}
        }
    }
}

/// Interval of the checks of the clock.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

impl AuthenticatedCaller {
    /// Creates the caller of a request that needs no key.
    #[must_use]
    pub(super) fn anonymous(lifetime: KeyLifetime) -> Self {
        Self { key: None, access: KeyAccess::ALL, grant: None, publish_scope: AccessScope::all(), lifetime }
    }

    /// Removes the access to everything but tools, the status and metrics.
    pub(super) fn restrict_to_tools(&mut self) {
        self.access = KeyAccess { rest: true, admin: false, functions: false, metrics: true, publish: false };
        self.publish_scope = AccessScope::default();
    }

    pub(super) fn with_key(key: &ApiKey, grant: Arc<AccessGrant>, lifetime: KeyLifetime) -> Self {
        let access = KeyAccess::of(&key.scopes);
        let publish_scope = key.publish_scope();
        let key = Some(Arc::new((key.id.as_str().into(), key.name.as_str().into())));
        Self { key, access, grant: Some(grant), publish_scope, lifetime }
    }

    /// Returns the caller of a request if `may` grants access.
    ///
    /// # Errors
    /// If the caller lacks access, or if the authentication layer is missing.
    pub fn authorize(
        extensions: &http::Extensions,
        may: impl FnOnce(&KeyAccess) -> bool,
    ) -> Result<Self, ProblemDetails> {
        let caller =
            extensions.get::<Self>().ok_or_else(|| ProblemDetails::unauthenticated("missing key"))?;
        match may(&caller.access) {
            true => Ok(caller.clone()),
            false => Err(ProblemDetails::denied("the key lacks the required scope".to_owned())),
        }
    }

    /// Returns the caller of a request that changes the function with this id or reads its log.
    ///
    /// # Errors
    /// If the key may not publish the function.
    pub fn authorize_publisher(extensions: &http::Extensions, id: &str) -> Result<Self, ProblemDetails> {
        let caller = Self::authorize(extensions, |_| true)?;
        match caller.can_publish(id) {
            true => Ok(caller),
            false => Err(ProblemDetails::denied(format!(
                "the key lacks the scope `publish:PATTERN` for the function {id:?}, or `admin`"
            ))),
        }
    }

    /// Returns the caller of a request that only reads the function with this id.
    ///
    /// # Errors
    /// If the key may neither invoke nor publish the function.
    pub fn authorize_reader(extensions: &http::Extensions, id: &str) -> Result<Self, ProblemDetails> {
        let caller =
            Self::authorize(extensions, |access| access.functions || access.admin || access.publish)?;
        match caller.can_see_function(id) {
            true => Ok(caller),
            false => Self::authorize_publisher(extensions, id),
        }
    }

    /// Ends the access at this time, or earlier with the key.
    #[must_use]
    pub(super) fn until(mut self, end: SystemTime) -> Self {
        let expires = &mut self.lifetime.expires;
        *expires = Some(expires.map_or(end, |expires| expires.min(end)));
        self
    }

    fn can_publish(&self, id: &str) -> bool {
        self.access.admin || self.publish_scope.allows_name("", id)
    }

    /// True if the caller may see the function with this id.
    #[must_use]
    pub fn can_see_function(&self, id: &str) -> bool {
        self.access.functions || self.can_publish(id)
    }

    /// Returns the principal of calls: the key's id, which is unique, unlike its name.
    #[must_use]
    pub fn principal(&self) -> Option<Arc<str>> {
        self.key.as_ref().map(|key| key.0.clone())
    }

    /// Returns the caller for a test of a handler. An operator may test any tool, regardless of the key's tool scopes.
    /// The key's limits apply as usual.
    #[must_use]
    pub fn to_operator(&self) -> Caller {
        let grant = self
            .grant
            .as_ref()
            .map(|grant| Arc::new(AccessGrant { scope: AccessScope::all(), ..(**grant).clone() }));
        Caller { grant, ..self.to_caller() }
    }

    /// Returns the caller of a call by REST.
    #[must_use]
    pub fn to_caller(&self) -> Caller {
        Caller { principal: self.principal(), grant: self.grant.clone(), ..Caller::default() }
    }
}

/// The layer that authenticates requests.
#[derive(Clone)]
pub struct AuthLayer {
    keys: Arc<KeyCache>,
    /// Lets pages of allowed origins read the refusal.
    guard: Arc<BrowserGuard>,
    /// Permits to read messages of unauthenticated clients in order to refuse them by id.
    unknown_readers: Arc<Semaphore>,
    /// Answers refused requests of another protocol than those on HTTP/1.1.
    respond: Option<fn(KeyRefusal) -> Response>,
}

/// The reason why a request is not admitted.
#[derive(Debug)]
pub enum KeyRefusal {
    /// The request has no valid key; the reason and the remedy.
    Unauthenticated(&'static str),
    /// The keys cannot be read.
    Unavailable(ToolError),
}

/// Limits of an unauthenticated client's message, which is read for its request id only.
const UNKNOWN_BODY_LIMITS: BodyLimits = BodyLimits { max_bytes: 64 * 1024, timeout: Duration::from_secs(5) };

/// Maximum number of such messages read at a time: 16 MiB together.
const MAX_UNKNOWN_READERS: usize = 256;

impl AuthLayer {
    /// Creates a layer that admits these keys.
    #[must_use]
    pub fn new(keys: Arc<KeyCache>, guard: BrowserGuard) -> Self {
        let unknown_readers = Arc::new(Semaphore::new(MAX_UNKNOWN_READERS));
        Self { keys, guard: Arc::new(guard), unknown_readers, respond: None }
    }

    /// Sets the answer to refused requests, for another protocol.
    #[must_use]
    pub fn answering(self, respond: fn(KeyRefusal) -> Response) -> Self {
        Self { respond: Some(respond), ..self }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { layer: self.clone(), inner }
    }
}

/// The service that authenticates requests.
#[derive(Clone)]
pub struct AuthService<S> {
    layer: AuthLayer,
    inner: S,
}

impl<S> Service<Request<Body>> for AuthService<S>
where
    S: Service<Request<Body>, Response = Response> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // `poll_ready` has reserved this service and not its clone.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let layer = self.layer.clone();
        async move {
            match layer.admit(request).await {
                Admission::Public(request) => inner.call(request).await,
                Admission::Granted(request, lifetime) => {
                    Ok(bind_to_key(inner.call(request).await?, lifetime))
                }
                Admission::Refused(refusal) => Ok(refusal),
            }
        }
        .boxed()
    }
}

/// The admission of a request.
enum Admission {
    /// The request needs no key.
    Public(Request<Body>),
    /// The request with its caller, and the lifetime of the access.
    Granted(Request<Body>, KeyLifetime),
    Refused(Response),
}

/// Returns the key of a request: the token of its `Authorization` header, or the whole header if it names no scheme, as
/// clients of hosted functions send it. Another scheme yields an empty key, which is refused.
pub(crate) fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default().trim();
    Some(match Credentials::parse(header) {
        Some(credentials) if credentials.is("bearer") => credentials.token,
        Some(_) => "",
        None => header,
    })
}

/// Adds the caller to an admitted request. Returns the lifetime of the access.
fn add_caller(request: &mut Request<Body>, caller: AuthenticatedCaller) -> KeyLifetime {
    let extensions = request.extensions_mut();
    if let Some(principal) = caller.principal() {
        extensions.insert(HttpPrincipal(principal));
    }
    if let Some(grant) = &caller.grant {
        extensions.insert(grant.clone());
    }
    let lifetime = caller.lifetime.clone();
    extensions.insert(caller);
    if let Some(connection) = extensions.get::<ClientConnection>() {
        connection.set_authenticated();
    }
    lifetime
}

/// Ends a response that is an event stream when the key's access ends.
fn bind_to_key(response: Response, lifetime: KeyLifetime) -> Response {
    match content_is(response.headers(), EVENT_STREAM).then_some(lifetime) {
        Some(lifetime) => response
            .map(|body| Body::from_stream(body.into_data_stream().take_until(lifetime.ended().boxed()))),
        None => response,
    }
}

/// Returns the reason why a request is not admitted, and the remedy.
fn refusal(verdict: &KeyVerdict, has_key: bool) -> &'static str {
    match verdict {
        KeyVerdict::Expired => "the key has expired: create another one with `toolyard key create`",
        KeyVerdict::SessionEnded => "the session has ended: sign in again",
        KeyVerdict::Revoked => "the key was revoked: create another one with `toolyard key create`",
        _ if has_key => {
            "wrong key: the gateway has no such key; commands of toolyard send TOOLYARD_KEY or that of `--key-file`"
        }
        _ => {
            "missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`"
        }
    }
}

impl AuthLayer {
    /// Answers a request by `inner` if it is admitted.
    pub(crate) async fn answer<F: Future<Output = Response>>(
        self,
        request: Request<Body>,
        inner: impl FnOnce(Request<Body>) -> F,
    ) -> Response {
        match self.admit(request).await {
            Admission::Public(request) => inner(request).await,
            Admission::Granted(request, lifetime) => bind_to_key(inner(request).await, lifetime),
            Admission::Refused(refusal) => refusal,
        }
    }

    async fn admit(&self, mut request: Request<Body>) -> Admission {
        // A browser sends preflight requests without credentials (Fetch, CORS protocol).
        if request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN) {
            return Admission::Public(request);
        }
        let verdict = match self.keys.lookup_cached(presented_key(request.headers())) {
            Ok(verdict) => verdict,
            Err(secret) => self.keys.lookup(secret).await,
        };
        match verdict {
            KeyVerdict::Granted(caller) => {
                let lifetime = add_caller(&mut request, caller);
                Admission::Granted(request, lifetime)
            }
            verdict => Admission::Refused(Box::pin(self.refuse(&verdict, request)).await),
        }
    }

    async fn refuse(&self, verdict: &KeyVerdict, request: Request<Body>) -> Response {
        let reason = match verdict {
            KeyVerdict::Unavailable(kind) => {
                let reason = format!("the store with the keys is unavailable: {kind}");
                KeyRefusal::Unavailable(ToolError::new(ErrorCode::Unavailable, reason))
            }
            verdict => {
                let has_key = request.headers().contains_key(header::AUTHORIZATION);
                KeyRefusal::Unauthenticated(refusal(verdict, has_key))
            }
        };
        match self.respond {
            Some(respond) => respond(reason),
            None => self.refuse_http(reason, request).await,
        }
    }

    async fn refuse_http(&self, reason: KeyRefusal, request: Request<Body>) -> Response {
        let is_allowed_origin = self.guard.check(&request).is_ok();
        let (parts, body) = request.into_parts();
        let mut response = match reason {
            KeyRefusal::Unavailable(error) => {
                // A page of another origin must not make the gateway read a body.
                match is_allowed_origin && parts.uri.path() == PATH {
                    true => self.refuse_message(&parts, body, &error).await,
                    false => ProblemDetails::from(error).into(),
                }
            }
            KeyRefusal::Unauthenticated(reason) => ProblemDetails::unauthenticated(reason).into(),
        };
        if is_allowed_origin {
            guard::allow_read(&parts.headers, &mut response, "www-authenticate, retry-after");
        }
        response
    }

    /// Refuses a message to the MCP endpoint. The client is unauthenticated, so size and number of the bodies read are
    /// limited.
    async fn refuse_message(&self, parts: &Parts, body: Body, error: &ToolError) -> Response {
        match self.unknown_readers.try_acquire() {
            Ok(_permit) => refuse_http(parts, body, UNKNOWN_BODY_LIMITS, error).await,
            Err(_) => refuse_without_id(error),
        }
    }
}
