//! The listener of the webhook: HTTPS with bounded connections, bodies and times.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::certificate::{CertificateError, CertificateFiles, CertificateText};
use super::{REVIEW_BYTES, VALIDATE_PATH, review};
use crate::connections::{self, ConnectionLimits, LastRequest};

/// Limits of connections. An API server keeps a few of them open.
const LIMITS: ConnectionLimits = ConnectionLimits { connections: 64, time: Duration::from_secs(300) };

/// Time limit of a handshake, of the head of a request and of its body.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Returns the problems of an object of a kind, one text each.
pub type ObjectValidator = fn(&str, &Value) -> Vec<String>;

/// Address and certificate of the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOptions {
    /// The address.
    pub address: SocketAddr,
    /// The certificate.
    pub files: CertificateFiles,
    /// Time between two checks of the files for a renewed certificate.
    pub certificate_check: Duration,
}

/// The webhook cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The certificate is unusable.
    #[error("the certificate of the webhook is unusable: {0}")]
    Certificate(#[from] CertificateError),
    /// The address cannot be bound.
    #[error("the webhook cannot listen on {0}: {1}")]
    Listen(SocketAddr, String),
}

/// A bound webhook, before it serves.
pub struct BoundWebhook {
    listener: TcpListener,
    address: SocketAddr,
    options: WebhookOptions,
    text: CertificateText,
    acceptor: TlsAcceptor,
}

impl BoundWebhook {
    /// Reads the certificate and binds the address.
    ///
    /// # Errors
    /// If one of them is unusable.
    pub async fn bind(options: WebhookOptions) -> Result<Self, WebhookError> {
        let text = options.files.read().await?;
        let acceptor = options.files.acceptor(&text)?;
        let failed = |error: std::io::Error| WebhookError::Listen(options.address, error.to_string());
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, options, text, acceptor })
    }

    /// Returns the address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped. A renewed certificate applies to later connections.
    pub async fn serve(self, validate: ObjectValidator) {
        let current = watch::Sender::new(self.acceptor);
        let acceptors = current.subscribe();
        let accepted = connections::accept(self.listener, LIMITS, |stream, last| {
            let acceptor = acceptors.borrow().clone();
            serve_connection(stream, acceptor, last, validate)
        });
        tokio::join!(accepted, follow(&self.options, self.text, &current));
    }
}

/// Reloads the certificate when its files change. An unusable one is refused, and the current one stays.
async fn follow(options: &WebhookOptions, mut text: CertificateText, current: &watch::Sender<TlsAcceptor>) {
    loop {
        tokio::time::sleep(options.certificate_check).await;
        let renewed = match options.files.read().await {
            Ok(renewed) if renewed == text => continue,
            Ok(renewed) => options.files.acceptor(&renewed).map(|acceptor| (renewed, acceptor)),
            Err(error) => Err(error),
        };
        match renewed {
            Ok((renewed, acceptor)) => {
                text = renewed;
                current.send_replace(acceptor);
                tracing::info!("reloaded the certificate of the webhook");
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate of the webhook is refused; the current one stays");
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    last: LastRequest,
    validate: ObjectValidator,
) {
    stream.set_nodelay(true).ok();
    let Ok(Ok(stream)) = tokio::time::timeout(REQUEST_TIME, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request| {
        last.record();
        async move { Ok::<_, Infallible>(answer(request, validate).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of the webhook ended early");
    }
}

async fn answer(request: Request<Incoming>, validate: ObjectValidator) -> Response<Full<Bytes>> {
    if request.uri().path() != VALIDATE_PATH {
        return response(StatusCode::NOT_FOUND, "text/plain", format!("not found: {VALIDATE_PATH} exists\n"));
    }
    if request.method() != Method::POST {
        return response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "use POST\n".to_owned());
    }
    let body = Limited::new(request.into_body(), REVIEW_BYTES).collect();
    let body = match tokio::time::timeout(REQUEST_TIME, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let text = format!("the body is incomplete or has more than {REVIEW_BYTES} bytes\n");
            return response(StatusCode::PAYLOAD_TOO_LARGE, "text/plain", text);
        }
        Err(_) => {
            let text = "the body did not arrive in time\n".to_owned();
            return response(StatusCode::REQUEST_TIMEOUT, "text/plain", text);
        }
    };
    match review(&body, validate) {
        Ok(answer) => response(StatusCode::OK, "application/json", answer.to_string()),
        Err(error) => response(StatusCode::BAD_REQUEST, "text/plain", format!("{error}\n")),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
