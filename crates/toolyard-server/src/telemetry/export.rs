//! Sends spans and metrics to a collector, off the way of calls. Whatever happens there, calls go on.

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
use toolyard_manifest::Process;

use super::collector;
use super::losses::Losses;
use super::settings::{Collector, Error};
use super::spans::Queue;

/// Spans in one request, at most: what the specification of OpenTelemetry has.
const BATCH: usize = 512;

/// How long spans wait for others to go with them.
const TOGETHER: Duration = Duration::from_secs(1);

/// How often it is looked meanwhile whether enough have come: far fewer do in this time than the queue has room for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long the log is silent about a collector that is not there after it has said so.
const SILENCE: Duration = Duration::from_secs(60);

/// What a collector adds to the telemetry of a gateway.
pub(super) struct Parts {
    pub(super) meters: MeterProviderBuilder,
    pub(super) tracers: SdkTracerProvider,
    pub(super) exporting: Exporting,
}

/// The tasks that send. They end when this is dropped.
pub(super) struct Exporting {
    stopping: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    /// How long the end may take.
    time: Duration,
}

/// Begins to send.
pub(super) fn start(
    collector: &Collector,
    process: &Process,
    resource: &Resource,
    meters: MeterProviderBuilder,
    losses: &Arc<Losses>,
) -> Result<Parts, Error> {
    let time = process.timeouts.export;
    let mut span_exporter = collector::span_exporter(collector, time)?;
    span_exporter.set_resource(resource);
    let metric_exporter = collector::metric_exporter(collector, time)?;

    let (queue, spans) = Queue::new(process.limits.queued_spans, losses.clone());
    let mut tracers = SdkTracerProvider::builder().with_resource(resource.clone()).with_span_processor(queue);
    if let Some(share) = process.telemetry.sample {
        // A client that keeps its trace wants all of it.
        tracers = tracers.with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share))));
    }
    let reader = Pushed(Arc::new(ManualReader::builder().build()));

    let (stopping, stopping_now) = watch::channel(false);
    let report = Arc::new(Report { losses: losses.clone(), ..Report::default() });
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
    let exporting = Exporting { stopping, tasks: Mutex::new(tasks), time };
    Ok(Parts { meters: meters.with_reader(reader), tracers: tracers.build(), exporting })
}

impl Exporting {
    /// Sends what is left.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        let mut tasks = self.tasks.lock().await;
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(self.time, all).await.is_err() {
            tracing::warn!("the collector did not take the last telemetry in time");
        }
    }
}

async fn send_spans(
    mut spans: Receiver<SpanData>,
    exporter: SpanExporter,
    time: Duration,
    report: Arc<Report>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let is_last = tokio::select! {
            received = spans.recv_many(&mut batch, BATCH) => received == 0,
            () = stopped(&mut stopping) => true,
        };
        if !is_last {
            tokio::select! {
                () = enough(&spans, batch.len()) => {}
                () = stopped(&mut stopping) => {}
            }
        }
        while batch.len() < BATCH {
            let Ok(span) = spans.try_recv() else { break };
            batch.push(span);
        }
        if batch.is_empty() && is_last {
            return;
        }
        let number = batch.len();
        let sent =
            in_time(time, exporter.export(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)))).await;
        if sent.is_err() {
            report.losses.lose_spans(number);
        }
        report.say(sent.err());
    }
}

/// Waits until as many spans are there as are sent together, `taken` of them already, but not for long. It looks now and then and
/// is not told: to wake another thread would cost a call more than all else that it does for its span.
async fn enough<S>(spans: &Receiver<S>, taken: usize) {
    let until = Instant::now() + TOGETHER;
    while taken + spans.len() < BATCH && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
}

async fn send_metrics(
    reader: Pushed,
    exporter: MetricExporter,
    interval: Duration,
    time: Duration,
    report: Arc<Report>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            () = stopped(&mut stopping) => true,
        };
        let mut metrics = ResourceMetrics::default();
        let sent = match reader.collect(&mut metrics) {
            Ok(()) => in_time(time, exporter.export(&metrics)).await,
            Err(error) => Err(error),
        };
        if sent.is_err() {
            report.losses.lose_metrics();
        }
        report.say(sent.err());
        if is_last {
            return;
        }
    }
}

async fn in_time(time: Duration, sending: impl Future<Output = OTelSdkResult>) -> OTelSdkResult {
    timeout(time, sending).await.unwrap_or(Err(OTelSdkError::Timeout(time)))
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone can say nothing any more, which means stop as well.
    let _gone = stopping.wait_for(|stopping| *stopping).await;
}

/// Says in the log that telemetry is lost, once in a while.
#[derive(Default)]
struct Report {
    losses: Arc<Losses>,
    /// When it was said last, and how much was lost by then.
    said: std::sync::Mutex<Option<(Instant, u64)>>,
}

impl Report {
    fn say(&self, error: Option<OTelSdkError>) {
        let lost = self.losses.all();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_silent, before) =
            said.map_or((false, 0), |(when, before)| (when.elapsed() < SILENCE, before));
        if is_silent || lost == before {
            return;
        }
        *said = Some((Instant::now(), lost));
        let error =
            error.map_or_else(|| "more spans than the collector takes".to_owned(), |error| error.to_string());
        tracing::warn!(lost, error, "telemetry is lost");
    }
}

/// A reader that two own: what the metrics belong to, and the task that sends them.
#[derive(Debug, Clone)]
struct Pushed(Arc<ManualReader>);

impl MetricReader for Pushed {
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
    async fn spans_wait_for_others_but_not_once_there_are_enough() {
        let check = async |taken: usize, waiting: usize, wait: Duration| {
            let (sender, spans) = mpsc::channel(BATCH);
            for _ in 0..waiting {
                sender.try_send(()).unwrap();
            }
            let begun = Instant::now();
            enough(&spans, taken).await;
            assert_eq!(begun.elapsed(), wait, "{taken} taken, {waiting} waiting");
        };
        check(1, 0, TOGETHER).await;
        check(1, BATCH - 2, TOGETHER).await;
        check(1, BATCH - 1, Duration::ZERO).await;
        check(BATCH, 0, Duration::ZERO).await;
    }

    #[tokio::test(start_paused = true)]
    async fn spans_that_come_while_others_wait_are_noticed() {
        let (sender, spans) = mpsc::channel(BATCH);
        let come = async {
            sleep(5 * LOOK_EVERY).await;
            (0..BATCH).for_each(|_| sender.try_send(()).unwrap());
        };
        let begun = Instant::now();
        tokio::join!(enough(&spans, 1), come);
        assert!(begun.elapsed() <= 6 * LOOK_EVERY, "{:?}", begun.elapsed());
    }
}
