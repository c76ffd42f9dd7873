//! Gauges: values that are read when metrics are collected.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{
    AsyncInstrument, AsyncInstrumentBuilder, Meter, ObservableCounter, ObservableGauge,
};
use tokio::sync::watch;
use toolyard_agent::search::{EmbeddingRequests, ToolEmbeddings};
use toolyard_core::{BackendPhase, Registry};
use toolyard_process::ProcessTable;

use super::metrics::CallMetrics;
use super::names;
use crate::audit::AuditQueue;
use crate::context::GatewayContext;
use crate::dropped_notices::dropped_notices;

/// The sources of the gauges.
pub(super) struct GaugeSources {
    registry: watch::Receiver<Arc<Registry>>,
    processes: ProcessTable,
    audit: Arc<AuditQueue>,
    embeddings: Option<Arc<ToolEmbeddings>>,
}

impl GaugeSources {
    pub(super) fn of(context: &GatewayContext) -> Self {
        let (processes, audit) = (context.processes.clone(), context.audit.clone());
        let (registry, embeddings) = (context.fleet.registry.clone(), context.embeddings.clone());
        Self { registry, processes, audit, embeddings }
    }
}

const PHASES: [&str; 3] = ["connecting", "ready", "unavailable"];

/// Registers the gauges, which live as long as the meter's provider.
pub(super) fn register(meter: &Meter, prefix: &str, sources: GaugeSources, metrics: Arc<CallMetrics>) {
    let GaugeSources { registry, processes, audit, embeddings } = sources;
    let gauge = |of: &names::MetricInstrument| -> AsyncInstrumentBuilder<'_, ObservableGauge<u64>, u64> {
        meter.u64_observable_gauge(of.full_name(prefix)).with_unit(of.unit).with_description(of.description)
    };
    gauge(&names::CALLS_ACTIVE)
        .with_callback(move |observer| observer.observe(metrics.active(), &[]))
        .build();
    gauge(&names::PROCESSES)
        .with_callback(move |observer| observer.observe(processes.list().len() as u64, &[]))
        .build();
    let counter = |of: &names::MetricInstrument| -> AsyncInstrumentBuilder<'_, ObservableCounter<u64>, u64> {
        meter.u64_observable_counter(of.full_name(prefix)).with_unit(of.unit).with_description(of.description)
    };
    let removed = audit.clone();
    counter(&names::AUDIT_LOST).with_callback(move |observer| observer.observe(audit.lost(), &[])).build();
    counter(&names::AUDIT_REMOVED)
        .with_callback(move |observer| observer.observe(removed.removed(), &[]))
        .build();
    let entries = registry.clone();
    counter(&names::NOTIFICATIONS_DROPPED)
        .with_callback(move |observer| observe_dropped(&entries.borrow(), observer))
        .build();
    counter(&names::EMBEDDING_REQUESTS)
        .with_callback(move |observer| observe_requests(embeddings.as_deref(), observer))
        .build();
    let handlers = registry.clone();
    gauge(&names::HANDLERS)
        .with_callback(move |observer| observe_phases(&handlers.borrow(), observer))
        .build();
    gauge(&names::HANDLER_READY)
        .with_callback(move |observer| observe_readiness(&registry.borrow(), observer))
        .build();
}

fn observe_phases(registry: &Registry, observer: &dyn AsyncInstrument<u64>) {
    for phase in PHASES {
        let handlers = registry.phases().iter().filter(|(_, of)| phase_name(of) == phase).count();
        observer.observe(handlers as u64, &[KeyValue::new(names::PHASE, phase)]);
    }
}

fn observe_dropped(registry: &Registry, observer: &dyn AsyncInstrument<u64>) {
    for (handler, dropped) in dropped_notices(registry) {
        observer.observe(dropped, &[KeyValue::new(names::HANDLER, handler)]);
    }
}

fn observe_requests(embeddings: Option<&ToolEmbeddings>, observer: &dyn AsyncInstrument<u64>) {
    let EmbeddingRequests { succeeded, failed } =
        embeddings.map(ToolEmbeddings::requests).unwrap_or_default();
    for (status, count) in [(names::OK, succeeded), (names::FAILED, failed)] {
        observer.observe(count, &[KeyValue::new(names::STATUS, status)]);
    }
}

fn observe_readiness(registry: &Registry, observer: &dyn AsyncInstrument<u64>) {
    for (handler, phase) in registry.phases() {
        let is_ready = *phase == BackendPhase::Ready;
        observer.observe(u64::from(is_ready), &[KeyValue::new(names::HANDLER, handler.clone())]);
    }
}

const fn phase_name(phase: &BackendPhase) -> &'static str {
    match phase {
        BackendPhase::Connecting => PHASES[0],
        BackendPhase::Ready => PHASES[1],
        BackendPhase::Unavailable { .. } => PHASES[2],
    }
}
