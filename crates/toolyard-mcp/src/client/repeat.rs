//! Makes a call again that its server has not begun to answer.
//!
//! There are two reasons to. A session that the server has forgotten is opened anew, and the call made once more:
//! the server has refused it unread. And whoever wrote the manifest may have allowed it after any failure of the
//! transport. Neither is done once the server has said anything: it is at work then, or was.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolyard_core::layers::in_time;
use toolyard_core::{
    Ask, AskError, Call, Client, ClientWrapper, Code, Json, Notice, Outcome, Retry, ToolError, Tried, Verdict,
};

use super::transport::TransportError;

/// How often a call is made where the transport fails.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    /// How often, and after which waits.
    pub retry: Retry,
    /// The most that one attempt may take. `None`: as long as the call has.
    pub time: Option<Duration>,
}

/// Why an attempt gave no outcome, and what that allows.
#[derive(Debug)]
pub(super) struct Failure {
    error: ToolError,
    then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Another attempt would be refused as well, or do things twice.
    Nothing,
    /// Another attempt may come through, if the author of the manifest allows it.
    Again,
    /// The call was refused for want of a session.
    InNewSession,
}

impl Then {
    fn after(error: &ToolError) -> Self {
        if error.code() == Code::Unavailable { Self::Again } else { Self::Nothing }
    }
}

impl Failure {
    /// No other attempt is to be made.
    pub(super) fn for_good(error: ToolError) -> Self {
        Self { error, then: Then::Nothing }
    }

    /// Whether it is what the server answered.
    pub(super) fn is_answer(&self) -> bool {
        self.error.peer().is_some()
    }
}

impl Attempts {
    /// One attempt, for as long as the call may take.
    #[must_use]
    pub const fn one() -> Self {
        Self { retry: Retry::never(), time: None }
    }

    /// Makes attempts until there is an outcome, or none is left.
    pub(super) async fn run<F: Future<Output = Result<Outcome, Failure>>>(
        &self,
        mut call: Call,
        attempt: impl Fn(Call) -> F,
    ) -> Result<Outcome, ToolError> {
        let attentive =
            Arc::new(Attentive { client: call.client.clone(), has_heard: AtomicBool::new(false) });
        call.client = attentive.clone();
        let next = |answer: &Result<Outcome, Failure>| match answer {
            Err(failure) if !attentive.has_heard() => failure.then,
            Ok(_) | Err(_) => Then::Nothing,
        };
        let in_session = async || {
            let answer = attempt(call.clone()).await;
            if next(&answer) != Then::InNewSession {
                return answer;
            }
            Box::pin(attempt(call.clone())).await
        };
        let in_time = async || {
            let answer = pin!(in_session());
            let Some(own) = self.time.and_then(|time| Instant::now().checked_add(time)) else {
                return answer.await;
            };
            let until = call.deadline.map_or(own, |deadline| deadline.min(own));
            in_time(until, &*call.client, answer).await.unwrap_or_else(|error| Err(error.into()))
        };
        let judge = |answer: &Result<Outcome, Failure>| match next(answer) {
            Then::Again => Verdict::Again { wait: None },
            Then::Nothing | Then::InNewSession => Verdict::Final,
        };
        let tried = self.retry.run(call.deadline, in_time, judge).await;
        outcome(tried)
    }
}

fn outcome(tried: Tried<Result<Outcome, Failure>>) -> Result<Outcome, ToolError> {
    let Tried { last, attempts, exhausted } = tried;
    last.map_err(|Failure { error, .. }| match exhausted && attempts > 1 {
        true => {
            ToolError::new(error.code(), format!("{attempts} attempts exhausted: {error}")).caused_by(error)
        }
        false => error,
    })
}

/// What the server did not answer because of the transport.
impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        let then = match &error {
            TransportError::Exchange(error) => Then::after(error),
            TransportError::Unreachable(_) | TransportError::Broken(_) => Then::Again,
            TransportError::SessionOver => Then::InNewSession,
            _ => Then::Nothing,
        };
        Self { error: error.into(), then }
    }
}

/// What is wrong with the call, or with its answer; or there is no connection to make it on.
impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let then = Then::after(&error);
        Self { error, then }
    }
}

/// A client, and whether anything was said to it.
#[derive(Debug)]
struct Attentive {
    client: Arc<dyn Client>,
    has_heard: AtomicBool,
}

impl Attentive {
    fn has_heard(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed)
    }

    fn hear(&self) {
        self.has_heard.store(true, Ordering::Relaxed);
    }
}

impl ClientWrapper for Attentive {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn notify(&self, notice: Notice) {
        self.hear();
        self.client.notify(notice);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        self.hear();
        self.client.ask(ask)
    }
}

#[cfg(test)]
mod tests;
