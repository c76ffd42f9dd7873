//! Sends the request of a call, perhaps several times, and reads what comes back.
//!
//! Which requests may be sent again is the policy's decision alone, not the method's: a tool's author knows
//! whether a POST can be repeated, and without a policy nothing is.

use std::error::Error;
use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{Breaker, Code, Retry, ToolError, Tried, Verdict};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client, RequestError};

/// How requests are sent.
pub struct Delivery {
    /// The most that one attempt may take.
    pub attempt_time: Duration,
    /// When and how often a request is sent again.
    pub policy: Policy,
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

/// A response that was read.
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Of a failure the first part, where it is long.
    pub(crate) body: Bytes,
    pub(crate) whole: bool,
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

impl Delivery {
    /// Sends a request until there is a response that counts. The words that come first in what is said of it tell how
    /// often it was sent.
    ///
    /// # Errors
    /// When there is no response, or the breaker is open.
    pub(crate) async fn run(
        &self,
        request: &Request<Bytes>,
        deadline: Option<Instant>,
        client: &Client,
        breaker: &Breaker,
    ) -> Result<(String, Received), ToolError> {
        let attempts = self.policy.retry.run(
            deadline,
            || self.attempt(request, deadline, client),
            |it| self.policy.judge(it),
        );
        let tried = breaker.run(deadline, attempts, |tried| counts_as_failure(&tried.last)).await?;
        let before = match tried {
            Tried { exhausted: true, attempts: attempts @ 2.., .. } => {
                format!("{attempts} attempts exhausted: ")
            }
            _ => String::new(),
        };
        match tried.last {
            Ok(received) => Ok((before, received)),
            Err(failure) => Err(failure.into_error(&before)),
        }
    }

    async fn attempt(&self, request: &Request<Bytes>, deadline: Option<Instant>, client: &Client) -> Attempt {
        let own = Instant::now().checked_add(self.attempt_time);
        match [own, deadline].into_iter().flatten().min() {
            Some(until) => {
                timeout_at(until, self.once(request, client)).await.unwrap_or(Err(Failure::Timeout))
            }
            None => self.once(request, client).await,
        }
    }

    async fn once(&self, request: &Request<Bytes>, client: &Client) -> Attempt {
        let response = client.send(request.clone().map(Full::new)).await.map_err(Failure::from)?;
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

/// Whether the server is in trouble, and not the request: what a breaker counts.
fn counts_as_failure(attempt: &Attempt) -> bool {
    match attempt {
        Ok(received) => received.status.is_server_error(),
        Err(failure) => matches!(failure, Failure::Unreachable(_) | Failure::Broken(_) | Failure::Timeout),
    }
}

/// When a server wants to be asked again: in so many seconds, or at a time (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
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
mod tests {
    use ::http::HeaderValue;

    use super::*;

    #[test]
    fn when_to_ask_again() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expect) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", None),
            ("-1", None),
            ("soon", None),
            ("99999999999999999999", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))]);
            assert_eq!(retry_after(&headers, now), expect.map(Duration::from_secs), "{text}");
        }
    }
}
