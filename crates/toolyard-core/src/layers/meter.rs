//! Counts and times every call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::Code;
use crate::outcome::Outcome;
use crate::registry::Entry;

/// What is known of a call when it is over.
#[derive(Clone, Copy)]
pub struct Finished<'a> {
    /// What was called.
    pub entry: &'a Entry,
    /// From the door to the outcome, waiting included.
    pub took: Duration,
    /// The tool's own verdict where it ran (`false`: it said that it failed), or why it did not.
    pub verdict: Result<bool, Code>,
}

/// Who wants to know of calls: a log, instruments, an audit trail.
pub trait Observer: Send + Sync {
    /// A call is over. Called on the way of the call: it must not wait.
    fn finished(&self, call: Finished<'_>);
}

/// The layer that tells an [`Observer`] of every call, refused and cancelled ones included.
pub struct Meter {
    observer: Arc<dyn Observer>,
}

impl Meter {
    /// A meter that reports to `observer`.
    #[must_use]
    pub fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer }
    }
}

impl Layer for Meter {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let mut reading = Reading {
                observer: &*self.observer,
                entry: next.entry,
                start: Instant::now(),
                verdict: Err(Code::Cancelled),
            };
            let answer = next.run(call).await;
            reading.verdict = verdict(&answer);
            answer
        })
    }
}

fn verdict(answer: &Answer) -> Result<bool, Code> {
    match answer {
        Ok(Outcome::Done(output)) => Ok(!output.is_error),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Ok(true),
        Err(error) => Err(error.code()),
    }
}

/// Reports when it goes out of scope, which is also how a cancelled call ends.
struct Reading<'a> {
    observer: &'a dyn Observer,
    entry: &'a Entry,
    start: Instant,
    verdict: Result<bool, Code>,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let Self { observer, entry, start, verdict } = *self;
        observer.finished(Finished { entry, took: start.elapsed(), verdict });
    }
}
