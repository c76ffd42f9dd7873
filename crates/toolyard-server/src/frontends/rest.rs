//! The REST API: calls of tools, and operations.
//!
//! A route is in the group of the callers that may use it (`groups`), and the layer of the group refuses all others
//! before its handler runs. A new endpoint is one line in `route_groups`, a function, and its description in
//! `schema/openapi.json`, which is served.
//!
//! | group | scopes | routes |
//! | --- | --- | --- |
//! | `ApiCaller` | any but `tools:PATTERN` and `metrics` | `caller`: the key and its rights; `sessions`: sign-in of browsers |
//! | `ToolCaller` | `rest` | `tools`: tool lists in the formats of models' APIs, and calls; `search`: tools for a query; `hints`: services that a message is about |
//! | `StatusReader` | `rest`, `admin` | the status; `handlers`: their list; `events`: changes; `tokens`: context tokens of tool lists |
//! | `Admin` | `admin` | `handlers`: tests, refreshes, restarts and their end; `series`: calls of the last hours; `keys`; `sandbox`: isolation layers; `schedules`: tasks of all keys; `memory`: entries of working memory; `agents`: known agents; `bus`: the message bus; `audit`: the audit trail; `manifest`: the served manifest, and checks of texts; `log`: the log filter |
//! | `FunctionCaller` | `functions`, `admin` | `functions`: invocation |
//! | `FunctionReader` | `functions`, `publish:PATTERN`, `admin` | `functions`: list and versions |
//! | `FunctionAuthor` | `publish:PATTERN`, `admin` | `functions`: drafts, publication, deletion, logs and sources |
//!
//! The OpenAPI document and the exchange of a one-time code for a session are public: they require no key
//! (`public_router`).
//!
//! Handlers take what they need by extractors (`extract`, `query`, `body`). `idempotency` has idempotent calls, `problem`
//! error responses, and `start` makes the state of a gateway's API.

mod agents;
mod audit;
mod body;
mod bus;
mod caller;
mod events;
mod extract;
mod functions;
mod groups;
mod handlers;
mod hints;
mod idempotency;
mod key_reference;
mod keys;
mod log;
mod manifest;
mod memory;
mod problem;
mod query;
mod sandbox;
mod schedules;
mod search;
mod series;
mod sessions;
mod start;
mod tokens;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::{StatusCode, header};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use toolyard_a2a::Agents;
use toolyard_agent::search::{ServiceIndex, ToolFinder};
use toolyard_core::Gateway;
use toolyard_core::store::Store;
use toolyard_functions::FunctionHost;
use toolyard_manifest::BusSettings;
use toolyard_net::budget::ByteBudget;
use toolyard_net::guard::{self, BrowserGuard};
use toolyard_sandbox::Sandbox;
use toolyard_schedule::Schedules;

use crate::audit::AuditQueue;
use crate::fleet::FleetCommand;
use crate::keys::{AuthenticatedCaller, KeyCache};
use crate::log::LogControl;
use crate::routes::GatewayStage;
use crate::status::StatusReporter;
use crate::telemetry::history::MetricsHistory;

use groups::{RouteGroup, authorize};
use query::NoQuery;

pub(crate) use body::{read as read_body, read_bytes};
pub use problem::ProblemDetails;
pub(crate) use start::state;

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
    /// Index of all tools.
    pub finder: Arc<ToolFinder>,
    /// Scheduled tasks of all keys.
    pub schedules: Schedules,
    /// Other agents.
    pub agents: Agents,
    /// Data that outlives the process.
    pub store: Arc<dyn Store>,
    /// Settings of the message bus.
    pub bus: BusSettings,
    /// URL of a trace, with a place for its id.
    pub trace_url: Option<String>,
    /// Calls and memory of the last hours.
    pub(crate) history: Arc<MetricsHistory>,
    /// The log filter.
    pub log: LogControl,
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

/// The state, as handlers take it.
type Rest = State<Arc<RestState>>;

/// The result of a handler.
type RestResult = Result<Response, ProblemDetails>;

/// The OpenAPI document of these routes.
const OPENAPI: &str = include_str!("../../../../schema/openapi.json");

/// Path of the OpenAPI document.
const OPENAPI_PATH: &str = "/api/v1/openapi.json";

/// Path of the exchange of a one-time code.
const SESSIONS_PATH: &str = "/api/v1/sessions";

/// Returns every REST route below `/api/v1` that requires a key.
pub fn router(rest: Arc<RestState>, guard: Arc<BrowserGuard>) -> Router {
    // Routes get the state only together with the layer of their group.
    let routes = route_groups().into_iter().fold(Router::new(), |router, (group, routes)| {
        let layer = middleware::from_fn_with_state(group, authorize);
        router.merge(routes.route_layer(layer).with_state(rest.clone()))
    });
    routes
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(rest, refuse_while_draining))
        .layer(middleware::from_fn_with_state(guard, check_origin))
}

/// Returns the routes that require no key, with their whole paths. The OpenAPI document is the same for every gateway and
/// reveals nothing about this one, so that generators of clients need no key. A one-time code for a session is a secret
/// like a key.
pub(crate) fn public_router(rest: Arc<RestState>, guard: Arc<BrowserGuard>) -> Router {
    Router::new()
        .route(OPENAPI_PATH, get(openapi).fallback(method_not_allowed))
        .route(SESSIONS_PATH, post(sessions::exchange).fallback(method_not_allowed))
        .with_state(rest)
        .layer(middleware::from_fn_with_state(guard, check_origin))
}

