//! What stands around every backend.
//!
//! A layer is an asynchronous function of a call and of what comes next. Each has its place in the
//! order for a reason: [`crate::gateway::Gateway::layers`] is the list.

mod arguments;
mod concurrency;
mod deadline;
mod meter;
mod policy;
mod shape;

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::call::Call;
use crate::error::{Code, ToolError};
use crate::outcome::Outcome;
use crate::registry::{Entry, qualify_contents};

pub use arguments::Arguments;
pub use concurrency::Concurrency;
pub use deadline::{Deadline, in_time};
pub use meter::{Ended, Leg, Meter, Observation, Observer};
pub use policy::Policy;
pub use shape::Shape;

/// How a call ends, at every step of its way.
pub type Answer = Result<Outcome, ToolError>;

/// Something that stands around every backend.
pub trait Layer: Send + Sync {
    /// What the list of layers calls it.
    fn name(&self) -> &'static str;

    /// Does its part and calls `next`, or refuses.
    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer>;

    /// Hears of a call that goes through no layer, because nobody has what it asks for.
    fn unknown(&self, _call: &Call, _error: &ToolError) {}
}

/// The rest of the way: the layers that are left, and the backend.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Box<dyn Layer>],
    /// Where the call goes.
    pub entry: &'a Entry,
}

impl<'a> Next<'a> {
    pub(crate) fn new(layers: &'a [Box<dyn Layer>], entry: &'a Entry) -> Self {
        Self { layers, entry }
    }

    /// Goes on with the next layer, or with the backend.
    pub fn run(self, call: Call) -> BoxFuture<'a, Answer> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, Next { layers, ..self }),
            None => Box::pin(dispatch(call, self.entry)),
        }
    }
}

/// Hands the call to its backend, under the name that the owner knows.
async fn dispatch(mut call: Call, entry: &Entry) -> Answer {
    let (target, qualifier) = entry.addressed(call.target);
    call.target = target;
    let mut answer = contained(entry, async { entry.handler.backend.call(call).await }).await;
    if let (Ok(outcome), false) = (&mut answer, qualifier.is_empty()) {
        qualify_contents(outcome, qualifier);
    }
    // Whatever backend it is, its server may have said what it was given.
    answer.map_err(|error| error.hiding(&entry.handler.secrets))
}

/// Runs a future; a panic in it becomes an error.
pub(crate) async fn contained(entry: &Entry, work: impl Future<Output = Answer>) -> Answer {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => Err(panicked(entry, panic.as_ref())),
    }
}

/// A panic fails its own call and nothing else.
fn panicked(entry: &Entry, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    tracing::error!(handler = %entry.handler.name, tool = %entry.own, panic = text, "a call panicked");
    ToolError::new(Code::ExecutionFailed, "The call failed because of a fault in the server")
}
