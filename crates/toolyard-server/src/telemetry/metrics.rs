//! What is measured of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, Counter, Histogram, Meter};
use toolyard_core::layers::{Ended, Observation, Observer};
use toolyard_core::{Call, Entry, Target, ToolError};
use toolyard_mcp::wire::method_for;

use super::labels::{Ends, Labels, Status, Tools};
use super::{names, trace};

/// Bounds of the ranges of [`names::INVOKE_DURATION`], in milliseconds.
const MILLISECONDS: [f64; 15] =
    [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 10e3, 30e3, 60e3];

/// Bounds of the ranges of the conventions' durations, in seconds: those that they advise.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The instruments of calls.
pub(super) struct Metrics {
    invocations: Counter<u64>,
    invoke_duration: Histogram<f64>,
    server_duration: Histogram<f64>,
    client_duration: Histogram<f64>,
    active: AtomicU64,
    tools: Tools,
    /// Of tools that nobody has.
    unknown: Ends<BoundCounter<u64>>,
}

/// The same, as far as the way to the owners of what is called is concerned.
pub(super) struct Legs(pub(super) Arc<Metrics>);

impl Metrics {
    /// Instruments that name at most `tools` tools.
    pub(super) fn new(meter: &Meter, prefix: &str, tools: usize) -> Self {
        let histogram = |of: &names::Instrument, bounds: &[f64]| {
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
            tools: Tools::new(tools),
            unknown: Ends::default(),
        }
    }

    /// Calls that run or wait now.
    pub(super) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    fn labels(&self, target: &Target, entry: &Entry) -> Option<Arc<Labels>> {
        matches!(target, Target::Tool(_)).then(|| self.tools.get(&entry.name))
    }
}

impl Observer for Metrics {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        self.active.fetch_add(1, Ordering::Relaxed);
        let method = method_for(&call.target);
        let labels = self.labels(&call.target, entry);
        Box::new(Measured { metrics: self, labels, method, is_piped: call.origin.is_none() })
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        if let Target::Tool(_) = call.target {
            let status = Status::Refused(error.code());
            let bind = || self.invocations.bind(&[KeyValue::new(names::STATUS, status.name())]);
            self.unknown.get(status, bind).add(1);
        }
    }
}

struct Measured<'a> {
    metrics: &'a Metrics,
    /// Of a tool; what else can be called has no name in metrics, for its names are not bounded by anybody.
    labels: Option<Arc<Labels>>,
    method: &'static str,
    is_piped: bool,
}

impl Observation for Measured<'_> {
    fn end(self: Box<Self>, ended: Ended<'_>) {
        let Self { metrics, labels, method, is_piped } = *self;
        metrics.active.fetch_sub(1, Ordering::Relaxed);
        let status = Status::of(ended.verdict());
        let transport = if is_piped { "pipe" } else { "tcp" };
        let of_request = || {
            let mut set = operation(method, labels.as_deref(), status);
            set.push(KeyValue::new(names::TRANSPORT, transport));
            set
        };
        let seconds = ended.took.as_secs_f64();
        let Some(labels) = &labels else { return metrics.server_duration.record(seconds, &of_request()) };
        let (invocations, duration) = labels.of_invocations.get(status, || {
            let set = [
                KeyValue::new(names::TOOL, labels.tool.clone()),
                KeyValue::new(names::STATUS, status.name()),
            ];
            (metrics.invocations.bind(&set), metrics.invoke_duration.bind(&set))
        });
        invocations.add(1);
        duration.record(milliseconds(ended.took));
        let bind = || metrics.server_duration.bind(&of_request());
        labels.of_requests[usize::from(is_piped)].get(status, bind).record(seconds);
    }
}

impl Observer for Legs {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        let method = method_for(&call.target);
        Box::new(MeasuredLeg { metrics: &self.0, labels: self.0.labels(&call.target, entry), method })
    }
}

struct MeasuredLeg<'a> {
    metrics: &'a Metrics,
    labels: Option<Arc<Labels>>,
    method: &'static str,
}

impl Observation for MeasuredLeg<'_> {
    fn end(self: Box<Self>, ended: Ended<'_>) {
        let status = Status::of(ended.verdict());
        let set = || operation(self.method, self.labels.as_deref(), status);
        let (duration, seconds) = (&self.metrics.client_duration, ended.took.as_secs_f64());
        match &self.labels {
            Some(labels) => labels.of_legs.get(status, || duration.bind(&set())).record(seconds),
            None => duration.record(seconds, &set()),
        }
    }
}

/// The attributes that the conventions give an operation of MCP.
fn operation(method: &'static str, labels: Option<&Labels>, status: Status) -> Vec<KeyValue> {
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
