//! The doors of the gateway.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::sync::watch;
use toolyard_mcp::server::Frontend;
use toolyard_mcp::server::http::{self as mcp, HttpOptions};

use crate::keys::Door;
use crate::rest::{self, Rest};

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

/// Every route. Whoever comes by another one than `/health` has to show a key, where there are any.
pub fn routes(
    frontend: Arc<Frontend>,
    options: HttpOptions,
    rest: Arc<Rest>,
    stage: watch::Receiver<Stage>,
) -> Router {
    let door = Door::new(rest.ring.clone());
    let behind = mcp::router(frontend, options).nest("/api/v1", rest::router(rest)).layer(door);
    let health = get(move || std::future::ready(health(*stage.borrow())));
    Router::new().route("/health", health).merge(behind)
}

/// An address as a `Host` header has it.
pub fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// For those who ask whether to send work here. Handlers that are down do not count: the gateway
/// serves the others.
fn health(stage: Stage) -> Response {
    let (status, body) = match stage {
        Stage::Starting => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"starting"}"#),
        Stage::Serving => (StatusCode::OK, r#"{"status":"ok"}"#),
        Stage::Draining => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#),
    };
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, Body::from(body)).into_response()
}
