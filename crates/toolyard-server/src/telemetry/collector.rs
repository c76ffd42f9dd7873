//! Exporters to a collector: over gRPC by tonic, over HTTP by the gateway's own client.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use opentelemetry_http::{HttpClient as OtelHttpClient, HttpError};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use tonic::metadata::MetadataMap;
use toolyard_manifest::OtlpProtocol;
use toolyard_net::body;
use toolyard_net::client::HttpClient;

use super::settings::{CollectorSettings, TelemetryError};

/// Maximum bytes of a response, which has little more than a status.
const ANSWER_BYTES: usize = 64 * 1024;

pub(super) fn span_exporter(
    collector: &CollectorSettings,
    time: Duration,
) -> Result<SpanExporter, TelemetryError> {
    let exporter_result = match collector.protocol {
        OtlpProtocol::Grpc => {
            let exporter = SpanExporter::builder().with_tonic().with_endpoint(&collector.endpoint);
            grpc(exporter.with_timeout(time), collector).build()
        }
        OtlpProtocol::Http => {
            let exporter = SpanExporter::builder()
                .with_http()
                .with_endpoint(url(collector, "traces"))
                .with_protocol(Protocol::HttpBinary);
            http(exporter.with_timeout(time), collector)?.build()
        }
    };
    exporter_result.map_err(|error| TelemetryError::Exporter(error.into()))
}

pub(super) fn metric_exporter(
    collector: &CollectorSettings,
    time: Duration,
) -> Result<MetricExporter, TelemetryError> {
    let exporter_result = match collector.protocol {
        OtlpProtocol::Grpc => {
            let exporter = MetricExporter::builder().with_tonic().with_endpoint(&collector.endpoint);
            grpc(exporter.with_timeout(time), collector).build()
        }
        OtlpProtocol::Http => {
            let exporter = MetricExporter::builder()
                .with_http()
                .with_endpoint(url(collector, "metrics"))
                .with_protocol(Protocol::HttpBinary);
            http(exporter.with_timeout(time), collector)?.build()
        }
    };
    exporter_result.map_err(|error| TelemetryError::Exporter(error.into()))
}

fn grpc<E: WithTonicConfig>(exporter: E, collector: &CollectorSettings) -> E {
    let headers = headers(collector);
    let add_headers = move |mut request: tonic::Request<()>| {
        let mut all_headers = std::mem::take(request.metadata_mut()).into_headers();
        replace(&mut all_headers, &headers);
        *request.metadata_mut() = MetadataMap::from_headers(all_headers);
        Ok(request)
    };
    let exporter = exporter.with_interceptor(add_headers);
    match collector.is_tls() {
        true => exporter.with_tls_config(ClientTlsConfig::new().with_native_roots()),
        false => exporter,
    }
}

fn http<E: WithHttpConfig>(exporter: E, collector: &CollectorSettings) -> Result<E, TelemetryError> {
    let client = match collector.is_tls() {
        true => HttpClient::with_system_roots(),
        false => HttpClient::without_roots(),
    };
    let client = client.map_err(|error| TelemetryError::Exporter(error.into()))?;
    Ok(exporter.with_http_client(OtlpHttpClient { client, headers: headers(collector) }))
}

fn url(collector: &CollectorSettings, signal: &str) -> String {
    format!("{}/v1/{signal}", collector.endpoint.trim_end_matches('/'))
}

/// Headers of the manifest for each request.
fn headers(collector: &CollectorSettings) -> HeaderMap {
    crate::build::headers(&collector.headers)
}

/// Replaces headers of the same name, so that the manifest takes precedence over the environment.
fn replace(all_headers: &mut HeaderMap, headers: &HeaderMap) {
    for (name, value) in headers {
        all_headers.insert(name.clone(), value.clone());
    }
}

/// Sends the exporters' requests over HTTP.
#[derive(Debug)]
struct OtlpHttpClient {
    client: HttpClient,
    headers: HeaderMap,
}

impl OtelHttpClient for OtlpHttpClient {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let mut request = request.map(Full::new);
            replace(request.headers_mut(), &self.headers);
            let (head, answer) = self.client.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body::read(answer, ANSWER_BYTES).await?))
        })
    }
}
