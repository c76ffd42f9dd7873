//! What could not be sent: counted, and said aloud now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::names;

/// How much was not sent, since the start.
#[derive(Debug, Default)]
pub(super) struct Losses {
    spans: AtomicU64,
    metrics: AtomicU64,
}

impl Losses {
    /// Shows the losses as a metric.
    pub(super) fn show(self: &Arc<Self>, meter: &Meter, prefix: &str) {
        let (losses, of) = (self.clone(), &names::TELEMETRY_LOST);
        let count = move |signal: &'static str, lost: &AtomicU64| {
            (lost.load(Ordering::Relaxed), [KeyValue::new(names::SIGNAL, signal)])
        };
        meter
            .u64_observable_counter(of.full_name(prefix))
            .with_unit(of.unit)
            .with_description(of.description)
            .with_callback(move |seen| {
                for (lost, signal) in [count("traces", &losses.spans), count("metrics", &losses.metrics)] {
                    seen.observe(lost, &signal);
                }
            })
            .build();
    }
}

#[cfg(feature = "otlp")]
impl Losses {
    pub(super) fn lose_spans(&self, number: usize) {
        self.spans.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub(super) fn lose_metrics(&self) {
        self.metrics.fetch_add(1, Ordering::Relaxed);
    }

    /// How much was lost, of both.
    pub(super) fn all(&self) -> u64 {
        self.spans.load(Ordering::Relaxed) + self.metrics.load(Ordering::Relaxed)
    }
}
