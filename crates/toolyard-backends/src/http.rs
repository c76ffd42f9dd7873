//! A tool whose calls are plain HTTP requests.
//!
//! A call becomes a request ([`request`]: a pure function), which is sent, perhaps several times; what comes
//! back becomes a result ([`response`]: another one).
//!
//! Which requests may be sent again is the policy's decision alone, not the method's: a tool's author knows
//! whether a POST can be repeated, and without a policy nothing is.

pub mod mapping;
pub mod request;
pub mod response;
pub mod target;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    Backend, Breaker, Call, Catalog, Code, Outcome, Phase, Retry, Tool, ToolError, Tried, Verdict,
};
use toolyard_net::auth::{Auth, Unreadable};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client, RequestError};
use toolyard_net::trace;

use self::request::Plan;
use self::response::Reading;

/// What a tool is, and how its calls are run.
pub struct Options {
    /// The tool.
    pub tool: Tool,
    /// What its requests look like.
    pub plan: Plan,
    /// Who they are made for.
    pub auth: Option<Auth>,
    /// The most that one attempt may take.
    pub attempt_time: Duration,
    /// When and how often a request is sent again.
    pub policy: Policy,
    /// What its responses mean.
    pub reading: Reading,
    /// Size of the largest response, in bytes.
    pub response_bytes: usize,
}

/// When and how often a request that failed is sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// How often, and after which waits.
    pub retry: Retry,
    /// The statuses after which it is.
    pub statuses: Vec<u16>,
    /// Whether it is where no response came, or not in time.
    pub network_errors: bool,
    /// Whether a server may ask for a longer wait (`Retry-After`).
    pub respect_retry_after: bool,
}

/// A backend of one tool, which is there from the beginning.
pub struct HttpBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    plan: Plan,
    auth: Option<Auth>,
    attempt_time: Duration,
    policy: Policy,
    reading: Reading,
    response_bytes: usize,
    client: Client,
    breaker: Breaker,
}

/// A response that was read.
struct Received {
    status: StatusCode,
    headers: HeaderMap,
    /// Of a failure the first part, where it is long.
    body: Bytes,
    whole: bool,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("The tool's server cannot be reached")]
    Unreachable(#[source] RequestError),
    #[error("The connection to the tool's server broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error("The tool's server did not answer in time")]
    Timeout,
    #[error("The host that the arguments name has no public address")]
    NotPublic,
    #[error("The response is larger than {0} bytes")]
    TooLarge(usize),
    #[error("The response is compressed, which was not asked for")]
    Compressed,
}

type Attempt = Result<Received, Failure>;

/// How much of the body of a failure is read: more than is shown, so that it can be redacted.
const FAILURE_BYTES: usize = 64 * 1024;

impl HttpBackend {
    /// A backend that sends its requests by way of `client`; to public addresses only where arguments decide
    /// which host they go to.
    #[must_use]
    pub fn new(options: Options, client: &Client) -> Self {
        let Options { tool, plan, auth, attempt_time, policy, reading, response_bytes } = options;
        let client = if plan.target.host_varies() { client.public_only() } else { client.clone() };
        let tools = vec![Arc::new(tool)];
        let catalog = Catalog { phase: Phase::Ready, tools, ..Catalog::default() };
        Self {
            catalog: watch::Sender::new(Arc::new(catalog)),
            plan,
            auth,
            attempt_time,
            policy,
            reading,
            response_bytes,
            client,
            breaker: Breaker::default(),
        }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let mut request = self.plan.request(call.arguments())?;
        if let Some(auth) = &self.auth {
            request.headers_mut().insert(header::AUTHORIZATION, auth.header().await.map_err(no_credentials)?);
        }
        request.headers_mut().extend(trace::headers(|name| call.meta.get_str(name)));
        let deadline = call.deadline;
        let attempts =
            self.policy.retry.run(deadline, || self.attempt(&request, deadline), |it| self.policy.judge(it));
        let tried = self.breaker.run(deadline, attempts, |tried| counts_as_failure(&tried.last)).await?;
        self.outcome(tried)
    }

