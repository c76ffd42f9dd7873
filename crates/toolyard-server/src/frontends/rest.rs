//! The REST API: calls of tools, and operations.
//!
//! - `tools`: tool lists in the formats of models' APIs, and calls; `idempotency`: idempotent calls;
//! - `functions`: hosted functions, for their callers and authors;
//! - `hints`: services that a message is about; `tokens`: context tokens of tool lists;
//! - `handlers`: status, tests and refreshes of handlers;
//! - `keys`: API keys; `audit`: the audit trail; `log`: the log filter; `sandbox`: the isolation layers;
//! - `problem`: error responses; `start`: the state of a gateway's API;
//! - `schema/openapi.json` describes all routes and is served.

mod audit;
mod functions;
mod handlers;
mod hints;
mod idempotency;
mod keys;
mod log;
mod problem;
mod sandbox;
mod start;
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
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use toolyard_agent::search::ServiceIndex;
use toolyard_core::{ErrorCode, Gateway};
use toolyard_functions::FunctionHost;
use toolyard_mcp::server::owner_of_request;
use toolyard_net::body;
use toolyard_net::budget::ByteBudget;
use toolyard_net::guard::{self, BrowserGuard};
use toolyard_sandbox::Sandbox;

use crate::audit::{AuditAction, AuditEvent, AuditQueue, actor_of};
use crate::fleet::FleetCommand;
use crate::keys::{AuthenticatedCaller, KeyCache};
use crate::log::LogControl;
use crate::routes::GatewayStage;
use crate::status::StatusReporter;

pub use problem::ProblemDetails;
pub(crate) use start::routes;

/// The state of the REST API.
pub struct RestState {
    /// The gateway that runs all calls.
    pub gateway: Arc<Gateway>,
    /// Builds status reports.
    pub reporter: Arc<StatusReporter>,
    /// Commands to the fleet. Dead once the gateway stops.
    pub commands: mpsc::WeakSender<FleetCommand>,
    /// The keys and their store.
    pub keys: Arc<KeyCache>,
    /// Records operators' actions.
    pub audit: Arc<AuditQueue>,
    /// The hosted functions.
    pub host: FunctionHost,
    /// The sandbox of functions and scripts.
    pub sandbox: Sandbox,
    /// Index of what the handlers offer.
    pub services: ServiceIndex,
    /// The log filter.
    pub log: LogControl,
    /// Allowed hosts and origins of requests.
    pub guard: BrowserGuard,
    /// Lifecycle stage of the gateway. While it drains, it starts no calls.
    pub stage: watch::Receiver<GatewayStage>,
    /// Budget from which large bodies take their bytes.
    pub budget: ByteBudget,
    /// Maximum bytes of a request's body.
    pub body_bytes: usize,
    /// Maximum time to read a request's body.
    pub body_time: Duration,
    /// Calls that continue when their clients disconnect.
    pub detached_calls: Mutex<JoinSet<()>>,
}

/// The OpenAPI document of these routes.
const OPENAPI: &str = include_str!("../../../../schema/openapi.json");

/// Returns every REST route below `/api/v1`.
pub fn router(rest: Arc<RestState>) -> Router {
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
        .route("/handlers/{name}/accept", post(handlers::accept))
        .route("/functions", get(functions::list))
        .route("/functions/{id}", get(functions::get_function).delete(functions::delete))
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
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(rest.clone(), check_origin))
        .with_state(rest)
}

/// Refuses requests of other origins and, while the gateway drains, requests that may change something.
async fn check_origin(State(rest): State<Arc<RestState>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = rest.guard.check(&request) {
        return ProblemDetails::denied(refusal.to_string()).into();
    }
    let headers = request.headers().clone();
    if request.method() == http::Method::OPTIONS && headers.contains_key(header::ORIGIN) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        guard::allow_preflight(&headers, &mut response, "GET, POST, PUT, DELETE");
        guard::allow_read(&headers, &mut response, "");
        return response;
    }
    // Running calls continue. Requests that only read stay available, including the status.
    let is_refused = *rest.stage.borrow() == GatewayStage::Draining && !request.method().is_safe();
    let mut response = match is_refused {
        true => ([(header::CONNECTION, "close")], ProblemDetails::stopping()).into_response(),
        false => next.run(request).await,
    };
    guard::allow_read(&headers, &mut response, "retry-after");
    response
}

/// Answers requests of unknown paths.
pub async fn not_found() -> ProblemDetails {
    ProblemDetails::not_found("no such endpoint: see /api/v1/openapi.json")
}

async fn method_not_allowed() -> ProblemDetails {
    ProblemDetails::method_not_allowed()
}

