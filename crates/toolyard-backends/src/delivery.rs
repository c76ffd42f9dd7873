//! Sends the request of a call, with retries, and reads the response.
//!
//! Only the resend policy decides which requests are sent again; the HTTP method does not matter. A tool's author
//! knows whether a POST can be repeated. Without a policy, a request is sent once.

use std::borrow::Cow;
use std::error::Error;
use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    AttemptVerdict, CallOutput, CallTimeLimit, CauseCode, CircuitBreaker, ErrorCode, FailureCause,
    RetryOutcome, RetrySchedule, ToolError,
};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::budget::{BudgetExhausted, ByteBudget, SMALL_MESSAGE};
use toolyard_net::challenge::AuthChallenge;
use toolyard_net::client::{HttpClient, RequestError};
use toolyard_net::failure::{connection_cause, connection_reason};

use crate::health::{RequestEnd, ServiceHealth, status_cause};

/// Timeouts, retries and size limits of requests.
pub struct RequestDelivery {
    /// Timeout of one attempt.
    pub attempt_time: Duration,
    /// Conditions for sending a request again.
    pub policy: ResendPolicy,
    /// Maximum size of a response, in bytes.
    pub response_bytes: usize,
    /// Budget that the bytes of larger responses are reserved from.
    pub budget: ByteBudget,
}

/// Conditions for sending a failed request again.
#[derive(Debug, Clone, PartialEq)]
pub struct ResendPolicy {
    /// Number of attempts, and the waits between them.
    pub retry: RetrySchedule,
    /// HTTP statuses after which a request is sent again.
    pub statuses: Vec<u16>,
    /// True if a request is sent again after a network error or a timeout.
    pub network_errors: bool,
    /// True if the wait follows the server's `Retry-After`.
    pub respect_retry_after: bool,
}

/// A response with its body.
pub(crate) struct ReceivedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The body; of a long error response, only its beginning.
    pub(crate) body: Bytes,
    pub(crate) is_complete: bool,
}

