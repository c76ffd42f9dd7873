//! REST: the same calls, and what operators need.
//!
//! - `tools`: what there is, in the forms that models' APIs take, and calls; `idempotency`: the same call twice is one;
//! - `functions`: hosted functions, for those who invoke them and for their authors;
//! - `hints`: which services a message is about; `tokens`: how much of a model's context the lists of tools take;
//! - `handlers`: how handlers are; tests and new lists of them;
//! - `keys`: keys; `audit`: who called what; `log`: what is logged; `sandbox`: which walls there are;
//! - `problem`: what is said where something is wrong;
//! - `schema/openapi.json` describes it all, and is served.

mod audit;
mod functions;
mod handlers;
mod hints;
mod idempotency;
mod keys;
mod log;
mod problem;
mod sandbox;
mod tokens;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use toolyard_agent::search::Services;
use toolyard_core::Gateway;
use toolyard_functions::Host;
use toolyard_net::body;
use toolyard_net::guard::{self, Guard};
use toolyard_sandbox::Sandbox;

use crate::audit::{Audit, Deed, Event, by};
use crate::fleet::Order;
use crate::keys::{KeyRing, Visitor};
use crate::log::LogControl;
use crate::status::Observatory;

pub use problem::Problem;

/// What REST needs of the gateway.
pub struct Rest {
    /// The door of all calls.
    pub gateway: Arc<Gateway>,
    /// How everything is.
    pub observatory: Arc<Observatory>,
    /// Who runs the handlers; gone when the gateway stops.
    pub orders: mpsc::WeakSender<Order>,
    /// The keys, and the store.
    pub ring: Arc<KeyRing>,
    /// Takes note of what operators do.
    pub audit: Arc<Audit>,
    /// The hosted functions.
    pub host: Host,
    /// Where they run.
    pub sandbox: Sandbox,
    /// Knows what the handlers are for.
    pub services: Services,
    /// What is logged.
    pub log: LogControl,
    /// Which `Host` and `Origin` are ours.
    pub guard: Guard,
    /// Size of a request's body, in bytes.
    pub body_bytes: usize,
    /// Time that a client has to send one.
    pub body_time: Duration,
    /// Calls that are run once, whether or not their clients wait for them.
    pub once: Mutex<JoinSet<()>>,
}

/// The document that describes these routes.
const OPENAPI: &str = include_str!("../../../../schema/openapi.json");

/// Every route of REST, below `/api/v1`.
pub fn router(rest: Arc<Rest>) -> Router {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/status", get(status))
        .route("/tools", get(tools::list))
        .route("/tools/{name}", get(tools::one))
        .route("/tools/{name}/call", post(tools::call))
        .route("/hints", post(hints::hint))
        .route("/tokens", get(tokens::show))
        .route("/handlers", get(handlers::list))
        .route("/handlers/{name}/test", post(handlers::test))
        .route("/handlers/{name}/refresh", post(handlers::refresh))
        .route("/functions", get(functions::list))
        .route("/functions/{id}", get(functions::one).delete(functions::delete))
        .route(
            "/functions/{id}/draft",
            put(functions::save).get(functions::version).delete(functions::delete_version),
        )
        .route("/functions/{id}/publish", post(functions::publish))
        .route("/functions/{id}/logs", get(functions::logs))
        .route("/functions/{id}/{version}", get(functions::version).delete(functions::delete_version))
        .route("/functions/{id}/{version}/test", post(functions::test))
        .route("/functions/{id}/{version}/invoke", post(functions::invoke))
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/{id}", delete(keys::revoke))
        .route("/sandbox", get(sandbox::show))
        .route("/audit", get(audit::read))
        .route("/log", put(log::change))
        .fallback(nothing)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(rest.clone(), only_ours))
        .with_state(rest)
}

