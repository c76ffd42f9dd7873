//! The health checks: `/health`, `/live` and `/ready`. They need no key, and have connections reserved for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use serde::Serialize;
use toolyard_core::{BackendPhase, Registry};
use toolyard_manifest::HandlerKind;

use crate::context::GatewayContext;
use crate::fleet::HandlerStatus;
use crate::keys::KeyCache;
use crate::routes::GatewayStage;

/// Paths of the health checks.
pub(crate) const HEALTH_PATHS: [&str; 3] = ["/health", "/live", "/ready"];

/// The response of a health check.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct HealthReport {
    status: &'static str,
    /// Number of handlers by the reason why they do not answer. Without names, because callers need no key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    causes: BTreeMap<&'static str, usize>,
}

/// Returns the routes of the health checks.
pub(crate) fn routes(context: &GatewayContext, keys: Arc<KeyCache>) -> Router {
    let (stage, statuses) = (context.stage.subscribe(), context.fleet.statuses.clone());
    let registry = context.fleet.registry.clone();
    let (health_keys, health_stage) = (keys.clone(), stage.clone());
    let alive =
        move || std::future::ready(health(*health_stage.borrow(), health_keys.is_loaded()).response());
    let ready = move || {
        let report = match health(*stage.borrow(), keys.is_loaded()) {
            HealthReport { status: "ok", .. } => readiness(&registry.borrow(), &statuses.borrow()),
            report => report,
        };
        std::future::ready(report.response())
    };
    let [health_path, live_path, ready_path] = HEALTH_PATHS;
    Router::new()
        .route(health_path, get(alive))
        .route(live_path, get(|| std::future::ready(HealthReport::of("ok").response())))
        .route(ready_path, get(ready))
}

/// Answers the health check of load balancers. Unavailable handlers do not count, because the gateway serves the
/// others. Until the keys are loaded the gateway is unhealthy, because it admits no request.
fn health(stage: GatewayStage, is_loaded: bool) -> HealthReport {
    HealthReport::of(match stage {
        GatewayStage::Starting => "starting",
        GatewayStage::Serving if !is_loaded => "no store",
        GatewayStage::Serving => "ok",
        GatewayStage::Draining => "draining",
    })
}

/// Reports whether the first lists are there and at least one handler answers. The built-in tools do not count, unless
/// there is nothing else.
fn readiness(registry: &Registry, statuses: &[HandlerStatus]) -> HealthReport {
    if !registry.is_settled() {
        return HealthReport::of("no lists yet");
    }
    let is_own = |status: &&HandlerStatus| matches!(status.declared.kind, HandlerKind::Builtins(_));
    let handlers: Vec<_> = statuses.iter().filter(|status| !is_own(status)).collect();
    if handlers.is_empty() || handlers.iter().any(|status| status.phase == BackendPhase::Ready) {
        return HealthReport::of("ok");
    }
    let mut causes = BTreeMap::new();
    for status in handlers {
        *causes.entry(cause(status)).or_default() += 1;
    }
    HealthReport { status: "no handler answers", causes }
}

fn cause(status: &HandlerStatus) -> &'static str {
    match &status.phase {
        BackendPhase::Unavailable { reason } => reason.code.row().wire,
        BackendPhase::Connecting | BackendPhase::Ready => match status.installation() {
            Some(_) => "installing",
            None => "connecting",
        },
    }
}

impl HealthReport {
    const fn of(status: &'static str) -> Self {
        Self { status, causes: BTreeMap::new() }
    }

    fn response(&self) -> Response {
        let status = if self.status == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
        // Serializing this cannot fail.
        let body = serde_json::to_vec(self).unwrap_or_default();
        (status, headers, Body::from(body)).into_response()
    }
}
