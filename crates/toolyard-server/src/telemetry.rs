//! What the gateway tells those who run it of calls: metrics and traces, by OpenTelemetry.
//!
//! - [`names`]: every instrument, span and attribute by its name;
//! - `metrics`, `labels`: what is measured of calls, under labels that are bounded;
//! - `gauges`: what is looked at when somebody asks for metrics;
//! - `trace`, `context`: spans, and the trace that a call belongs to;
//! - `settings`: what the manifest and the environment say together;
//! - `export`, `spans`, `losses`, `collector`: what is sent to a collector, off the way of calls.
//!
//! There are no globals: providers are made here, and given on.

#[cfg(feature = "otlp")]
mod collector;
mod context;
#[cfg(feature = "otlp")]
mod export;
mod gauges;
mod labels;
mod losses;
mod metrics;
pub mod names;
mod settings;
#[cfg(feature = "otlp")]
mod spans;
mod trace;

use std::sync::Arc;

use opentelemetry::metrics::MeterProvider;
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, SdkMeterProvider, Stream};
use prometheus::{Registry, TextEncoder};
use toolyard_core::Observers;
use toolyard_manifest::Process;

use crate::counters::Counters;

pub use gauges::Watched;
pub use settings::Error;

/// What the spans and metrics of the gateway are said to come from.
const SCOPE: &str = "toolyard";

/// Sets of attributes for each tool that is named: few tools end in more ways than these. What goes beyond them all is
/// counted by OpenTelemetry under `otel.metric.overflow`.
const SETS_PER_TOOL: usize = 4;

/// Everything that tells of calls.
pub struct Telemetry {
    page: Registry,
    meters: SdkMeterProvider,
    metrics: Arc<metrics::Metrics>,
    traces: Arc<trace::Traces>,
    prefix: String,
    #[cfg(feature = "otlp")]
    exporting: Option<export::Exporting>,
}

impl Telemetry {
    /// Makes the instruments, and begins to send what they show where there is a collector.
    ///
    /// # Errors
    /// When the environment says something that cannot be, or there can be no connection to such a collector at all. One
    /// that is not there right now is no error.
    pub fn start(process: &Process) -> Result<Self, Error> {
        let collector = settings::collector(&process.telemetry, &|name| std::env::var(name).ok())?;
        let resource = resource();
        let page = Registry::new();
        let reader =
            opentelemetry_prometheus::exporter().with_registry(page.clone()).scope_info_enabled(false);
        let mut meters =
            SdkMeterProvider::builder().with_resource(resource.clone()).with_reader(reader.build()?);
        meters = with_room(meters, process.limits.metric_labels);
        let losses = Arc::new(losses::Losses::default());

        #[cfg(feature = "otlp")]
        let (meters, exporting, tracers) = match collector {
            None => (meters, None, None),
            Some(collector) => {
                let parts = export::start(&collector, process, &resource, meters, &losses)?;
                (parts.meters, Some(parts.exporting), Some(parts.tracers))
            }
        };
        #[cfg(not(feature = "otlp"))]
        let tracers = match collector {
            None => None,
            Some(_) => return Err(Error::NotBuiltIn),
        };

        let meters = meters.build();
        let prefix = process.telemetry.prefix.clone();
        let meter = meters.meter(SCOPE);
        let metrics = Arc::new(metrics::Metrics::new(&meter, &prefix, process.limits.metric_labels));
        losses.show(&meter, &prefix);
        let traces = Arc::new(trace::Traces::new(tracers));
        Ok(Self {
            page,
            meters,
            metrics,
            traces,
            prefix,
            #[cfg(feature = "otlp")]
            exporting,
        })
    }

    /// Who is told of calls. The trace comes first: what others see of a call belongs to it.
    #[must_use]
    pub fn observers(&self, counters: Arc<Counters>) -> Observers {
        Observers {
            of_calls: vec![self.traces.clone(), self.metrics.clone(), counters],
            of_legs: vec![
                Arc::new(trace::Legs(self.traces.clone())),
                Arc::new(metrics::Legs(self.metrics.clone())),
            ],
        }
    }

    /// Shows what can be looked at.
    pub fn watch(&self, watched: Watched) {
        gauges::show(&self.meters.meter(SCOPE), &self.prefix, watched, self.metrics.clone());
    }

    /// The metrics as Prometheus reads them. It takes a while where there are many.
    #[must_use]
    pub fn page(&self) -> String {
        // Only what cannot be a name or a label fails, and the instruments are ours.
        TextEncoder::new().encode_to_string(&self.page.gather()).unwrap_or_default()
    }

    /// Sends what is left, for as long as the manifest allows.
    #[cfg_attr(not(feature = "otlp"), expect(clippy::unused_async, reason = "there is nothing to wait for"))]
    pub async fn stop(&self) {
        #[cfg(feature = "otlp")]
        if let Some(exporting) = &self.exporting {
            exporting.stop().await;
        }
    }
}

/// What the metrics and spans are about: the environment's word (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`), else ours.
fn resource() -> Resource {
    let said = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let name = said.get(&Key::new("service.name"));
    // What the SDK says where nobody has said anything.
    match name {
        Some(Value::String(name)) if !name.as_str().starts_with("unknown_service") => said,
        _ => Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_service_name(SCOPE)
            .build(),
    }
}

/// With room for `tools` in each instrument.
fn with_room(meters: MeterProviderBuilder, tools: usize) -> MeterProviderBuilder {
    let sets = (tools + 1).saturating_mul(SETS_PER_TOOL);
    meters.with_view(move |_: &Instrument| Stream::builder().with_cardinality_limit(sets).build().ok())
}