/// The name in a path.
struct NamedPath(String);

impl<S: Send + Sync> FromRequestParts<S> for NamedPath {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name))
            .map_err(|_| ProblemDetails::bad_request("the path is not valid UTF-8".to_owned()))
    }
}

async fn openapi() -> Response {
    json(StatusCode::OK, OPENAPI)
}

/// `GET /status`: the status of the gateway.
async fn status(State(rest): State<Arc<RestState>>, request: Request) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.rest || access.admin)?;
    let [] = query(&parts, [])?;
    // It reads files of the system.
    let status = spawn_blocking(move || rest.reporter.status(&caller)).await;
    status.map(|status| json(StatusCode::OK, status)).map_err(|_| ProblemDetails::fault())
}

impl RestState {
    /// Records an operator's action in the audit trail.
    fn record_action(&self, parts: &Parts, action: AuditAction, object: &str) {
        self.audit.record_event(AuditEvent { actor: actor_of(parts), action, object: object.to_owned() });
    }

    /// Runs work to its end even if the client disconnects.
    async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut running = self.detached_calls.lock().unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            running.spawn(async move {
                // The client may have disconnected.
                let _closed = sender.send(work.await);
            });
        }
        receiver.await.ok()
    }

    /// Reads the JSON body of a request within the configured limit.
    async fn body(&self, parts: &Parts, body: Body) -> Result<Bytes, ProblemDetails> {
        self.body_up_to(parts, body, self.body_bytes).await
    }

    async fn body_up_to(&self, parts: &Parts, body: Body, limit: usize) -> Result<Bytes, ProblemDetails> {
        let mut kinds = parts.headers.get_all(header::CONTENT_TYPE).iter();
        // With several content types, another reader of the request may choose a different one.
        let kind = kinds.next().filter(|_| kinds.next().is_none()).and_then(|kind| kind.to_str().ok());
        let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(ProblemDetails::unsupported_media_type());
        }
        let owner = || owner_of_request(parts);
        let owned = || owner().map_or_else(|| self.budget.clone(), |owner| self.budget.owned_by(&owner));
        match timeout(self.body_time, body::read_with_budget(body, limit, owned)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(body::BodyReadError::TooLarge(limit))) => Err(ProblemDetails::too_large(limit)),
            Ok(Err(error @ body::BodyReadError::UsedUp(..))) => {
                Err(ProblemDetails::new(ErrorCode::Unavailable, error.to_string()))
            }
            Ok(Err(body::BodyReadError::Stalled)) => Err(ProblemDetails::too_slow()),
            Ok(Err(body::BodyReadError::Broken(_))) => {
                Err(ProblemDetails::bad_request("the body ended early".to_owned()))
            }
            Err(_) => Err(ProblemDetails::too_slow()),
        }
    }

    /// Deserializes the body of a request, a JSON object.
    async fn read<T: DeserializeOwned>(&self, parts: &Parts, body: Body) -> Result<T, ProblemDetails> {
        self.read_up_to(parts, body, self.body_bytes).await
    }

    /// Deserializes a body with a limit of its own.
    async fn read_up_to<T: DeserializeOwned>(
        &self,
        parts: &Parts,
        body: Body,
        limit: usize,
    ) -> Result<T, ProblemDetails> {
        let text = self.body_up_to(parts, body, limit).await?;
        // serde would also accept an array for a struct, which is not documented.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(ProblemDetails::bad_request("the body is not a JSON object".to_owned()));
        }
        let mut reader = serde_json::Deserializer::from_slice(&text);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let (path, problem) = (error.path().to_string(), error.inner());
            ProblemDetails::bad_request(format!("invalid body: {path}: {problem}"))
        })?;
        reader.end().map_err(|error| {
            ProblemDetails::bad_request(format!("trailing data after the JSON body: {error}"))
        })?;
        Ok(value)
    }
}

/// Returns the query parameters. Refuses unknown and duplicate ones.
fn query<const N: usize>(parts: &Parts, names: [&str; N]) -> Result<[Option<String>; N], ProblemDetails> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
        let index = names.iter().position(|index| *index == name);
        let place = index.map(|at| &mut values[at]).ok_or_else(|| {
            ProblemDetails::bad_request(format!(
                "unknown query parameter `{name}`; known parameters: {}",
                names.join(", ")
            ))
        })?;
        if place.replace(value.into_owned()).is_some() {
            return Err(ProblemDetails::bad_request(format!("duplicate query parameter `{name}`")));
        }
    }
    Ok(values)
}

/// Returns a JSON response that must not be cached.
fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
}

fn json_value(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => json(status, text),
        Err(_) => ProblemDetails::fault().into(),
    }
}
