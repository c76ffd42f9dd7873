//! Metrics and traces of calls, by OpenTelemetry.
//!
//! - [`names`]: names of every instrument, span and attribute;
//! - `metrics`, `labels`: measurements of calls, under a limited number of labels;
//! - `gauges`: values that are read when metrics are collected;
//! - `trace`, `context`, `scripts`: spans, and the trace context of a call;
//! - `history`: the metrics of the last hours;
//! - `settings`: the collector, from the manifest or the environment;
//! - `export`, `spans`, `losses`, `collector`: export to a collector, outside the path of calls.
//!
//! There are no globals: providers are created here and passed on.

mod collector;
mod context;
mod export;
mod gauges;
pub(crate) mod history;
mod labels;
mod losses;
mod metrics;
pub mod names;
mod scripts;
mod settings;
mod spans;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use crate::context::GatewayContext;
use crate::counters::CallCounters;
use crate::shutdown::Subsystem;
use futures_util::future::BoxFuture;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, SdkMeterProvider, Stream};
use prometheus::{Registry, TextEncoder};
use tokio::task::JoinSet;
use toolyard_core::Observers;

use gauges::GaugeSources;
pub use settings::TelemetryError;

/// Instrumentation scope of the gateway's spans and metrics.
const SCOPE: &str = "toolyard";

/// Attribute sets per named tool. Few tools end in more ways than this. OpenTelemetry counts sets beyond the limit
/// under `otel.metric.overflow`.
const SETS_PER_TOOL: usize = 4;

/// Metrics and traces of a gateway.
pub struct GatewayTelemetry {
    page: Registry,
    history: Arc<history::MetricsHistory>,
    /// The task that adds points to the history.
    _following: JoinSet<()>,
    /// Kept for the gauges, which end with their provider.
    _meters: SdkMeterProvider,
    metrics: Arc<metrics::CallMetrics>,
    traces: Arc<trace::CallTraces>,
    export_tasks: Option<export::ExportTasks>,
}

impl GatewayTelemetry {
    /// Creates the instruments, and starts the export if a collector is configured.
    ///
    /// # Errors
    /// If the environment is invalid, or no connection to such a collector is possible. A collector that is down is no
    /// error.
    pub(crate) fn start(context: &GatewayContext) -> Result<Self, TelemetryError> {
        let process = &context.process;
        let collector = settings::collector(&process.telemetry, &|name| std::env::var(name).ok())?;
        let resource = resource();
        let page = Registry::new();
        let reader =
            opentelemetry_prometheus::exporter().with_registry(page.clone()).scope_info_enabled(false);
        let mut meters =
            SdkMeterProvider::builder().with_resource(resource.clone()).with_reader(reader.build()?);
        meters = with_cardinality_limit(meters, process.limits.metric_labels);
        let losses = Arc::new(losses::TelemetryLosses::default());

        let (meters, export_tasks, tracers) = match collector {
            None => (meters, None, None),
            Some(collector) => {
                let parts = export::start(&collector, process, &resource, meters, &losses)?;
                (parts.meters, Some(parts.export_tasks), Some(parts.tracers))
            }
        };

        let meters = meters.build();
        let prefix = &process.telemetry.prefix;
        let meter = meters.meter(SCOPE);
        let metrics = Arc::new(metrics::CallMetrics::new(&meter, prefix, process.limits.metric_labels));
        losses.register(&meter, prefix);
        gauges::register(&meter, prefix, GaugeSources::of(context), metrics.clone());
        let traces = Arc::new(trace::CallTraces::new(tracers));
        let (tools, processes) = (context.fleet.registry.clone(), context.processes.clone());
        let history = Arc::new(history::MetricsHistory::new(page.clone(), tools, processes));
        let mut following = JoinSet::new();
        following.spawn(history.clone().follow());
        Ok(Self { page, history, _following: following, _meters: meters, metrics, traces, export_tasks })
    }

    /// Returns an executor whose scripts have spans and are measured.
    pub(crate) fn observed_scripts(
        &self,
        executor: Arc<dyn toolyard_core::ScriptExecutor>,
    ) -> Arc<dyn toolyard_core::ScriptExecutor> {
        let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
        Arc::new(scripts::ObservedScripts { executor, traces, metrics })
    }

    /// Returns the observers of calls. The trace comes first, so that what the others record belongs to it.
    #[must_use]
    pub fn observers(&self, counters: Arc<CallCounters>) -> Observers {
        Observers {
            of_calls: vec![self.traces.clone(), self.metrics.clone(), counters],
            of_upstream_requests: vec![
                Arc::new(trace::UpstreamTraces(self.traces.clone())),
                Arc::new(metrics::UpstreamMetrics(self.metrics.clone())),
            ],
        }
    }

    /// Calls and memory of the last hours.
    pub(crate) const fn history(&self) -> &Arc<history::MetricsHistory> {
        &self.history
    }

    /// Renders the metrics for Prometheus. Takes a while if there are many.
    #[must_use]
    pub fn page(&self) -> String {
        // Encoding fails only for invalid names and labels, and the instruments have none.
        TextEncoder::new().encode_to_string(&self.page.gather()).unwrap_or_default()
    }

    /// Exports what is left, within the configured time.
    pub async fn stop(&self) {
        if let Some(export_tasks) = &self.export_tasks {
            export_tasks.stop().await;
        }
    }
}

impl Subsystem for Arc<GatewayTelemetry> {
    fn stop(self: Box<Self>, _drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { GatewayTelemetry::stop(&self).await })
    }
}

/// Returns the resource: from the environment (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`), else the gateway's.
fn resource() -> Resource {
    let detected = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let name = detected.get(&Key::new("service.name"));
    // The SDK's default if nothing is configured.
    match name {
        Some(Value::String(name)) if !name.as_str().starts_with("unknown_service") => detected,
        _ => Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_service_name(SCOPE)
            .build(),
    }
}

/// Sets the cardinality limit of each instrument for `tools` tools.
fn with_cardinality_limit(meters: MeterProviderBuilder, tools: usize) -> MeterProviderBuilder {
    let sets = (tools + 1).saturating_mul(SETS_PER_TOOL);
    meters.with_view(move |_: &Instrument| Stream::builder().with_cardinality_limit(sets).build().ok())
}
