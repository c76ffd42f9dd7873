//! Functions of the `CortexOne` platform, each of them an [`Exchange`]: an event is posted, and what comes back is what
//! the function returned, in one of several wrappings ([`unwrap`]).

pub mod unwrap;

use std::time::Duration;

use ::http::{Method, Request, StatusCode, Uri, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::{Breaker, Code, Exchange, Json, Object, ToolError};
use toolyard_net::auth::Auth;
use toolyard_net::client::Client;

use self::unwrap::Returns;
use crate::delivery::{Delivery, Received, retry_after};
use crate::http::no_credentials;

/// How much of what the platform says of a failure is kept for the log, in bytes.
const KEPT: usize = 512;

/// Which function it is, and how it is called.
pub struct Options {
    /// Where it is invoked.
    pub url: Uri,
    /// What calls are paid with.
    pub auth: Auth,
    /// What it returns.
    pub returns: Returns,
    /// How events are sent.
    pub delivery: Delivery,
}

/// A function of the platform.
pub struct CortexOne {
    options: Options,
    client: Client,
    breaker: Breaker,
    /// The platform does not tell when `latest` becomes another version.
    generation: watch::Sender<u64>,
}

impl CortexOne {
    /// A function to which events are sent by way of `client`.
    #[must_use]
    pub fn new(options: Options, client: &Client) -> Self {
        let (breaker, generation) = (Breaker::default(), watch::Sender::default());
        Self { options, client: client.clone(), breaker, generation }
    }

    async fn invoke(&self, event: &Json, deadline: Option<Instant>) -> Result<Json, ToolError> {
        let Options { delivery, returns, .. } = &self.options;
        let request = self.request(event).await?;
        let (_, received) = delivery.run(&request, deadline, &self.client, &self.breaker).await?;
        match received.status.is_success() {
            true => returns.read(received.body),
            false => Err(refused(&received)),
        }
    }

    async fn request(&self, event: &Json) -> Result<Request<Bytes>, ToolError> {
        let body = Object::new().with("event", event.clone()).to_json().bytes();
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.options.url.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, ::http::HeaderValue::from_static("application/json"));
        headers.insert(header::AUTHORIZATION, self.options.auth.header().await.map_err(no_credentials)?);
        Ok(request)
    }
}

impl Exchange for CortexOne {
    fn exchange(&self, request: Json, deadline: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        Box::pin(async move { self.invoke(&request, deadline).await })
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

/// What a failure of the platform means. It looks at the key, the balance and the function before it runs anything.
fn refused(received: &Received) -> ToolError {
    let Received { status, headers, body, .. } = received;
    let (code, message) = match *status {
        StatusCode::BAD_REQUEST => (Code::ExecutionFailed, "The platform refused the event"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (Code::Unavailable, "The platform does not accept the key of this handler")
        }
        StatusCode::PAYMENT_REQUIRED => (Code::QuotaExhausted, "The balance at the platform is used up"),
        StatusCode::NOT_FOUND => (Code::Unavailable, "The platform has no such function, or no such version"),
        StatusCode::REQUEST_TIMEOUT => (Code::Timeout, "The function did not answer in time"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            (Code::InvalidArguments, "The arguments are too large for the platform")
        }
        StatusCode::TOO_MANY_REQUESTS => (Code::RateLimited, "The platform is called too often"),
        status if status.is_server_error() => (Code::Unavailable, "The platform failed to answer"),
        _ => (Code::ExecutionFailed, "The platform refused the call"),
    };
    let said = String::from_utf8_lossy(&body[..body.len().min(KEPT)]);
    let error = ToolError::new(code, message).caused_by(format!("HTTP status {status}: {said}"));
    let error = match retry_after(headers, std::time::SystemTime::now()) {
        Some(wait) => error.retry_after(wait.min(LONGEST_WAIT)),
        None => error,
    };
    let has_run = *status == StatusCode::REQUEST_TIMEOUT || status.is_server_error();
    if has_run { error } else { error.unsent() }
}

/// The longest wait that is passed on.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
