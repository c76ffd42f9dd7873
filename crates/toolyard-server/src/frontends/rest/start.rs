//! Start of the REST API.

use std::sync::{Arc, Mutex};

use axum::Router;

use super::{RestState, router};
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::status::StatusReporter;

/// Returns the routes of the API below `/api/v1` that require a key.
pub(crate) fn routes(context: &GatewayContext, deps: &FrontendDeps<'_>) -> Router {
    let (process, fleet) = (&context.process, &context.fleet);
    let last_edit = context.last_edit.subscribe();
    let reporter = StatusReporter {
        gateway: deps.gateway.clone(),
        statuses: fleet.statuses.clone(),
        processes: context.processes.clone(),
        last_edit,
        embeddings: context.embeddings.clone(),
        listening: deps.listening.clone(),
    };
    let state = RestState {
        gateway: deps.gateway.clone(),
        reporter: Arc::new(reporter),
        commands: fleet.commands.clone(),
        keys: deps.keys.clone(),
        audit: context.audit.clone(),
        host: deps.hosting.host.clone(),
        sandbox: deps.hosting.sandbox.clone(),
        services: deps.services.clone(),
        log: context.log.clone(),
        stage: context.stage.subscribe(),
        budget: context.budget.clone(),
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        detached_calls: Mutex::default(),
    };
    router(Arc::new(state), Arc::new(deps.guard.clone()))
}
