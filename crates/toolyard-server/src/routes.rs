//! The doors of the gateway.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolyard_mcp::server::Frontend;
use toolyard_mcp::server::http::{self as mcp, HttpOptions};
use toolyard_net::guard::Guard;

use crate::keys::{Door, Visitor};
use crate::rest::{self, Problem, Rest};
use crate::telemetry::Telemetry;

/// Where the gateway is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The manifest is not loaded yet.
    Starting,
    /// Calls are taken. Some handlers may be down.
    Serving,
    /// No more calls are taken; those that run are let end.
    Draining,
}

/// The text format of Prometheus.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every route. Whoever comes by another one than `/health` has to show a key, where there are any.
pub fn routes(
    frontend: Arc<Frontend>,
    options: HttpOptions,
    rest: Arc<Rest>,
    telemetry: Arc<Telemetry>,
    stage: watch::Receiver<Stage>,
) -> Router {
    let (ring, door) = (rest.ring.clone(), Door::new(rest.ring.clone(), options.guard.clone()));
    let metrics =
        Router::new().route("/metrics", get(metrics)).with_state((options.guard.clone(), telemetry));
    let behind = mcp::router(frontend, options).merge(metrics).nest("/api/v1", rest::router(rest));
    let behind = behind.fallback(rest::nothing).layer(door);
    let health = get(move || std::future::ready(health(*stage.borrow(), ring.is_known())));
    Router::new().route("/health", health).merge(behind)
}

/// What Prometheus reads. It names tools, so pages of other origins do not get it.
async fn metrics(
    State((guard, telemetry)): State<(Guard, Arc<Telemetry>)>,
    request: http::Request<Body>,
) -> Result<Response, Problem> {
    guard.check(&request).map_err(|refusal| Problem::denied(refusal.to_string()))?;
    Visitor::of(request.extensions(), |access| access.metrics || access.admin)?;
    // There may be thousands of time series, and calls wait behind whatever runs here.
    let page = spawn_blocking(move || telemetry.page()).await.map_err(|_| Problem::fault())?;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], page).into_response())
}

/// An address as a `Host` header has it.
pub fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// For those who ask whether to send work here. Handlers that are down do not count: the gateway
/// serves the others. While nobody can say who may come in, nobody does.
fn health(stage: Stage, is_known_who: bool) -> Response {
    let (status, body) = match stage {
        Stage::Starting => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"starting"}"#),
        Stage::Serving if !is_known_who => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"no store"}"#),
        Stage::Serving => (StatusCode::OK, r#"{"status":"ok"}"#),
        Stage::Draining => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#),
    };
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, Body::from(body)).into_response()
}
