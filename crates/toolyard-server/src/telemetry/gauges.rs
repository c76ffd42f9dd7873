//! What is looked at when somebody asks for metrics.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, AsyncInstrumentBuilder, Meter, ObservableGauge};
use tokio::sync::watch;
use toolyard_core::{Phase, Registry};
use toolyard_process::Processes;

use super::metrics::Metrics;
use super::names;
use crate::audit::Audit;

/// What is looked at.
pub struct Watched {
    /// What the handlers offer.
    pub registry: watch::Receiver<Arc<Registry>>,
    /// The programs of handlers.
    pub processes: Processes,
    /// The audit trail.
    pub audit: Arc<Audit>,
}

const PHASES: [&str; 3] = ["connecting", "ready", "unavailable"];

/// Makes the instruments. They live as long as what the meter belongs to.
pub(super) fn show(meter: &Meter, prefix: &str, watched: Watched, metrics: Arc<Metrics>) {
    let Watched { registry, processes, audit } = watched;
    let gauge = |of: &names::Instrument| -> AsyncInstrumentBuilder<'_, ObservableGauge<u64>, u64> {
        meter.u64_observable_gauge(of.full_name(prefix)).with_unit(of.unit).with_description(of.description)
    };
    gauge(&names::CALLS_ACTIVE).with_callback(move |seen| seen.observe(metrics.active(), &[])).build();
    gauge(&names::PROCESSES)
        .with_callback(move |seen| seen.observe(processes.list().len() as u64, &[]))
        .build();
    let lost = &names::AUDIT_LOST;
    meter
        .u64_observable_counter(lost.full_name(prefix))
        .with_unit(lost.unit)
        .with_description(lost.description)
        .with_callback(move |seen| seen.observe(audit.lost(), &[]))
        .build();
    let handlers = registry.clone();
    gauge(&names::HANDLERS).with_callback(move |seen| by_phase(&handlers.borrow(), seen)).build();
    gauge(&names::HANDLER_READY).with_callback(move |seen| readiness(&registry.borrow(), seen)).build();
}

fn by_phase(registry: &Registry, seen: &dyn AsyncInstrument<u64>) {
    for phase in PHASES {
        let handlers = registry.phases().iter().filter(|(_, of)| name_of(of) == phase).count();
        seen.observe(handlers as u64, &[KeyValue::new(names::PHASE, phase)]);
    }
}

fn readiness(registry: &Registry, seen: &dyn AsyncInstrument<u64>) {
    for (handler, phase) in registry.phases() {
        let is_ready = *phase == Phase::Ready;
        seen.observe(u64::from(is_ready), &[KeyValue::new(names::HANDLER, handler.clone())]);
    }
}

const fn name_of(phase: &Phase) -> &'static str {
    match phase {
        Phase::Connecting => PHASES[0],
        Phase::Ready => PHASES[1],
        Phase::Unavailable { .. } => PHASES[2],
    }
}
