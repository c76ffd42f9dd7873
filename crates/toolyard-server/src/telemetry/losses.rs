//! Counts telemetry that could not be exported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::names;

/// Lost telemetry since the start.
#[derive(Debug, Default)]
pub(super) struct TelemetryLosses {
    spans: AtomicU64,
    metrics: AtomicU64,
}

impl TelemetryLosses {
    /// Registers the losses as a metric.
    pub(super) fn register(self: &Arc<Self>, meter: &Meter, prefix: &str) {
        let (losses, of) = (self.clone(), &names::TELEMETRY_LOST);
        let count = move |signal: &'static str, lost: &AtomicU64| {
            (lost.load(Ordering::Relaxed), [KeyValue::new(names::SIGNAL, signal)])
        };
        meter
            .u64_observable_counter(of.full_name(prefix))
            .with_unit(of.unit)
            .with_description(of.description)
            .with_callback(move |observer| {
                for (lost, signal) in [count("traces", &losses.spans), count("metrics", &losses.metrics)] {
                    observer.observe(lost, &signal);
                }
            })
            .build();
    }
}

impl TelemetryLosses {
    pub(super) fn lose_spans(&self, count: usize) {
        self.spans.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn lose_metrics(&self) {
        self.metrics.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of lost spans and metric exports.
    pub(super) fn total(&self) -> u64 {
        self.spans.load(Ordering::Relaxed) + self.metrics.load(Ordering::Relaxed)
    }
}
