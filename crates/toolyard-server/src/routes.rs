//! The doors of the gateway.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::sync::watch;
use toolyard_manifest::Process;
use toolyard_mcp::server::http::{self as mcp, HttpOptions};
use toolyard_mcp::server::{Frontend, SessionLimits};
use toolyard_net::guard::Guard;

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

/// Every route.
pub fn routes(
    frontend: Arc<Frontend>,
    process: &Process,
    address: SocketAddr,
    stage: watch::Receiver<Stage>,
) -> Router {
    let guard = Guard {
        own: host_of(address.ip()),
        hosts: process.allowed_hosts.clone(),
        origins: process.allowed_origins.clone(),
        exposed: !address.ip().is_loopback(),
    };
    let sessions = SessionLimits { sessions: process.limits.sessions, idle: process.timeouts.session_idle };
    let options = HttpOptions {
        guard,
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        sessions,
    };
    let health = get(move || std::future::ready(health(*stage.borrow())));
    mcp::router(frontend, options).route("/health", health)
}

/// An address as a `Host` header has it.
fn host_of(address: IpAddr) -> String {
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
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
