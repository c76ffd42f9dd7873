//! Measurements of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, Counter, Histogram, Meter};
use toolyard_core::ErrorCode;
use toolyard_core::layers::{CallEnding, CallObserver, ObservedCall};
use toolyard_core::{Call, CallTarget, RegistryEntry, ToolError};
use toolyard_mcp::wire::target_method;

use super::labels::{CallStatus, StatusSlots, ToolLabelTable, ToolLabels};
use super::{names, trace};

/// Bucket boundaries of [`names::INVOKE_DURATION`], in milliseconds.
const MILLISECONDS: [f64; 15] =
    [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 10e3, 30e3, 60e3];

/// Bucket boundaries of the conventions' durations, in seconds, as the conventions advise.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The instruments of calls.
pub(super) struct CallMetrics {
    invocations: Counter<u64>,
    invoke_duration: Histogram<f64>,
    server_duration: Histogram<f64>,
    client_duration: Histogram<f64>,
    active: AtomicU64,
    tools: ToolLabelTable,
    /// Counters of calls of unknown tools.
    unknown: StatusSlots<BoundCounter<u64>>,
}

/// Measures upstream requests by the same instruments.
pub(super) struct UpstreamMetrics(pub(super) Arc<CallMetrics>);

impl CallMetrics {
    /// Creates instruments that name at most `tools` tools.
    pub(super) fn new(meter: &Meter, prefix: &str, tools: usize) -> Self {
        let histogram = |of: &names::MetricInstrument, bounds: &[f64]| {
            meter
                .f64_histogram(of.full_name(prefix))
                .with_unit(of.unit)
                .with_description(of.description)
                .with_boundaries(bounds.to_vec())
                .build()
        };
        let invocations = &names::INVOCATIONS;
        Self {
            invocations: meter
                .u64_counter(invocations.full_name(prefix))
                .with_unit(invocations.unit)
                .with_description(invocations.description)
                .build(),
            invoke_duration: histogram(&names::INVOKE_DURATION, &MILLISECONDS),
            server_duration: histogram(&names::SERVER_DURATION, &SECONDS),
            client_duration: histogram(&names::CLIENT_DURATION, &SECONDS),
            active: AtomicU64::new(0),
            tools: ToolLabelTable::new(tools),
            unknown: StatusSlots::default(),
        }
    }

    /// Number of calls that run or wait.
    pub(super) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Records a script that arrived on the message bus, like a call of the tool that sends it.
    pub(super) fn record_script(&self, verdict: Result<bool, ErrorCode>, took: Duration) {
        let set = [
            KeyValue::new(names::TOOL, trace::SCRIPT_TOOL),
            KeyValue::new(names::STATUS, CallStatus::of(verdict).name()),
        ];
        self.invocations.add(1, &set);
        self.invoke_duration.record(milliseconds(took), &set);
    }

    fn labels(&self, target: &CallTarget, entry: &RegistryEntry) -> Option<Arc<ToolLabels>> {
        matches!(target, CallTarget::Tool(_)).then(|| self.tools.get(&entry.name))
    }
}

impl CallObserver for CallMetrics {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        self.active.fetch_add(1, Ordering::Relaxed);
        let method = target_method(&call.target);
        let labels = self.labels(&call.target, entry);
        Some(Box::new(MeasuredCall { metrics: self, labels, method, is_piped: call.origin.is_none() }))
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        if let CallTarget::Tool(_) = call.target {
            let status = CallStatus::Refused(error.code());
            let bind = || self.invocations.bind(&[KeyValue::new(names::STATUS, status.name())]);
            self.unknown.get(status, bind).add(1);
        }
    }
}

struct MeasuredCall<'a> {
    metrics: &'a CallMetrics,
    /// Labels of a tool. Other targets have no name in metrics, because their names are unlimited.
    labels: Option<Arc<ToolLabels>>,
    method: &'static str,
    is_piped: bool,
}

impl ObservedCall for MeasuredCall<'_> {
    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let Self { metrics, labels, method, is_piped } = *self;
        metrics.active.fetch_sub(1, Ordering::Relaxed);
        let status = CallStatus::of(ended.verdict());
        let transport = if is_piped { "pipe" } else { "tcp" };
        let of_request = || {
            let mut set = operation(method, labels.as_deref(), status);
            set.push(KeyValue::new(names::TRANSPORT, transport));
            set
        };
        let seconds = ended.took.as_secs_f64();
        let Some(labels) = &labels else { return metrics.server_duration.record(seconds, &of_request()) };
        let (invocations, duration) = labels.invocations.get(status, || {
            let set = [
                KeyValue::new(names::TOOL, labels.tool.clone()),
                KeyValue::new(names::STATUS, status.name()),
            ];
            (metrics.invocations.bind(&set), metrics.invoke_duration.bind(&set))
        });
        invocations.add(1);
        duration.record(milliseconds(ended.took));
        let bind = || metrics.server_duration.bind(&of_request());
        labels.requests[usize::from(is_piped)].get(status, bind).record(seconds);
    }
}

impl CallObserver for UpstreamMetrics {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        let method = target_method(&call.target);
        let labels = self.0.labels(&call.target, entry);
        Some(Box::new(MeasuredUpstream { metrics: &self.0, labels, method }))
    }
}

struct MeasuredUpstream<'a> {
    metrics: &'a CallMetrics,
    labels: Option<Arc<ToolLabels>>,
    method: &'static str,
}

impl ObservedCall for MeasuredUpstream<'_> {
    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let status = CallStatus::of(ended.verdict());
        let set = || operation(self.method, self.labels.as_deref(), status);
        let (duration, seconds) = (&self.metrics.client_duration, ended.took.as_secs_f64());
        match &self.labels {
            Some(labels) => labels.upstream_requests.get(status, || duration.bind(&set())).record(seconds),
            None => duration.record(seconds, &set()),
        }
    }
}

/// Returns the attributes of an MCP operation by the semantic conventions.
fn operation(method: &'static str, labels: Option<&ToolLabels>, status: CallStatus) -> Vec<KeyValue> {
    let mut set = vec![KeyValue::new(names::METHOD, method)];
    if let Some(labels) = labels {
        set.push(KeyValue::new(names::GEN_AI_TOOL, labels.tool.clone()));
        set.push(KeyValue::new(names::GEN_AI_OPERATION, trace::EXECUTE_TOOL));
    }
    set.extend(status.error_type());
    set
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
