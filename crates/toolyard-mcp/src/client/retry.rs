//! Repeats a call that the server has not started to answer.
//!
//! There are two reasons to repeat a call. If the server has lost the session, a new session is opened and the call is
//! repeated once: the server has not executed it. And the manifest may allow retries after failures of the transport. A
//! call is never repeated after the server has sent anything for it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolyard_core::layers::in_time;
use toolyard_core::{
    AttemptVerdict, Call, Client, ClientNotification, ClientWrapper, ErrorCode, InputRequest,
    InputRequestError, Json, Outcome, RetryOutcome, RetrySchedule, ToolError,
};

use super::transport::TransportError;

/// Retries of calls that fail in the transport.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamRetry {
    /// Number of attempts and the waits between them.
    pub retry: RetrySchedule,
    /// Timeout of an attempt. `None`: the deadline of the call.
    pub attempt_timeout: Option<Duration>,
}

/// The failure of an attempt, and whether another attempt is allowed.
#[derive(Debug)]
pub(super) struct AttemptError {
    error: ToolError,
    decision: RetryDecision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryDecision {
    /// Another attempt would fail as well, or repeat side effects.
    Never,
    /// Another attempt may succeed, if the manifest allows it.
    Retry,
    /// The call was refused for lack of a session.
    InNewSession,
}

impl RetryDecision {
    fn after(error: &ToolError) -> Self {
        if error.code() == ErrorCode::Unavailable { Self::Retry } else { Self::Never }
    }
}

impl AttemptError {
    /// Creates a failure that must not be retried.
    pub(super) fn permanent(error: ToolError) -> Self {
        Self { error, decision: RetryDecision::Never }
    }

    /// True if the error is an answer of the server.
    pub(super) fn is_from_server(&self) -> bool {
        self.peer().is_some()
    }

    /// Returns the error that the server answered with.
    pub(super) const fn peer(&self) -> Option<&Json> {
        self.error.peer()
    }

    /// Changes the error.
    pub(super) fn map(self, change: impl FnOnce(ToolError) -> ToolError) -> Self {
        Self { error: change(self.error), ..self }
    }
}

impl UpstreamRetry {
    /// Allows one attempt, until the deadline of the call.
    #[must_use]
    pub const fn never() -> Self {
        Self { retry: RetrySchedule::never(), attempt_timeout: None }
    }

    /// Makes attempts until one succeeds or no further one is allowed.
    pub(super) async fn run_attempts<F: Future<Output = Result<Outcome, AttemptError>>>(
        &self,
        mut call: Call,
        attempt: impl Fn(Arc<Call>) -> F,
    ) -> Result<Outcome, ToolError> {
        let observed =
            Arc::new(ObservedClient { client: call.client.clone(), was_contacted: AtomicBool::new(false) });
        call.client = observed.clone();
        // A call that is repeated is not copied.
        let call = Arc::new(call);
        let next = |answer: &Result<Outcome, AttemptError>| match answer {
            Err(failure) if !observed.was_contacted() => failure.decision,
            Ok(_) | Err(_) => RetryDecision::Never,
        };
        let in_session = async || {
            let answer = attempt(call.clone()).await;
            if next(&answer) != RetryDecision::InNewSession {
                return answer;
            }
            Box::pin(attempt(call.clone())).await
        };
        let in_time = async || {
            let answer = pin!(in_session());
            let Some(own) = self.attempt_timeout.and_then(|time| Instant::now().checked_add(time)) else {
                return answer.await;
            };
            let until = call.deadline.map_or(own, |deadline| deadline.min(own));
            in_time(until, &*call.client, answer).await.unwrap_or_else(|error| Err(error.into()))
        };
        let judge = |answer: &Result<Outcome, AttemptError>| match next(answer) {
            RetryDecision::Retry => AttemptVerdict::Again { wait: None },
            RetryDecision::Never | RetryDecision::InNewSession => AttemptVerdict::Final,
        };
        let tried = self.retry.run(call.deadline, in_time, judge).await;
        final_outcome(tried)
    }
}

fn final_outcome(tried: RetryOutcome<Result<Outcome, AttemptError>>) -> Result<Outcome, ToolError> {
    let RetryOutcome { last, attempts, exhausted } = tried;
    last.map_err(|AttemptError { error, .. }| match exhausted && attempts > 1 {
        true => {
            let exhausted = format!("{attempts} attempts exhausted: {error}");
            ToolError::new(error.code(), exhausted).because(error.reason().to_owned()).caused_by(error)
        }
        false => error,
    })
}

/// Converts a failure of the transport.
impl From<TransportError> for AttemptError {
    fn from(error: TransportError) -> Self {
        let decision = match &error {
            TransportError::Function(error) => RetryDecision::after(error),
            TransportError::Unreachable(_) | TransportError::Broken(_) => RetryDecision::Retry,
            TransportError::SessionExpired => RetryDecision::InNewSession,
            _ => RetryDecision::Never,
        };
        Self { error: error.into(), decision }
    }
}

/// Converts an error of the call or its answer, or a missing connection.
impl From<ToolError> for AttemptError {
    fn from(error: ToolError) -> Self {
        let decision = RetryDecision::after(&error);
        Self { error, decision }
    }
}

/// A client that records whether the server has contacted it.
#[derive(Debug)]
struct ObservedClient {
    client: Arc<dyn Client>,
    was_contacted: AtomicBool,
}

impl ObservedClient {
    fn was_contacted(&self) -> bool {
        self.was_contacted.load(Ordering::Relaxed)
    }

    fn mark_contacted(&self) {
        self.was_contacted.store(true, Ordering::Relaxed);
    }
}

impl ClientWrapper for ObservedClient {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn notify(&self, notice: ClientNotification) {
        self.mark_contacted();
        self.client.notify(notice);
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.mark_contacted();
        self.client.ask(ask)
    }
}

#[cfg(test)]
mod tests;
