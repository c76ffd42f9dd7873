//! What stands in front of every route: who comes, and whether this door is open to them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use http::{HeaderMap, Method, Request, header};
use tokio::sync::watch;
use tokio::time::sleep;
use toolyard_core::access::Grant;
use toolyard_core::{Caller, Code};
use toolyard_mcp::server::Principal;
use toolyard_net::guard::{self, Guard};
use tower_layer::Layer;
use tower_service::Service;

use super::key::{Key, KeyScope};
use super::ring::{KeyRing, Verdict};
use crate::rest::Problem;

/// Which doors are open to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Calls and lists by REST, and the status.
    pub rest: bool,
    /// What operators do.
    pub admin: bool,
    /// Hosted functions.
    pub functions: bool,
    /// What Prometheus reads.
    pub metrics: bool,
}

impl Access {
    /// All of them.
    pub const ALL: Self = Self { rest: true, admin: true, functions: true, metrics: true };

    pub(super) fn of(scopes: &[KeyScope]) -> Self {
        let has = |scope: &KeyScope| scopes.contains(scope);
        Self {
            rest: has(&KeyScope::Rest),
            admin: has(&KeyScope::Admin),
            functions: has(&KeyScope::Functions),
            metrics: has(&KeyScope::Metrics),
        }
    }
}

/// Who has come in. Every request behind the door has one among its extensions.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The id and the name of the key, where one was shown.
    pub key: Option<Arc<(Arc<str>, Arc<str>)>>,
    /// Which doors are open.
    pub access: Access,
    /// What exists; `None`: everything.
    pub grant: Option<Arc<Grant>>,
    /// For how long.
    life: KeyLife,
}

/// How long a key opens something.
#[derive(Debug, Clone)]
pub(super) struct KeyLife {
    /// Nobody sends anything: it is closed when the key is not what it was.
    pub(super) unchanged: watch::Receiver<()>,
    /// When the key runs out.
    pub(super) expires: Option<SystemTime>,
}

impl KeyLife {
    /// Waits until the key opens nothing any more, or something else.
    async fn over(mut self) {
        let expired = async {
            let Some(expires) = self.expires else { return std::future::pending().await };
            // The clock of the system may be set: it is looked at again and again.
            while let Ok(left) = expires.duration_since(SystemTime::now()) {
                sleep(left.min(LOOK_EVERY)).await;
            }
        };
        tokio::select! {
            _ = self.unchanged.changed() => {}
            () = expired => {}
        }
    }
}

/// How often the clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Visitor {
    /// Somebody who did not have to show a key.
    #[must_use]
    pub(super) const fn anybody(life: KeyLife) -> Self {
        Self { key: None, access: Access::ALL, grant: None, life }
    }

    pub(super) fn with_key(key: &Key, grant: Arc<Grant>, life: KeyLife) -> Self {
        let access = Access::of(&key.scopes);
        let key = Some(Arc::new((key.id.as_str().into(), key.name.as_str().into())));
        Self { key, access, grant: Some(grant), life }
    }

    /// Who sends a request, if this is open to them.
    ///
    /// # Errors
    /// Where it is not. Without a door in front there is nobody, and nothing is open.
    pub fn of(extensions: &http::Extensions, may: impl FnOnce(&Access) -> bool) -> Result<Self, Problem> {
        let visitor = extensions.get::<Self>().ok_or_else(|| Problem::unauthenticated("A key is needed"))?;
        match may(&visitor.access) {
            true => Ok(visitor.clone()),
            false => Err(Problem::denied("This key has not the scope for that".to_owned())),
        }
    }

    /// Whom the calls of this visitor are made for: the key's id, which unlike its name is unique.
    #[must_use]
    pub fn principal(&self) -> Option<Arc<str>> {
        self.key.as_ref().map(|key| key.0.clone())
    }

    /// The caller of a call that this visitor makes by REST.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller { session: None, principal: self.principal(), grant: self.grant.clone() }
    }
}

/// Puts the door in front of routes.
#[derive(Clone)]
pub struct Door {
    ring: Arc<KeyRing>,
    /// Pages of ours may read why they are refused.
    guard: Arc<Guard>,
}

impl Door {
    /// A door that these keys open.
    #[must_use]
    pub fn new(ring: Arc<KeyRing>, guard: Guard) -> Self {
        Self { ring, guard: Arc::new(guard) }
    }
}

impl<S> Layer<S> for Door {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { door: self.clone(), inner }
    }
}

/// Routes behind a door.
#[derive(Clone)]
pub struct Guarded<S> {
    door: Door,
    inner: S,
}

impl<S> Service<Request<Body>> for Guarded<S>
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

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // A browser asks without credentials whether it may send them (Fetch, CORS protocol).
        if request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN) {
            return self.inner.call(request).boxed();
        }
        match self.door.ring.look(shown(request.headers())) {
            Ok(Verdict::Open(visitor)) => {
                let life = admit(&mut request, visitor);
                let response = self.inner.call(request);
                async move { Ok(ending(response.await?, life)) }.boxed()
            }
            Ok(verdict) => std::future::ready(Ok(self.door.refusal(&verdict, &request))).boxed(),
            Err(secret) => {
                // The one that was said to be ready, and not its clone.
                let clone = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, clone);
                let door = self.door.clone();
                async move {
                    match door.ring.ask(secret).await {
                        Verdict::Open(visitor) => {
                            let life = admit(&mut request, visitor);
                            Ok(ending(inner.call(request).await?, life))
                        }
                        verdict => Ok(door.refusal(&verdict, &request)),
                    }
                }
                .boxed()
            }
        }
    }
}

/// What a request shows: the token of its `Authorization` header, or the whole header where it names no scheme, which
/// is how clients of hosted functions show a key. A header that is something else shows a key that opens nothing.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default().trim();
    Some(match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) => "",
        None => header,
    })
}

/// Lets a request in; gives how long what it opens may last.
fn admit(request: &mut Request<Body>, visitor: Visitor) -> KeyLife {
    let extensions = request.extensions_mut();
    if let Some(principal) = visitor.principal() {
        extensions.insert(Principal(principal));
    }
    if let Some(grant) = &visitor.grant {
        extensions.insert(grant.clone());
    }
    let life = visitor.life.clone();
    extensions.insert(visitor);
    life
}

/// A response that goes on for as long as somebody listens ends with the key that it was opened with.
fn ending(response: Response, life: KeyLife) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    match is_stream.then_some(life) {
        Some(life) => {
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(life.over().boxed())))
        }
        None => response,
    }
}

impl Door {
    fn refusal(&self, verdict: &Verdict, request: &Request<Body>) -> Response {
        let has_shown = request.headers().contains_key(header::AUTHORIZATION);
        let problem = match verdict {
            Verdict::Unknown(trouble) => {
                Problem::new(Code::Unavailable, format!("Nobody can say now which keys there are: {trouble}"))
            }
            _ if has_shown => Problem::unauthenticated("This key opens nothing"),
            _ => Problem::unauthenticated("A key is needed: `Authorization: Bearer KEY`"),
        };
        let mut response = Response::from(problem);
        if self.guard.check(request).is_ok() {
            guard::let_read(request.headers(), &mut response, "www-authenticate, retry-after");
        }
        response
    }
}