/// Pages of other origins do not get in, whatever they ask for.
async fn only_ours(State(rest): State<Arc<Rest>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = rest.guard.check(&request) {
        return Problem::denied(refusal.to_string()).into();
    }
    let headers = request.headers().clone();
    if request.method() == http::Method::OPTIONS && headers.contains_key(header::ORIGIN) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        guard::let_send(&headers, &mut response, "GET, POST, PUT, DELETE");
        guard::let_read(&headers, &mut response, "");
        return response;
    }
    let mut response = next.run(request).await;
    guard::let_read(&headers, &mut response, "retry-after");
    response
}

/// What is said where there is no such path.
pub async fn nothing() -> Problem {
    Problem::not_found("There is nothing at this path: see /api/v1/openapi.json")
}

async fn no_such_method() -> Problem {
    Problem::method_not_allowed()
}

/// The part of a path that names something.
struct Named(String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name))
            .map_err(|_| Problem::bad_request("The path is no text in UTF-8".to_owned()))
    }
}

async fn openapi() -> Response {
    json(StatusCode::OK, OPENAPI)
}

/// How the gateway is.
async fn status(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest || access.admin)?;
    let [] = query(&parts, [])?;
    // It reads files of the system.
    let status = spawn_blocking(move || rest.observatory.status(&visitor)).await;
    status.map(|status| json(StatusCode::OK, status)).map_err(|_| Problem::fault())
}

impl Rest {
    /// Puts into the audit trail what an operator did.
    fn note(&self, parts: &Parts, deed: Deed, object: &str) {
        self.audit.note(Event { by: by(parts), deed, object: object.to_owned() });
    }

    /// Runs something to its end, also when nobody waits for it any more.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut running = self.once.lock().unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            running.spawn(async move {
                // Whoever wanted to know may have left.
                let _left = sender.send(work.await);
            });
        }
        receiver.await.ok()
    }

    /// The body of a request: JSON, and no more than is allowed.
    async fn body(&self, parts: &Parts, body: Body) -> Result<Bytes, Problem> {
        self.body_up_to(parts, body, self.body_bytes).await
    }

    async fn body_up_to(&self, parts: &Parts, body: Body, most: usize) -> Result<Bytes, Problem> {
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Problem::unsupported_media_type());
        }
        match timeout(self.body_time, body::read(body, most)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(body::ReadError::TooLarge(limit))) => Err(Problem::too_large(limit)),
            Ok(Err(body::ReadError::Broken(_))) => Err(Problem::bad_request("The body broke off".to_owned())),
            Err(_) => Err(Problem::too_slow()),
        }
    }

    /// The body of a request, read.
    async fn read<T: DeserializeOwned>(&self, parts: &Parts, body: Body) -> Result<T, Problem> {
        self.read_up_to(parts, body, self.body_bytes).await
    }

    /// The same with a bound of its own.
    async fn read_up_to<T: DeserializeOwned>(
        &self,
        parts: &Parts,
        body: Body,
        most: usize,
    ) -> Result<T, Problem> {
        let text = self.body_up_to(parts, body, most).await?;
        let mut reader = serde_json::Deserializer::from_slice(&text);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let (path, problem) = (error.path().to_string(), error.inner());
            Problem::bad_request(format!("The body is not what is expected: {path}: {problem}"))
        })?;
        reader
            .end()
            .map_err(|error| Problem::bad_request(format!("The body goes on behind its end: {error}")))?;
        Ok(value)
    }
}

/// The members of a query, each named at most once.
fn query<const N: usize>(parts: &Parts, names: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
        let known = names.iter().position(|known| *known == name);
        let place = known.map(|at| &mut values[at]).ok_or_else(|| {
            Problem::bad_request(format!("There is no query parameter {name:?} here: {}", names.join(", ")))
        })?;
        if place.replace(value.into_owned()).is_some() {
            return Err(Problem::bad_request(format!("The query parameter {name:?} is there twice")));
        }
    }
    Ok(values)
}

/// A response that nobody keeps.
fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
}

fn written(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => json(status, text),
        Err(_) => Problem::fault().into(),
    }
}
