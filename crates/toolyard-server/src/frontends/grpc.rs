//! gRPC: the tools as the service of the Omnia tool protocol, on listeners of its own.
//!
//! Calls need a key with the scope `rest`, as calls by REST. Health checks and server reflection need none.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::request::Parts;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolyard_core::{Caller, ErrorCode, ToolError};
use toolyard_grpc::server::{self, HEALTH_PATH, PUBLIC_PATHS, ServiceHealth, ToolServiceParts};
use toolyard_mcp::server::http::peer_of;
use toolyard_mcp::server::owner_of_request;
use toolyard_net::listener::{self, ListenerLimits, SocketListener};
use toolyard_net::workers::WorkerPool;

use super::FrontendDeps;
use crate::context::GatewayContext;
use crate::keys::{AuthLayer, AuthenticatedCaller, KeyCache, KeyRefusal};
use crate::routes::GatewayStage;

/// Interval of the checks whether the keys are loaded, until they are.
const KEY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the routes, and the task that reports the health.
pub(super) fn routes(context: &GatewayContext, deps: &FrontendDeps<'_>) -> (Router, JoinSet<()>) {
    let process = &context.process;
    let tools = server::tool_routes(ToolServiceParts {
        gateway: deps.gateway.clone(),
        caller,
        owner: owner_of_request,
        stopping: context.stopping.subscribe(),
        budget: context.budget.clone(),
        message_bytes: process.limits.request_body_bytes,
        message_time: process.timeouts.request_body,
    });
    let keys = AuthLayer::new(deps.keys.clone(), deps.guard.clone()).answering(refuse);
    let (public, health) = server::public_routes();
    let mut tasks = JoinSet::new();
    if !process.grpc.listen.is_empty() {
        tasks.spawn(report_health(health, context.stage.subscribe(), deps.keys.clone()));
    }
    (public.merge(tools.layer(keys)), tasks)
}

/// Serves the routes until `stop` resolves.
pub(crate) async fn serve(
    listeners: Vec<SocketListener>,
    routes: Router,
    limits: ListenerLimits,
    workers: &WorkerPool,
    stop: impl Future<Output = ()>,
) {
    if listeners.is_empty() {
        return;
    }
    let limits = ListenerLimits { health_paths: &[HEALTH_PATH], ..limits };
    listener::serve_http2(listeners, routes, limits, &PUBLIC_PATHS, workers, stop).await;
}

/// Returns the caller of a request.
fn caller(parts: &Parts) -> Result<Caller, tonic::Status> {
    let caller = parts.extensions.get::<AuthenticatedCaller>();
    let caller = caller.ok_or_else(|| server::unauthenticated("missing key"))?;
    if !caller.access.rest {
        let error = ToolError::new(ErrorCode::Denied, "the key lacks the scope `rest`");
        return Err(server::status_of(&error));
    }
    Ok(Caller { peer: peer_of(parts), ..caller.to_caller() })
}

/// Answers a request that is not admitted.
fn refuse(refusal: KeyRefusal) -> Response {
    match refusal {
        KeyRefusal::Unauthenticated(reason) => server::unauthenticated(reason).into_http(),
        KeyRefusal::Unavailable(error) => server::status_of(&error).into_http(),
    }
}

/// Reports the health until the gateway stops: the gateway serves once it has its keys, and until it drains.
async fn report_health(health: ServiceHealth, mut stage: watch::Receiver<GatewayStage>, keys: Arc<KeyCache>) {
    loop {
        let is_loaded = keys.is_loaded();
        let now = *stage.borrow_and_update();
        health.set_serving(now == GatewayStage::Serving && is_loaded).await;
        let keys_loaded = async {
            if is_loaded {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(KEY_CHECK_INTERVAL).await;
        };
        tokio::select! {
            changed = stage.changed() => if changed.is_err() { return },
            () = keys_loaded => {}
        }
    }
}
