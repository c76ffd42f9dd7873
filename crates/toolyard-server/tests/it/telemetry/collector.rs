//! An OTLP collector over gRPC and over HTTP, with the services of the official definitions.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::HeaderMap;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// The telemetry that a collector has received.
#[derive(Debug, Default)]
pub(crate) struct CollectedTelemetry {
    pub(crate) spans: Vec<Span>,
    /// The attributes of the resources of the telemetry.
    pub(crate) resources: Vec<Vec<KeyValue>>,
    /// The names of metrics.
    pub(crate) metrics: Vec<String>,
    /// The header `x-key` of each request.
    pub(crate) keys: Vec<String>,
}

/// A collector that accepts everything until it is dropped.
pub(crate) struct OtlpCollector {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<CollectedTelemetry>,
    _serving: JoinSet<()>,
}

#[derive(Clone)]
struct OtlpReceiver(watch::Sender<CollectedTelemetry>);

impl OtlpCollector {
    pub(crate) async fn over_grpc() -> Self {
        Self::start(|listener, taker| async move {
            tonic::transport::Server::builder()
                .add_service(TraceServiceServer::new(taker.clone()))
                .add_service(MetricsServiceServer::new(taker))
                .serve_with_incoming(TcpIncoming::from(listener))
                .await
                .unwrap();
        })
        .await
    }

    pub(crate) async fn over_http() -> Self {
        Self::start(|listener, taker| async move {
            let routes = Router::new()
                .route("/v1/traces", post(traces))
                .route("/v1/metrics", post(metrics))
                .with_state(taker);
            axum::serve(listener, routes).await.unwrap();
        })
        .await
    }

    async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(TcpListener, OtlpReceiver) -> F,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = watch::channel(CollectedTelemetry::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, OtlpReceiver(sender)));
        Self { address, seen, _serving: serving }
    }

    /// Waits until `is_enough` holds, and returns the result of `read`.
    pub(crate) async fn saw<T>(
        &self,
        is_enough: impl Fn(&CollectedTelemetry) -> bool,
        read: impl FnOnce(&CollectedTelemetry) -> T,
    ) -> T {
        let mut seen = self.seen.clone();
        let seen = seen.wait_for(|seen| is_enough(seen)).await.unwrap();
        read(&seen)
    }
}

impl OtlpReceiver {
    fn take_traces(&self, key: Option<&str>, request: ExportTraceServiceRequest) {
        self.0.send_modify(|seen| {
            seen.keys.extend(key.map(str::to_owned));
            for of_resource in request.resource_spans {
                seen.resources.push(of_resource.resource.unwrap_or_default().attributes);
                seen.spans.extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        });
    }

    fn take_metrics(&self, key: Option<&str>, request: ExportMetricsServiceRequest) {
        self.0.send_modify(|seen| {
            seen.keys.extend(key.map(str::to_owned));
            let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
            seen.metrics.extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
        });
    }
}

#[tonic::async_trait]
impl TraceService for OtlpReceiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let key = request.metadata().get("x-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        self.take_traces(key.as_deref(), request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for OtlpReceiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let key = request.metadata().get("x-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        self.take_metrics(key.as_deref(), request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

async fn traces(State(taker): State<OtlpReceiver>, headers: HeaderMap, body: Bytes) -> Vec<u8> {
    taker.take_traces(key(&headers), ExportTraceServiceRequest::decode(body).unwrap());
    ExportTraceServiceResponse::default().encode_to_vec()
}

async fn metrics(State(taker): State<OtlpReceiver>, headers: HeaderMap, body: Bytes) -> Vec<u8> {
    taker.take_metrics(key(&headers), ExportMetricsServiceRequest::decode(body).unwrap());
    ExportMetricsServiceResponse::default().encode_to_vec()
}

fn key(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-key")?.to_str().ok()
}

/// The text of an attribute.
pub(crate) fn attribute<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    let attribute = attributes.iter().find(|attribute| attribute.key == name)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}
