//! Reports the beginning and the end of every call to observers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::{CallResult, Layer, NextLayer};
use crate::call::Call;
use crate::error::{ErrorCode, ToolError};
use crate::outcome::Outcome;
use crate::registry::RegistryEntry;

/// An observer of calls: metrics, traces, the audit trail. Its methods are on the path of every call and must not
/// block.
pub trait CallObserver: Send + Sync {
    /// Reports the beginning of a call. The returned value receives its end, whichever way the call ends; `None` if the
    /// end is of no interest.
    ///
    /// `call` is passed on after this, so [`Call::meta`] can be given a trace context. Observers run in order, and
    /// later ones see the changes of earlier ones.
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>>;

    /// Reports a call of an unknown entry. Its name is the caller's invention: do not use it as a label or a file name.
    fn unknown(&self, _call: &Call, _error: &ToolError) {}
}

/// A call that a [`CallObserver`] has seen begin.
pub trait ObservedCall: Send {
    /// Returns the span of log messages that the call causes. The first of several observers decides.
    fn scope(&self) -> Span {
        Span::none()
    }

    /// Reports the end of the call.
    fn end(self: Box<Self>, ended: CallEnding<'_>);
}

/// The end of a call.
#[derive(Clone, Copy)]
pub struct CallEnding<'a> {
    /// Time from this layer to the outcome and back; for the outermost layer it includes waiting.
    pub took: Duration,
    /// Result for the caller; `None` if the caller cancelled the call.
    pub answer: Option<&'a CallResult>,
}

impl CallEnding<'_> {
    /// Returns `true` if the tool succeeded and `false` if it reported a failure.
    ///
    /// # Errors
    /// The code of the gateway's error; [`ErrorCode::Cancelled`] if the caller cancelled the call.
    pub fn verdict(&self) -> Result<bool, ErrorCode> {
        match self.answer {
            Some(Ok(Outcome::Done(output))) => Ok(!output.is_error),
            Some(Ok(Outcome::NeedsInput(_) | Outcome::Task(_))) => Ok(true),
            Some(Err(error)) => Err(error.code()),
            None => Err(ErrorCode::Cancelled),
        }
    }
}

/// Reports every call to [`CallObserver`]s, with its time of waiting, and also refused calls.
pub struct CallTiming(Vec<Arc<dyn CallObserver>>);

/// Reports the upstream request of a call to [`CallObserver`]s, with all attempts of the backend.
pub struct UpstreamTiming(Vec<Arc<dyn CallObserver>>);

impl CallTiming {
    /// Creates the layer with `observers` in their order.
    #[must_use]
    pub const fn new(observers: Vec<Arc<dyn CallObserver>>) -> Self {
        Self(observers)
    }
}

impl UpstreamTiming {
    /// Creates the layer with `observers` in their order.
    #[must_use]
    pub const fn new(observers: Vec<Arc<dyn CallObserver>>) -> Self {
        Self(observers)
    }
}

impl Layer for CallTiming {
    fn name(&self) -> &'static str {
        "call_timing"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        observed(&self.0, call, next)
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        self.0.iter().for_each(|observer| observer.unknown(call, error));
    }
}

impl Layer for UpstreamTiming {
    fn name(&self) -> &'static str {
        "upstream_timing"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        observed(&self.0, call, next)
    }
}

fn observed<'a>(
    observers: &'a [Arc<dyn CallObserver>],
    mut call: Call,
    next: NextLayer<'a>,
) -> BoxFuture<'a, CallResult> {
    if observers.is_empty() {
        return next.run(call);
    }
    Box::pin(async move {
        let start = Instant::now();
        let observations = observers.iter().filter_map(|observer| observer.begin(&mut call, next.entry));
        let mut reading = RunningCall { observations: observations.collect(), start };
        let scope = reading.scope();
        let run = async move {
            let answer = next.run(call).await;
            reading.end(Some(&answer));
            answer
        };
        run.instrument(scope).await
    })
}

/// A running call. Dropping it reports cancellation.
struct RunningCall<'a> {
    observations: Vec<Box<dyn ObservedCall + 'a>>,
    start: Instant,
}

impl RunningCall<'_> {
    fn scope(&self) -> Span {
        let scopes = self.observations.iter().map(|observation| observation.scope());
        scopes.into_iter().find(|scope| !scope.is_disabled()).unwrap_or_else(Span::none)
    }

    fn end(&mut self, answer: Option<&CallResult>) {
        // Dropped after its end, it needs no time.
        if self.observations.is_empty() {
            return;
        }
        let ended = CallEnding { took: self.start.elapsed(), answer };
        // In reverse order, like nested scopes.
        self.observations.drain(..).rev().for_each(|observation| observation.end(ended));
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.end(None);
    }
}