/// The reason why an attempt has no response.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error("The tool's server cannot be reached")]
    Unreachable(#[source] RequestError),
    #[error("The connection to the tool's server broke")]
    ConnectionBroken(#[source] Box<dyn Error + Send + Sync>),
    #[error("The tool's server did not answer in time")]
    Timeout,
    #[error("The host that the arguments name has no public address")]
    NotPublic,
    #[error("The response is larger than {0} bytes")]
    TooLarge(usize),
    #[error("There is no memory left for the response: {0}")]
    BudgetExhausted(BudgetExhausted),
    #[error("The response is compressed, although no content encoding was accepted")]
    UnexpectedEncoding,
}

type DeliveryAttempt = Result<ReceivedResponse, DeliveryError>;

/// Maximum number of bytes read of an error body: more than an excerpt, so that it can be redacted.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

impl RequestDelivery {
    /// Sends a request until an attempt is final, and returns its response with a prefix for error messages that gives
    /// the number of attempts.
    ///
    /// # Errors
    /// When the last attempt has no response, or the breaker is open.
    pub(crate) async fn send(
        &self,
        request: &Request<Bytes>,
        limit: CallTimeLimit,
        client: &HttpClient,
        health: &ServiceHealth,
    ) -> Result<(String, ReceivedResponse), ToolError> {
        let tried = self.run_attempts(request, limit, client, health.breaker()).await?;
        if let Some(end) = request_end(request, &tried.last).filter(|_| !limit.is_cut_by_caller()) {
            health.record(request.uri(), end);
        }
        finished(tried)
    }

    /// Does the same as [`RequestDelivery::send`], for a service whose health is not followed.
    ///
    /// # Errors
    /// When the last attempt has no response, or the breaker is open.
    pub(crate) async fn send_unobserved(
        &self,
        request: &Request<Bytes>,
        limit: CallTimeLimit,
        client: &HttpClient,
        breaker: &CircuitBreaker,
    ) -> Result<(String, ReceivedResponse), ToolError> {
        finished(self.run_attempts(request, limit, client, breaker).await?)
    }

    async fn run_attempts(
        &self,
        request: &Request<Bytes>,
        limit: CallTimeLimit,
        client: &HttpClient,
        breaker: &CircuitBreaker,
    ) -> Result<RetryOutcome<DeliveryAttempt>, ToolError> {
        let attempts = self.policy.retry.run(
            limit.at,
            || self.attempt(request, limit.at, client),
            |it| self.policy.verdict(it),
        );
        breaker.run(limit, attempts, |tried| counts_as_failure(&tried.last)).await
    }

    /// Reserves budget for the members of a result that are copies of the response.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`] when the budget is exhausted.
    pub(crate) async fn reserve_copies(
        &self,
        output: &mut CallOutput,
        members: &[&str],
    ) -> Result<(), ToolError> {
        reserve_copies(&self.budget, output, members).await
    }

    async fn attempt(
        &self,
        request: &Request<Bytes>,
        deadline: Option<Instant>,
        client: &HttpClient,
    ) -> DeliveryAttempt {
        let own = Instant::now().checked_add(self.attempt_time);
        match [own, deadline].into_iter().flatten().min() {
            Some(until) => timeout_at(until, self.send_once(request, client))
                .await
                .unwrap_or(Err(DeliveryError::Timeout)),
            None => self.send_once(request, client).await,
        }
    }

    async fn send_once(&self, request: &Request<Bytes>, client: &HttpClient) -> DeliveryAttempt {
        let response = client.send(request.clone().map(Full::new)).await.map_err(DeliveryError::from)?;
        let (head, body) = response.into_parts();
        let compressed =
            head.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        let (body, whole) = match (head.status.is_success(), compressed) {
            (true, true) => return Err(DeliveryError::UnexpectedEncoding),
            (true, false) => (body::read_within(body, self.response_bytes, &self.budget).await?, true),
            (false, true) => (Bytes::new(), true),
            (false, false) => body::read_start(body, MAX_ERROR_BODY_BYTES.min(self.response_bytes)).await?,
        };
        Ok(ReceivedResponse { status: head.status, headers: head.headers, body, is_complete: whole })
    }
}

impl ResendPolicy {
    fn verdict(&self, attempt: &DeliveryAttempt) -> AttemptVerdict {
        match attempt {
            Ok(received) if self.statuses.contains(&received.status.as_u16()) => {
                let wait =
                    self.respect_retry_after.then(|| retry_after(&received.headers, SystemTime::now()));
                AttemptVerdict::Again { wait: wait.flatten() }
            }
            Err(
                DeliveryError::Unreachable(_) | DeliveryError::ConnectionBroken(_) | DeliveryError::Timeout,
            ) if self.network_errors => AttemptVerdict::Again { wait: None },
            Ok(_) | Err(_) => AttemptVerdict::Final,
        }
    }
}

/// Reserves budget for the large members of a result that are copies of the response.
///
/// # Errors
/// [`ErrorCode::Unavailable`] when the budget is exhausted.
pub async fn reserve_copies(
    budget: &ByteBudget,
    output: &mut CallOutput,
    members: &[&str],
) -> Result<(), ToolError> {
    for name in members {
        let Some(copy) = output.body.get(name).filter(|copy| copy.as_bytes().len() > SMALL_MESSAGE) else {
            continue;
        };
        let reserved = budget.reserve(copy.as_bytes().len()).await;
        let reserved = reserved.map_err(|used_up| DeliveryError::BudgetExhausted(used_up).into_error(""))?;
        let retained = copy.with_bytes(|bytes| reserved.hold(bytes));
        output.body.set(name, retained);
    }
    Ok(())
}

/// Returns the response of the last attempt with its prefix for error messages.
fn finished(tried: RetryOutcome<DeliveryAttempt>) -> Result<(String, ReceivedResponse), ToolError> {
    let prefix = match tried {
        RetryOutcome { exhausted: true, attempts: attempts @ 2.., .. } => {
            format!("{attempts} attempts exhausted: ")
        }
        _ => String::new(),
    };
    tried.last.map(|received| (prefix.clone(), received)).map_err(|failure| failure.into_error(&prefix))
}

/// Returns what an attempt says about the health of the service; `None` if it says nothing.
fn request_end(request: &Request<Bytes>, attempt: &DeliveryAttempt) -> Option<RequestEnd> {
    let failed = |code, message: String| Some(RequestEnd::Failed(FailureCause::new(code, message)));
    match attempt {
        Ok(received) if received.status == StatusCode::UNAUTHORIZED => {
            let was_sent = request.headers().contains_key(header::AUTHORIZATION);
            let challenge = AuthChallenge::of(&received.headers, was_sent);
            failed(CauseCode::Unauthorized, challenge.problem())
        }
        Ok(received) if received.status.is_server_error() || received.status == StatusCode::FORBIDDEN => {
            Some(RequestEnd::Failed(status_cause(received.status)))
        }
        Ok(_) => Some(RequestEnd::Answered),
        Err(DeliveryError::Unreachable(error)) => {
            let message = format!("the server cannot be reached: {}", error.reason());
            Some(RequestEnd::NotConnected(FailureCause::new(error.code(), message)))
        }
        Err(DeliveryError::ConnectionBroken(cause)) => {
            let (code, reason) =
                connection_cause(&**cause).unwrap_or((CauseCode::ConnectionBroken, "connection broken"));
            failed(code, format!("the connection to the server broke: {reason}"))
        }
        Err(DeliveryError::Timeout) => {
            failed(CauseCode::Timeout, "the server did not answer in time".to_owned())
        }
        Err(DeliveryError::UnexpectedEncoding) => {
            failed(CauseCode::Protocol, "the response is compressed".to_owned())
        }
        Err(DeliveryError::NotPublic | DeliveryError::TooLarge(_) | DeliveryError::BudgetExhausted(_)) => {
            None
        }
    }
}

/// True if the server failed rather than the request. The breaker counts these.
fn counts_as_failure(attempt: &DeliveryAttempt) -> bool {
    match attempt {
        Ok(received) => received.status.is_server_error(),
        Err(failure) => matches!(
            failure,
            DeliveryError::Unreachable(_) | DeliveryError::ConnectionBroken(_) | DeliveryError::Timeout
        ),
    }
}

/// Parses `Retry-After`: a number of seconds, or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
    }
}