/// Returns the routes of each group.
fn route_groups() -> [(RouteGroup, Router<Arc<RestState>>); 7] {
    let api_caller = Router::new()
        .route("/caller", get(caller::show))
        .route("/session-codes", post(sessions::create_code))
        .route("/sessions/current", delete(sessions::end));
    let tool_caller = Router::new()
        .route("/tools", get(tools::list))
        .route("/tools/{name}", get(tools::one))
        .route("/tools/{name}/call", post(tools::call))
        .route("/search", get(search::search))
        .route("/hints", post(hints::hint));
    let status_reader = Router::new()
        .route("/status", get(status))
        .route("/handlers", get(handlers::list))
        .route("/events", get(events::stream))
        .route("/tokens", get(tokens::show));
    let admin = Router::new()
        .route("/handlers/{name}/test", post(handlers::test))
        .route("/handlers/{name}/refresh", post(handlers::refresh))
        .route("/handlers/{name}/restart", post(handlers::restart))
        .route("/handlers/{name}/disable", post(handlers::disable))
        .route("/series", get(series::read))
        .route("/handlers/{name}/accept", post(handlers::accept))
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/tools", post(keys::preview))
        .route("/keys/{id}", delete(keys::revoke))
        .route("/sandbox", get(sandbox::show))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{id}", delete(schedules::cancel))
        .route("/schedules/{id}/runs", get(schedules::runs))
        .route("/memory", get(memory::list))
        .route("/memory/entries", get(memory::entries))
        .route("/agents", get(agents::list))
        .route("/bus", get(bus::show))
        .route("/bus/dead-letters", get(bus::dead_letters))
        .route("/audit", get(audit::read))
        .route("/manifest", get(manifest::show))
        .route("/manifest/check", post(manifest::check))
        .route("/manifest/import", post(manifest::import))
        .route("/log", put(log::change));
    let function_caller = Router::new().route("/functions/{id}/{version}/invoke", post(functions::invoke));
    let function_reader = Router::new()
        .route("/functions", get(functions::list))
        .route("/functions/{id}", get(functions::get_function))
        .route("/functions/{id}/draft", get(functions::version))
        .route("/functions/{id}/{version}", get(functions::version));
    let function_author = Router::new()
        .route("/functions/{id}", delete(functions::delete))
        .route("/functions/{id}/draft", put(functions::save).delete(functions::delete_version))
        .route("/functions/{id}/publish", post(functions::publish))
        .route("/functions/{id}/logs", get(functions::logs))
        .route("/functions/{id}/{version}", delete(functions::delete_version))
        .route("/functions/{id}/{version}/file", get(functions::file))
        .route("/functions/{id}/{version}/test", post(functions::test));
    [
        (RouteGroup::ApiCaller, api_caller),
        (RouteGroup::ToolCaller, tool_caller),
        (RouteGroup::StatusReader, status_reader),
        (RouteGroup::Admin, admin),
        (RouteGroup::FunctionCaller, function_caller),
        (RouteGroup::FunctionReader, function_reader),
        (RouteGroup::FunctionAuthor, function_author),
    ]
}

/// Refuses requests of other origins.
async fn check_origin(State(guard): State<Arc<BrowserGuard>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = guard.check(&request) {
        return ProblemDetails::denied(refusal.to_string()).into();
    }
    let headers = request.headers().clone();
    if request.method() == http::Method::OPTIONS && headers.contains_key(header::ORIGIN) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        guard::allow_preflight(&headers, &mut response, "GET, POST, PUT, DELETE");
        guard::allow_read(&headers, &mut response, "");
        return response;
    }
    let mut response = next.run(request).await;
    guard::allow_read(&headers, &mut response, "retry-after");
    response
}

/// Refuses requests that may change something while the gateway drains. Running calls continue, and requests that only
/// read stay available, including the status.
async fn refuse_while_draining(State(rest): Rest, request: Request, next: Next) -> Response {
    let is_refused = *rest.stage.borrow() == GatewayStage::Draining && !request.method().is_safe();
    match is_refused {
        true => ([(header::CONNECTION, "close")], ProblemDetails::stopping()).into_response(),
        false => next.run(request).await,
    }
}

/// Answers requests of unknown paths.
pub async fn not_found() -> ProblemDetails {
    ProblemDetails::not_found("no such endpoint: see /api/v1/openapi.json")
}

async fn method_not_allowed() -> ProblemDetails {
    ProblemDetails::method_not_allowed()
}

async fn openapi() -> Response {
    json(StatusCode::OK, OPENAPI)
}

/// `GET /status`: the status of the gateway.
async fn status(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    // It reads files of the system.
    let status = spawn_blocking(move || rest.reporter.status(&caller)).await;
    status.map(|status| json(StatusCode::OK, status)).map_err(|_| ProblemDetails::fault())
}

impl RestState {
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
}

/// Returns a JSON response that must not be cached.
fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
}

fn json_value(status: StatusCode, value: &impl Serialize) -> RestResult {
    serde_json::to_vec(value).map(|text| json(status, text)).map_err(|_| ProblemDetails::fault())
}
