//! Calls, errors, latency and memory of the last hours, one point a minute, so that a look at a gateway needs no
//! Prometheus.
//!
//! A point is the difference between two readings of the metrics. So it costs calls nothing, and its percentiles are as
//! exact as the buckets of the histogram.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus::Registry as MetricRegistry;
use prometheus::proto::Metric;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use toolyard_core::Registry;
use toolyard_process::ProcessTable;

use super::names;

/// Maximum number of points: six hours.
pub(crate) const MAX_POINTS: usize = 360;

/// Time between two points.
const STEP: Duration = Duration::from_secs(60);

/// Name of the histogram for Prometheus, after the prefix.
const HISTOGRAM: &str = "tool_invoke_duration_milliseconds";

/// The points of the last hours.
pub(crate) struct MetricsHistory {
    metrics: MetricRegistry,
    registry: watch::Receiver<Arc<Registry>>,
    processes: ProcessTable,
    recent: Mutex<RecentPoints>,
}

/// The points, and the reading at the latest of them.
#[derive(Default)]
struct RecentPoints {
    points: VecDeque<HistoryPoint>,
    reading: CallReading,
}

/// A reading of the metrics: totals by handler.
type CallReading = HashMap<Arc<str>, CallTotals>;

/// Totals of calls.
#[derive(Debug, Clone, Default, PartialEq)]
struct CallTotals {
    errors: u64,
    /// Upper bound and cumulative number of calls of each bucket of durations in milliseconds, the last of which has all
    /// calls.
    buckets: Vec<(f64, u64)>,
}

/// A minute.
#[derive(Debug, Clone)]
struct HistoryPoint {
    time: SystemTime,
    all: PointCalls,
    /// The handlers that were called.
    handlers: Vec<(Arc<str>, PointCalls)>,
    memory: Option<u64>,
    program_memory: u64,
}

/// The calls of a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PointCalls {
    calls: u64,
    errors: u64,
    /// Percentiles 50, 95 and 99 of the duration in milliseconds. `None` without calls.
    latency: Option<[f64; 3]>,
}

/// The points as arrays of equal length.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetricsSeries {
    /// Seconds between two points.
    step: u64,
    /// Seconds since 1970.
    times: Vec<u64>,
    calls: Vec<u64>,
    errors: Vec<u64>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    /// Memory of the gateway, in bytes.
    memory: Vec<Option<u64>>,
    /// Memory of the programs of handlers, in bytes.
    program_memory: Vec<u64>,
    handlers: BTreeMap<Arc<str>, HandlerSeries>,
}

/// The points of a handler.
#[derive(Debug, Default, Serialize)]
struct HandlerSeries {
    calls: Vec<u64>,
    errors: Vec<u64>,
    p95: Vec<Option<f64>>,
}

impl MetricsHistory {
    pub(super) fn new(
        metrics: MetricRegistry,
        registry: watch::Receiver<Arc<Registry>>,
        processes: ProcessTable,
    ) -> Self {
        Self { metrics, registry, processes, recent: Mutex::default() }
    }

