//! Start of the REST API.

use std::sync::{Arc, Mutex};

use super::RestState;
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::status::StatusReporter;

/// Creates the state of the API.
pub(crate) fn state(context: &GatewayContext, deps: &FrontendDeps<'_>) -> Arc<RestState> {
    let (process, fleet) = (&context.process, &context.fleet);
    let last_edit = context.last_edit.subscribe();
    let reporter = StatusReporter {
        gateway: deps.gateway.clone(),
        statuses: fleet.statuses.clone(),
        processes: context.processes.clone(),
        manifest: context.manifest.subscribe(),
        cluster_members: context.cluster_members.subscribe(),
        store_location: context.store_location.clone(),
        audit: context.audit.clone(),
        last_edit,
        embeddings: context.embeddings.clone(),
        listening: deps.listening.clone(),
    };
    Arc::new(RestState {
        gateway: deps.gateway.clone(),
        reporter: Arc::new(reporter),
        commands: fleet.commands.clone(),
        keys: deps.keys.clone(),
        audit: context.audit.clone(),
        host: deps.hosting.host.clone(),
        sandbox: deps.hosting.sandbox.clone(),
        services: deps.services.clone(),
        finder: deps.finder.clone(),
        schedules: deps.schedules.clone(),
        agents: deps.agents.clone(),
        store: context.store.clone(),
        bus: process.bus.clone(),
        trace_url: process.console.trace_url.clone(),
        history: deps.telemetry.history().clone(),
        log: context.log.clone(),
        stage: context.stage.subscribe(),
        budget: context.budget.clone(),
        body_bytes: process.limits.request_body_bytes,
        body_time: process.timeouts.request_body,
        detached_calls: Mutex::default(),
    })
}
