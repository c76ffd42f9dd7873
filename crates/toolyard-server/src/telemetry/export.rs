//! Exports spans and metrics to a collector, outside the path of calls, which continue whatever happens here.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, MeterProviderBuilder, Pipeline, Temporality};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter as _};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use toolyard_manifest::ProcessSettings;

use super::collector;
use super::losses::TelemetryLosses;
use super::settings::{CollectorSettings, TelemetryError};
use super::spans::SpanQueue;

/// Maximum number of spans in a request: the default of the OpenTelemetry specification.
const BATCH_SIZE: usize = 512;

/// Maximum delay of spans that wait for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Interval of checks for a full batch. In this time far fewer spans arrive than the queue can hold.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Minimum time between two log lines about an unavailable collector.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The parts of telemetry that a collector adds.
pub(super) struct ExportParts {
    pub(super) meters: MeterProviderBuilder,
    pub(super) tracers: SdkTracerProvider,
    pub(super) export_tasks: ExportTasks,
}

/// The export tasks. Dropping them stops the export.
pub(super) struct ExportTasks {
    stopping: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    /// Maximum time of the shutdown.
    time: Duration,
}

/// Starts the export.
pub(super) fn start(
    collector: &CollectorSettings,
    process: &ProcessSettings,
    resource: &Resource,
    meters: MeterProviderBuilder,
    losses: &Arc<TelemetryLosses>,
) -> Result<ExportParts, TelemetryError> {
    let time = process.timeouts.export;
    let mut span_exporter = collector::span_exporter(collector, time)?;
    span_exporter.set_resource(resource);
    let metric_exporter = collector::metric_exporter(collector, time)?;

    let (queue, spans) = SpanQueue::new(process.limits.queued_spans, losses.clone());
    let mut tracers = SdkTracerProvider::builder().with_resource(resource.clone()).with_span_processor(queue);
    if let Some(share) = process.telemetry.sample {
        // A client that samples its trace gets all of it.
        tracers = tracers.with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share))));
    }
    let reader = SharedReader(Arc::new(ManualReader::builder().build()));

    let (stopping, stopping_now) = watch::channel(false);
    let report = Arc::new(LossReporter { losses: losses.clone(), ..LossReporter::default() });
    let mut tasks = JoinSet::new();
    tasks.spawn(send_spans(spans, span_exporter, time, report.clone(), stopping_now.clone()));
    tasks.spawn(send_metrics(
        reader.clone(),
        metric_exporter,
        collector.interval,
        time,
        report,
        stopping_now,
    ));
    let export_tasks = ExportTasks { stopping, tasks: Mutex::new(tasks), time };
    Ok(ExportParts { meters: meters.with_reader(reader), tracers: tracers.build(), export_tasks })
}

impl ExportTasks {
    /// Exports what is left.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        let mut tasks = self.tasks.lock().await;
        let total = async { while tasks.join_next().await.is_some() {} };
        if timeout(self.time, total).await.is_err() {
            tracing::warn!("the collector did not take the last telemetry in time");
        }
    }
}

async fn send_spans(
    mut spans: Receiver<SpanData>,
    exporter: SpanExporter,
    time: Duration,
    report: Arc<LossReporter>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut batch = Vec::with_capacity(BATCH_SIZE);
    loop {
        let is_last = tokio::select! {
            received = spans.recv_many(&mut batch, BATCH_SIZE) => received == 0,
            () = until_stopped(&mut stopping) => true,
        };
        if !is_last {
            tokio::select! {
                () = wait_for_batch(&spans, batch.len()) => {}
                () = until_stopped(&mut stopping) => {}
            }
        }
        while batch.len() < BATCH_SIZE {
            let Ok(span) = spans.try_recv() else { break };
            batch.push(span);
        }
        if batch.is_empty() && is_last {
            return;
        }
        let count = batch.len();
        let outcome = with_timeout(
            time,
            exporter.export(std::mem::replace(&mut batch, Vec::with_capacity(BATCH_SIZE))),
        )
        .await;
        if outcome.is_err() {
            report.losses.lose_spans(count);
        }
        report.report_loss(outcome.err());
    }
}

/// Waits until a batch is full, with `batched` spans in it already, or the delay is over. It polls, because waking
/// another thread would cost a call more than everything else that it does for its span.
async fn wait_for_batch<S>(spans: &Receiver<S>, batched: usize) {
    let until = Instant::now() + BATCH_DELAY;
    while batched + spans.len() < BATCH_SIZE && Instant::now() < until {
        sleep(POLL_INTERVAL).await;
    }
}

async fn send_metrics(
    reader: SharedReader,
    exporter: MetricExporter,
    interval: Duration,
    time: Duration,
    report: Arc<LossReporter>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            () = until_stopped(&mut stopping) => true,
        };
        let mut metrics = ResourceMetrics::default();
        let outcome = match reader.collect(&mut metrics) {
            Ok(()) => with_timeout(time, exporter.export(&metrics)).await,
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            report.losses.lose_metrics();
        }
        report.report_loss(outcome.err());
        if is_last {
            return;
        }
    }
}

async fn with_timeout(time: Duration, sending: impl Future<Output = OTelSdkResult>) -> OTelSdkResult {
    timeout(time, sending).await.unwrap_or(Err(OTelSdkError::Timeout(time)))
}

async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

/// Logs losses of telemetry at a limited rate.
#[derive(Default)]
struct LossReporter {
    losses: Arc<TelemetryLosses>,
    /// Time of the last report, and the losses by then.
    last_report: std::sync::Mutex<Option<(Instant, u64)>>,
}

impl LossReporter {
    fn report_loss(&self, error: Option<OTelSdkError>) {
        let lost = self.losses.total();
        let mut last_report = self.last_report.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_silent, before) =
            last_report.map_or((false, 0), |(when, before)| (when.elapsed() < REPORT_INTERVAL, before));
        if is_silent || lost == before {
            return;
        }
        *last_report = Some((Instant::now(), lost));
        let error = error
            .map_or_else(|| "more spans than the collector accepts".to_owned(), |error| error.to_string());
        tracing::warn!(lost, error, "dropped telemetry");
    }
}

/// A reader shared by the meter provider and the export task.
#[derive(Debug, Clone)]
struct SharedReader(Arc<ManualReader>);

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: std::sync::Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn spans_wait_until_a_batch_is_full() {
        let check = async |batched: usize, waiting: usize, wait: Duration| {
            let (sender, spans) = mpsc::channel(BATCH_SIZE);
            for _ in 0..waiting {
                sender.try_send(()).unwrap();
            }
            let start = Instant::now();
            wait_for_batch(&spans, batched).await;
            assert_eq!(start.elapsed(), wait, "{batched} taken, {waiting} waiting");
        };
        check(1, 0, BATCH_DELAY).await;
        check(1, BATCH_SIZE - 2, BATCH_DELAY).await;
        check(1, BATCH_SIZE - 1, Duration::ZERO).await;
        check(BATCH_SIZE, 0, Duration::ZERO).await;
    }

    #[tokio::test(start_paused = true)]
    async fn full_batch_ends_the_wait() {
        let (sender, spans) = mpsc::channel(BATCH_SIZE);
        let arrivals = async {
            sleep(5 * POLL_INTERVAL).await;
            (0..BATCH_SIZE).for_each(|_| sender.try_send(()).unwrap());
        };
        let start = Instant::now();
        tokio::join!(wait_for_batch(&spans, 1), arrivals);
        assert!(start.elapsed() <= 6 * POLL_INTERVAL, "{:?}", start.elapsed());
    }
}
