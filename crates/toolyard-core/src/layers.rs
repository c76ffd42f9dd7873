//! The layers around every backend.
//!
//! A layer is an asynchronous function of a call and of the next layer. Their order has reasons:
//! [`crate::gateway::Gateway::layers`] is the list.

mod access_policy;
mod argument_defaults;
mod arguments;
mod call_timing;
mod concurrency;
mod deadline;
mod results;
mod text_arguments;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::call::Call;
use crate::error::{ErrorCode, ToolError};
use crate::outcome::Outcome;
use crate::registry::{Registry, RegistryEntry, may_have_links, qualify_contents};

pub use crate::long_work::BackgroundSpawner;
pub use access_policy::AccessPolicy;
pub use argument_defaults::ArgumentDefaults;
pub use arguments::ArgumentValidation;
pub use call_timing::{CallEnding, CallObserver, CallTiming, ObservedCall, UpstreamTiming};
pub use concurrency::ConcurrencyLimit;
pub use deadline::{DeadlineLayer, in_time};
pub use results::{ResultChecks, ResultValidation};
pub use text_arguments::TextArguments;

/// The result of a call, at every layer.
pub type CallResult = Result<Outcome, ToolError>;

/// A layer around every backend.
pub trait Layer: Send + Sync {
    /// Returns the name of the layer.
    fn name(&self) -> &'static str;

    /// Does its part and calls `next`, or refuses the call.
    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult>;

    /// Reports a call of an unknown entry, which passes no layer.
    fn unknown(&self, _call: &Call, _error: &ToolError) {}
}

/// The remaining layers and the backend.
#[derive(Clone, Copy)]
pub struct NextLayer<'a> {
    layers: &'a [Box<dyn Layer>],
    /// Target of the call.
    pub entry: &'a RegistryEntry,
    /// The registry in which links of results are found.
    registry: Option<&'a watch::Receiver<Arc<Registry>>>,
}

impl<'a> NextLayer<'a> {
    pub(crate) fn new(layers: &'a [Box<dyn Layer>], entry: &'a RegistryEntry) -> Self {
        Self { layers, entry, registry: None }
    }

    /// Makes the links in the result lead back to the server.
    pub(crate) const fn following_links(self, registry: &'a watch::Receiver<Arc<Registry>>) -> Self {
        Self { registry: Some(registry), ..self }
    }

    /// Continues with the next layer, or with the backend.
    pub fn run(self, call: Call) -> BoxFuture<'a, CallResult> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, NextLayer { layers, ..self }),
            None => Box::pin(dispatch(call, self.entry, self.registry)),
        }
    }
}

/// Passes the call to its backend, with the backend's own name.
async fn dispatch(
    mut call: Call,
    entry: &RegistryEntry,
    registry: Option<&watch::Receiver<Arc<Registry>>>,
) -> CallResult {
    let (target, qualifier) = entry.addressed(call.target);
    call.target = target;
    let mut answer = contained(entry, async { entry.handler.backend.call(call).await }).await;
    if let (Ok(outcome), Some(qualifier)) = (&mut answer, qualifier) {
        qualify_contents(outcome, &qualifier);
    }
    if let (Ok(outcome), Some(registry)) = (&mut answer, registry)
        && may_have_links(outcome)
    {
        let registry = registry.borrow().clone();
        registry.follow_result_links(&entry.handler.name, outcome);
    }
    // Every server may repeat secrets that it was given.
    answer.map_err(|error| error.hiding(&entry.handler.secrets))
}

/// Runs a future, and turns a panic in it into an error.
pub(crate) async fn contained(entry: &RegistryEntry, work: impl Future<Output = CallResult>) -> CallResult {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => Err(panicked(entry, panic.as_ref())),
    }
}

/// Returns the error for a panic, which fails its own call only.
fn panicked(entry: &RegistryEntry, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    tracing::error!(handler = %entry.handler.name, tool = %entry.own, panic = text, "a call panicked");
    ToolError::new(ErrorCode::ExecutionFailed, "The call failed because of a fault in the server")
}
