//! Health, readiness and metrics of the operator.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::{ControllerError, OperatorMetrics};
use crate::connections::{self, ConnectionLimits};

/// Limits of connections: of probes and of collectors of metrics.
const LIMITS: ConnectionLimits = ConnectionLimits { connections: 32, time: Duration::from_secs(30) };

/// Time limit of the head of a request.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// Binds the address of the listener.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, ControllerError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| ControllerError::Object(format!("cannot listen on {address}: {error}")))
}

/// Serves `/health`, `/ready` and `/metrics` until the future is dropped.
pub async fn serve(listener: TcpListener, metrics: Arc<OperatorMetrics>) {
    connections::accept(listener, LIMITS, |stream, last| {
        let metrics = metrics.clone();
        async move {
            let service = service_fn(move |request: Request<Incoming>| {
                last.record();
                let response = response(request.uri().path(), &metrics);
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIME)
                .serve_connection(TokioIo::new(stream), service);
            connection.await.ok();
        }
    })
    .await;
}

fn response(path: &str, metrics: &OperatorMetrics) -> Response<Full<Bytes>> {
    let (status, kind, text) = match path {
        // Replicas that wait for the Lease are ready to take it.
        "/health" | "/ready" => (StatusCode::OK, "application/json", r#"{"status":"ok"}"#.to_owned()),
        "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4", metrics.text()),
        _ => (
            StatusCode::NOT_FOUND,
            "text/plain",
            "not found: /health, /ready and /metrics exist\n".to_owned(),
        ),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
