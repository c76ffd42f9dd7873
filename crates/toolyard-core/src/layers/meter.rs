//! Tells observers of every call: where it begins, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::{Code, ToolError};
use crate::outcome::Outcome;
use crate::registry::Entry;

/// Who wants to know of calls: instruments, a trace, an audit trail. It stands on the way of every call: none of its
/// functions may wait.
pub trait Observer: Send + Sync {
    /// A call begins. What is returned hears how it ends, whichever way that is.
    ///
    /// `call` is what goes on from here, so that [`Call::meta`] can be given the context of a trace. Observers are told in
    /// their order, and later ones see what earlier ones have changed.
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a>;

    /// A call came to nothing because nobody has what it asks for. The name in it is the caller's invention: it is nothing
    /// to make a label or a file name of.
    fn unknown(&self, _call: &Call, _error: &ToolError) {}
}

/// One call that an [`Observer`] has seen begin.
pub trait Observation: Send {
    /// What the lines of the log that the call causes are to carry. Of several observers the first one decides.
    fn scope(&self) -> Span {
        Span::none()
    }

    /// The call is over.
    fn end(self: Box<Self>, ended: Ended<'_>);
}

/// How a call ended.
#[derive(Clone, Copy)]
pub struct Ended<'a> {
    /// From where the meter stands to the outcome and back; from the outermost meter, waiting included.
    pub took: Duration,
    /// What the caller is answered; `None` where the caller withdrew the call.
    pub answer: Option<&'a Answer>,
}

impl Ended<'_> {
    /// The tool's own verdict where it ran (`false`: it said that it failed), or why it did not.
    ///
    /// # Errors
    /// The code of what the yard says; [`Code::Cancelled`] where the caller withdrew the call.
    pub fn verdict(&self) -> Result<bool, Code> {
        match self.answer {
            Some(Ok(Outcome::Done(output))) => Ok(!output.is_error),
            Some(Ok(Outcome::NeedsInput(_) | Outcome::Task(_))) => Ok(true),
            Some(Err(error)) => Err(error.code()),
            None => Err(Code::Cancelled),
        }
    }
}

/// The layer that tells [`Observer`]s of every call from the door on: with what it waits for, and also where it is refused.
pub struct Meter(Vec<Arc<dyn Observer>>);

/// The layer that tells [`Observer`]s of the way of a call to its owner and back only, with all attempts of the backend.
pub struct Leg(Vec<Arc<dyn Observer>>);

impl Meter {
    /// A meter that reports to `observers`, in their order.
    #[must_use]
    pub const fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self(observers)
    }
}

impl Leg {
    /// A layer that reports to `observers`, in their order.
    #[must_use]
    pub const fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self(observers)
    }
}

impl Layer for Meter {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        observed(&self.0, call, next)
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        self.0.iter().for_each(|observer| observer.unknown(call, error));
    }
}

impl Layer for Leg {
    fn name(&self) -> &'static str {
        "leg"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        observed(&self.0, call, next)
    }
}

fn observed<'a>(observers: &'a [Arc<dyn Observer>], mut call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
    if observers.is_empty() {
        return next.run(call);
    }
    Box::pin(async move {
        let start = Instant::now();
        let observations = observers.iter().map(|observer| observer.begin(&mut call, next.entry));
        let mut reading = Reading { observations: observations.collect(), start };
        let scope = reading.scope();
        let run = async move {
            let answer = next.run(call).await;
            reading.end(Some(&answer));
            answer
        };
        run.instrument(scope).await
    })
}

/// A call that runs. To go out of scope is how a cancelled one ends.
struct Reading<'a> {
    observations: Vec<Box<dyn Observation + 'a>>,
    start: Instant,
}

impl Reading<'_> {
    fn scope(&self) -> Span {
        let scopes = self.observations.iter().map(|observation| observation.scope());
        scopes.into_iter().find(|scope| !scope.is_disabled()).unwrap_or_else(Span::none)
    }

    fn end(&mut self, answer: Option<&Answer>) {
        let ended = Ended { took: self.start.elapsed(), answer };
        // The last to begin is the first to end.
        self.observations.drain(..).rev().for_each(|observation| observation.end(ended));
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.end(None);
    }
}