    /// Adds a point each minute for as long as the future is polled.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut minutes = interval(STEP);
        minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        minutes.tick().await;
        loop {
            minutes.tick().await;
            let history = self.clone();
            // A panic there loses one point.
            let _panicked = spawn_blocking(move || history.add_point()).await;
        }
    }

    /// Returns the last minutes, `points` at most, with the running minute. Reads files of the system.
    pub(crate) fn series(&self, points: usize) -> MetricsSeries {
        let reading = self.read();
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let running = self.point(&recent.reading, &reading);
        let skipped = (recent.points.len() + 1).saturating_sub(points);
        MetricsSeries::of(recent.points.iter().chain([&running]).skip(skipped))
    }

    fn add_point(&self) {
        let reading = self.read();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let point = self.point(&recent.reading, &reading);
        recent.reading = reading;
        if recent.points.len() + 1 >= MAX_POINTS {
            recent.points.pop_front();
        }
        recent.points.push_back(point);
    }

    fn point(&self, before: &CallReading, now: &CallReading) -> HistoryPoint {
        let difference = |(handler, totals): (&Arc<str>, &CallTotals)| {
            let totals = totals.since(before.get(handler));
            (totals.calls() > 0).then(|| (handler.clone(), totals))
        };
        let of_handlers: Vec<_> = now.iter().filter_map(difference).collect();
        let mut all = CallTotals::default();
        of_handlers.iter().for_each(|(_, totals)| all.add(totals));
        let handlers = of_handlers.iter().map(|(handler, totals)| (handler.clone(), totals.summary()));
        HistoryPoint {
            time: SystemTime::now(),
            all: all.summary(),
            handlers: handlers.collect(),
            memory: own_memory(),
            program_memory: self.processes.list().iter().filter_map(|process| process.memory_bytes).sum(),
        }
    }

    /// Reads the metrics. Tools that no handler offers any more, and those beyond `limits.metricLabels`, count for a
    /// handler without a name.
    fn read(&self) -> CallReading {
        let registry = self.registry.borrow().clone();
        let mut reading = CallReading::new();
        let families = self.metrics.gather();
        let histogram = families.iter().filter(|family| family.name().ends_with(HISTOGRAM));
        for metric in histogram.flat_map(|family| family.get_metric()) {
            let tool = label(metric, names::TOOL).unwrap_or_default();
            let handler = registry.tool(tool).map_or_else(|_| "".into(), |entry| entry.handler.name.clone());
            reading.entry(handler).or_default().add(&CallTotals::of(metric));
        }
        reading
    }
}

fn label<'a>(metric: &'a Metric, name: &str) -> Option<&'a str> {
    metric.get_label().iter().find(|label| label.name() == name).map(|label| label.value())
}

/// Returns the resident memory of this process in bytes.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

impl CallTotals {
    fn of(metric: &Metric) -> Self {
        let histogram = metric.get_histogram();
        let buckets = histogram.get_bucket().iter();
        let buckets = buckets.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()));
        let buckets: Vec<_> = buckets.filter(|(bound, _)| bound.is_finite()).collect();
        let all = (f64::INFINITY, histogram.get_sample_count());
        let is_error = label(metric, names::STATUS).is_some_and(|status| status != names::OK);
        let errors = if is_error { all.1 } else { 0 };
        Self { errors, buckets: buckets.into_iter().chain([all]).collect() }
    }

    fn calls(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, calls)| *calls)
    }

    fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        // All histograms of the instrument have the same bounds.
        for ((_, sum), (_, calls)) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += calls;
        }
    }

    /// Returns the difference to an earlier reading. A handler whose tools have left the registry has fewer calls than
    /// before, which count as none.
    fn since(&self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self.clone() };
        let errors = self.errors.saturating_sub(before.errors);
        let buckets = self.buckets.iter().zip(&before.buckets);
        let buckets = buckets.map(|((bound, now), (_, then))| (*bound, now.saturating_sub(*then))).collect();
        Self { errors, buckets }
    }

    fn summary(&self) -> PointCalls {
        let calls = self.calls();
        let latency = (calls > 0).then(|| [0.5, 0.95, 0.99].map(|share| self.percentile(share)));
        PointCalls { calls, errors: self.errors, latency }
    }

    /// Returns a percentile of the duration in milliseconds, interpolated within its bucket as Prometheus does. Beyond
    /// the last bound it is that bound.
    fn percentile(&self, share: f64) -> f64 {
        let rank = share * self.calls() as f64;
        let mut lower = (0.0, 0);
        for (bound, calls) in &self.buckets {
            if *calls as f64 >= rank {
                let in_bucket = (calls - lower.1).max(1) as f64;
                let part = (rank - lower.1 as f64) / in_bucket;
                return if bound.is_finite() { lower.0 + (bound - lower.0) * part } else { lower.0 };
            }
            lower = (*bound, *calls);
        }
        lower.0
    }
}