impl DeliveryError {
    /// Returns the reason for callers, which names no address and no host. That of a timeout is the limit of the call.
    fn reason(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Unreachable(error) => error.reason().into(),
            Self::ConnectionBroken(cause) => {
                connection_reason(&**cause).unwrap_or("connection broken").into()
            }
            Self::Timeout => return None,
            Self::NotPublic => "not a public address".into(),
            Self::TooLarge(limit) => format!("response larger than {limit} bytes").into(),
            Self::BudgetExhausted(_) => "no memory left for the response".into(),
            Self::UnexpectedEncoding => "compressed response".into(),
        })
    }

    fn into_error(self, attempts: &str) -> ToolError {
        let code = match self {
            Self::Unreachable(_) | Self::ConnectionBroken(_) | Self::BudgetExhausted(_) => {
                ErrorCode::Unavailable
            }
            Self::Timeout => ErrorCode::Timeout,
            Self::NotPublic => ErrorCode::Denied,
            Self::TooLarge(_) | Self::UnexpectedEncoding => ErrorCode::ExecutionFailed,
        };
        let mut error = ToolError::new(code, format!("{attempts}{self}"));
        if let Some(reason) = self.reason() {
            error = error.because(reason);
        }
        match self {
            // With several attempts, an earlier one may have reached the server.
            Self::Unreachable(cause) if attempts.is_empty() => error.unsent().caused_by(cause),
            Self::Unreachable(cause) => error.caused_by(cause),
            Self::ConnectionBroken(cause) => error.caused_by(cause),
            _ => error,
        }
    }
}

impl From<RequestError> for DeliveryError {
    fn from(error: RequestError) -> Self {
        match error {
            error @ RequestError::Connect(_) => Self::Unreachable(error),
            RequestError::Broken(cause) => Self::ConnectionBroken(cause),
            RequestError::NotPublic => Self::NotPublic,
        }
    }
}

impl From<BodyReadError> for DeliveryError {
    fn from(error: BodyReadError) -> Self {
        match error {
            BodyReadError::TooLarge(limit) => Self::TooLarge(limit),
            BodyReadError::Broken(cause) => Self::ConnectionBroken(cause),
            BodyReadError::UsedUp(used_up, _) => Self::BudgetExhausted(used_up),
            error @ BodyReadError::Stalled => Self::ConnectionBroken(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_has_seconds_or_a_date() {
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
