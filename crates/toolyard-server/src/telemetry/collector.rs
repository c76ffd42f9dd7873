//! A collector as the exporters see it: over gRPC by their own means, over HTTP by ours.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use tonic::metadata::MetadataMap;
use toolyard_manifest::OtlpProtocol;
use toolyard_net::body;
use toolyard_net::client::Client;

use super::settings::{Collector, Error};

/// Bytes of the largest answer that is read: it says little more than that all is well.
const ANSWER_BYTES: usize = 64 * 1024;

pub(super) fn span_exporter(collector: &Collector, time: Duration) -> Result<SpanExporter, Error> {
    let built = match collector.protocol {
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
    built.map_err(|error| Error::Exporter(error.into()))
}

pub(super) fn metric_exporter(collector: &Collector, time: Duration) -> Result<MetricExporter, Error> {
    let built = match collector.protocol {
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
    built.map_err(|error| Error::Exporter(error.into()))
}

fn grpc<E: WithTonicConfig>(exporter: E, collector: &Collector) -> E {
    let headers = headers(collector);
    let carry = move |mut request: tonic::Request<()>| {
        let mut whole = std::mem::take(request.metadata_mut()).into_headers();
        replace(&mut whole, &headers);
        *request.metadata_mut() = MetadataMap::from_headers(whole);
        Ok(request)
    };
    let exporter = exporter.with_interceptor(carry);
    match collector.is_tls() {
        true => exporter.with_tls_config(ClientTlsConfig::new().with_native_roots()),
        false => exporter,
    }
}

fn http<E: WithHttpConfig>(exporter: E, collector: &Collector) -> Result<E, Error> {
    let client = match collector.is_tls() {
        true => Client::with_system_roots(),
        false => Client::without_roots(),
    };
    let client = client.map_err(|error| Error::Exporter(error.into()))?;
    Ok(exporter.with_http_client(Sender { client, headers: headers(collector) }))
}

fn url(collector: &Collector, signal: &str) -> String {
    format!("{}/v1/{signal}", collector.endpoint.trim_end_matches('/'))
}

/// What the manifest has each request carry.
fn headers(collector: &Collector) -> HeaderMap {
    crate::build::headers(&collector.headers)
}

/// Puts headers in the place of those of the same name: what the manifest says counts before what the environment does.
fn replace(whole: &mut HeaderMap, headers: &HeaderMap) {
    for (name, value) in headers {
        whole.insert(name.clone(), value.clone());
    }
}

/// Sends requests of the exporters over HTTP.
#[derive(Debug)]
struct Sender {
    client: Client,
    headers: HeaderMap,
}

impl HttpClient for Sender {
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