    async fn attempt(&self, request: &Request<Bytes>, deadline: Option<Instant>) -> Attempt {
        let own = Instant::now().checked_add(self.attempt_time);
        match [own, deadline].into_iter().flatten().min() {
            Some(until) => timeout_at(until, self.exchange(request)).await.unwrap_or(Err(Failure::Timeout)),
            None => self.exchange(request).await,
        }
    }

    async fn exchange(&self, request: &Request<Bytes>) -> Attempt {
        let response = self.client.send(request.clone().map(Full::new)).await.map_err(Failure::from)?;
        let (head, body) = response.into_parts();
        let compressed =
            head.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        let (body, whole) = match (head.status.is_success(), compressed) {
            (true, true) => return Err(Failure::Compressed),
            (true, false) => (body::read(body, self.response_bytes).await?, true),
            (false, true) => (Bytes::new(), true),
            (false, false) => body::read_start(body, FAILURE_BYTES.min(self.response_bytes)).await?,
        };
        Ok(Received { status: head.status, headers: head.headers, body, whole })
    }

    fn outcome(&self, tried: Tried<Attempt>) -> Result<Outcome, ToolError> {
        let attempts = match tried {
            Tried { exhausted: true, attempts: attempts @ 2.., .. } => {
                format!("{attempts} attempts exhausted: ")
            }
            _ => String::new(),
        };
        let received = tried.last.map_err(|failure| failure.into_error(&attempts))?;
        if received.status.is_success() {
            let content_type = received.headers.get(header::CONTENT_TYPE);
            return self.reading.output(received.status, content_type, received.body).map(Outcome::Done);
        }
        let failure = self.reading.failure(&attempts, received.status, &received.body, received.whole);
        Ok(Outcome::Done(failure))
    }
}

impl Backend for HttpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

impl Policy {
    fn judge(&self, attempt: &Attempt) -> Verdict {
        match attempt {
            Ok(received) if self.statuses.contains(&received.status.as_u16()) => {
                let wait =
                    self.respect_retry_after.then(|| retry_after(&received.headers, SystemTime::now()));
                Verdict::Again { wait: wait.flatten() }
            }
            Err(Failure::Unreachable(_) | Failure::Broken(_) | Failure::Timeout) if self.network_errors => {
                Verdict::Again { wait: None }
            }
            Ok(_) | Err(_) => Verdict::Final,
        }
    }
}

fn no_credentials(error: Unreadable) -> ToolError {
    ToolError::new(Code::Unavailable, "The credentials of this tool cannot be read").unsent().caused_by(error)
}

/// Whether the server is in trouble, and not the request: what a breaker counts.
fn counts_as_failure(attempt: &Attempt) -> bool {
    match attempt {
        Ok(received) => received.status.is_server_error(),
        Err(failure) => matches!(failure, Failure::Unreachable(_) | Failure::Broken(_) | Failure::Timeout),
    }
}

/// When a server wants to be asked again: in so many seconds, or at a time (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
    }
}

impl Failure {
    fn into_error(self, attempts: &str) -> ToolError {
        let code = match self {
            Self::Unreachable(_) | Self::Broken(_) => Code::Unavailable,
            Self::Timeout => Code::Timeout,
            Self::NotPublic => Code::Denied,
            Self::TooLarge(_) | Self::Compressed => Code::ExecutionFailed,
        };
        let error = ToolError::new(code, format!("{attempts}{self}"));
        match self {
            // Of several attempts an earlier one may have got further.
            Self::Unreachable(cause) if attempts.is_empty() => error.unsent().caused_by(cause),
            Self::Unreachable(cause) => error.caused_by(cause),
            Self::Broken(cause) => error.caused_by(cause),
            _ => error,
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            error @ RequestError::Connect(_) => Self::Unreachable(error),
            RequestError::Broken(cause) => Self::Broken(cause),
            RequestError::NotPublic => Self::NotPublic,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLarge(limit) => Self::TooLarge(limit),
            ReadError::Broken(cause) => Self::Broken(cause),
        }
    }
}

#[cfg(test)]
mod tests;
