//! The doors of the gateway.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolyard_manifest::Process;
use toolyard_mcp::server::http::{self as mcp, HttpOptions};
use toolyard_mcp::server::{Frontend, SessionLimits};
use toolyard_net::guard::Guard;

use crate::status::Observatory;

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
    observatory: Arc<Observatory>,
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
    let status = Router::new().route("/api/v1/status", get(status)).with_state((guard.clone(), observatory));
    let options = HttpOptions {
        guard,
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        sessions,
    };
    let health = get(move || std::future::ready(health(*stage.borrow())));
    mcp::router(frontend, options).route("/health", health).merge(status)
}

/// How the gateway is, for operators. It names handlers and programs, so pages of other origins do not get it.
async fn status(
    State((guard, observatory)): State<(Guard, Arc<Observatory>)>,
    request: http::Request<Body>,
) -> Response {
    if let Err(refusal) = guard.check(&request) {
        let problem = serde_json::json!({"error": {"code": "denied", "message": refusal.to_string()}});
        return json(StatusCode::FORBIDDEN, problem.to_string());
    }
    // It reads files of the system.
    match spawn_blocking(move || observatory.status()).await {
        Ok(status) => json(StatusCode::OK, status),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.into()).into_response()
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
    json(status, body)
}
