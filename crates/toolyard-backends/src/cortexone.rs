//! Functions of the `CortexOne` platform, each of them a [`MessageExchange`]. An event is posted; the response
//! carries the function's return value in one of several formats ([`unwrap`]).

pub mod unwrap;

use std::time::Duration;

use ::http::{Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::{CallTimeLimit, CircuitBreaker, ErrorCode, Json, MessageExchange, Object, ToolError};
use toolyard_net::auth::UpstreamCredentials;
use toolyard_net::client::HttpClient;

use self::unwrap::ReturnFormat;
use crate::delivery::{ReceivedResponse, RequestDelivery, retry_after};
use crate::http::credentials_error;

/// Maximum length of the platform's error body in the log, in bytes.
const MAX_LOGGED_BODY_BYTES: usize = 512;

/// Configuration of a function.
pub struct CortexOneOptions {
    /// URL that invokes the function.
    pub url: Uri,
    /// Credentials that calls are billed to.
    pub auth: UpstreamCredentials,
    /// Format of the function's return value.
    pub return_format: ReturnFormat,
    /// Timeouts, retries and size limits of requests.
    pub delivery: RequestDelivery,
}

/// A function of the platform.
pub struct CortexOneFunction {
    options: CortexOneOptions,
    client: HttpClient,
    breaker: CircuitBreaker,
    /// Never changes: the platform does not announce new versions behind `latest`.
    generation: watch::Sender<u64>,
}

impl CortexOneFunction {
    /// Creates a function that sends its events through `client`.
    #[must_use]
    pub fn new(options: CortexOneOptions, client: &HttpClient) -> Self {
        let (breaker, generation) = (CircuitBreaker::default(), watch::Sender::default());
        Self { options, client: client.clone(), breaker, generation }
    }

    async fn invoke(&self, event: &Json, deadline: Option<Instant>) -> Result<Json, ToolError> {
        let CortexOneOptions { delivery, return_format, .. } = &self.options;
        let request = self.request(event).await?;
        let limit = CallTimeLimit { at: deadline, is_of_caller: false };
        let (_, received) = delivery.send_unobserved(&request, limit, &self.client, &self.breaker).await?;
        match received.status.is_success() {
            true => return_format.parse(received.body),
            false => Err(platform_error(&received)),
        }
    }

    async fn request(&self, event: &Json) -> Result<Request<Bytes>, ToolError> {
        let body = Object::new().with("event", event.clone()).to_json().bytes();
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.options.url.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, ::http::HeaderValue::from_static("application/json"));
        headers.insert(header::AUTHORIZATION, self.options.auth.header().await.map_err(credentials_error)?);
        Ok(request)
    }
}

impl MessageExchange for CortexOneFunction {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move { self.invoke(&request, deadline).await })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

/// Maps an error response of the platform. The platform checks key, balance and function before it runs anything.
fn platform_error(received: &ReceivedResponse) -> ToolError {
    let ReceivedResponse { status, headers, body, .. } = received;
    let (code, message) = match *status {
        StatusCode::BAD_REQUEST => (ErrorCode::ExecutionFailed, "The platform refused the event"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (ErrorCode::Unavailable, "The platform does not accept the key of this handler")
        }
        StatusCode::PAYMENT_REQUIRED => (ErrorCode::QuotaExhausted, "The balance at the platform is used up"),
        StatusCode::NOT_FOUND => {
            (ErrorCode::Unavailable, "The platform has no such function, or no such version")
        }
        StatusCode::REQUEST_TIMEOUT => (ErrorCode::Timeout, "The function did not answer in time"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            (ErrorCode::InvalidArguments, "The arguments are too large for the platform")
        }
        StatusCode::TOO_MANY_REQUESTS => (ErrorCode::RateLimited, "The platform is called too often"),
        status if status.is_server_error() => (ErrorCode::Unavailable, "The platform failed to answer"),
        _ => (ErrorCode::ExecutionFailed, "The platform refused the call"),
    };
    let excerpt = String::from_utf8_lossy(&body[..body.len().min(MAX_LOGGED_BODY_BYTES)]);
    let error = ToolError::new(code, message).caused_by(format!("HTTP status {status}: {excerpt}"));
    let error = match retry_after(headers, std::time::SystemTime::now()) {
        Some(wait) => error.retry_after(wait.min(MAX_RETRY_AFTER)),
        None => error,
    };
    let has_run = *status == StatusCode::REQUEST_TIMEOUT || status.is_server_error();
    if has_run { error } else { error.unsent() }
}

/// Maximum wait that is passed on to the caller.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