impl MetricsSeries {
    fn of<'a>(points: impl Iterator<Item = &'a HistoryPoint>) -> Self {
        let mut series = Self { step: STEP.as_secs(), ..Self::default() };
        for (number, point) in points.enumerate() {
            let since = point.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let percentile = |which: usize| point.all.latency.map(|latency| rounded(latency[which]));
            series.times.push(since.as_secs());
            series.calls.push(point.all.calls);
            series.errors.push(point.all.errors);
            series.p50.push(percentile(0));
            series.p95.push(percentile(1));
            series.p99.push(percentile(2));
            series.memory.push(point.memory);
            series.program_memory.push(point.program_memory);
            for (handler, calls) in &point.handlers {
                series.handlers.entry(handler.clone()).or_default().set(number, calls);
            }
        }
        let length = series.times.len();
        series.handlers.values_mut().for_each(|handler| handler.extend_to(length));
        series
    }
}

impl HandlerSeries {
    fn set(&mut self, number: usize, point: &PointCalls) {
        self.extend_to(number);
        self.calls.push(point.calls);
        self.errors.push(point.errors);
        self.p95.push(point.latency.map(|latency| rounded(latency[1])));
    }

    fn extend_to(&mut self, length: usize) {
        self.calls.resize(length, 0);
        self.errors.resize(length, 0);
        self.p95.resize(length, None);
    }
}

/// Rounds milliseconds to microseconds.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(errors: u64, cumulative: [u64; 3]) -> CallTotals {
        let bounds = [10.0, 100.0, f64::INFINITY];
        CallTotals { errors, buckets: bounds.into_iter().zip(cumulative).collect() }
    }

    #[test]
    fn percentile_lies_within_its_bucket() {
        let check = |cumulative, expected: [f64; 3]| {
            assert_eq!(totals(0, cumulative).summary().latency, Some(expected), "{cumulative:?}");
        };
        check([100, 100, 100], [5.0, 9.5, 9.9]);
        check([0, 100, 100], [55.0, 95.5, 99.1]);
        check([50, 100, 100], [10.0, 91.0, 98.2]);
        // Slower calls than the last bound.
        check([0, 0, 10], [100.0, 100.0, 100.0]);
        assert_eq!(totals(0, [0, 0, 0]).summary(), PointCalls::default());
    }

    #[test]
    fn point_is_the_difference_of_two_readings() {
        let point = totals(3, [4, 8, 9]).since(Some(&totals(1, [4, 6, 6]))).summary();
        assert_eq!((point.calls, point.errors), (3, 2));
        // The tools of a handler have left the registry.
        let point = totals(0, [1, 1, 1]).since(Some(&totals(1, [4, 6, 6]))).summary();
        assert_eq!(point, PointCalls::default());
    }

    #[test]
    fn arrays_have_equal_lengths() {
        let calls = |calls| PointCalls { calls, errors: 1, latency: Some([1.0, 2.0, 3.0]) };
        let point = |handlers: &[(&str, u64)]| HistoryPoint {
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(60),
            all: calls(7),
            handlers: handlers.iter().map(|(name, number)| ((*name).into(), calls(*number))).collect(),
            memory: Some(5),
            program_memory: 6,
        };
        let points = [point(&[]), point(&[("a", 1)]), point(&[("b", 2)]), point(&[])];
        let series = serde_json::to_value(MetricsSeries::of(points.iter())).expect("JSON");
        assert_eq!(
            series["handlers"],
            serde_json::json!({
                "a": {"calls": [0, 1, 0, 0], "errors": [0, 1, 0, 0], "p95": [null, 2.0, null, null]},
                "b": {"calls": [0, 0, 2, 0], "errors": [0, 0, 1, 0], "p95": [null, null, 2.0, null]},
            })
        );
        assert_eq!(series["p99"], serde_json::json!([3.0, 3.0, 3.0, 3.0]));
        assert_eq!(series["times"], serde_json::json!([60, 60, 60, 60]));
    }
}
