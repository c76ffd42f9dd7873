//! The gateway: every call of every frontend passes [`Gateway::invoke`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::call::{Call, CallTarget, Caller, TaskAction, TaskReference};
use crate::error::{ErrorCode, ToolError};
use crate::function::{FunctionLookup, NoFunctionLookup};
use crate::gate::{CallGate, GateSize};
use crate::json::{DEFAULT_DEPTH, Object};
use crate::layers::{
    AccessPolicy, ArgumentDefaults, ArgumentValidation, CallObserver, CallResult, CallTiming,
    ConcurrencyLimit, DeadlineLayer, Layer, NextLayer, ResultValidation, TextArguments, UpstreamTiming,
    contained,
};
use crate::long_work::LongWork;
use crate::outcome::{CallOutput, Outcome, StartedTask, TaskOwner};
use crate::output_schema;
use crate::registry::{Registry, RegistryEntry};

/// Maximum time of cancelling a task.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// The entry point of all calls: search for `invoke` to find all frontends.
pub struct Gateway {
    registry: watch::Receiver<Arc<Registry>>,
    functions: Arc<dyn FunctionLookup>,
    layers: Vec<Box<dyn Layer>>,
}

/// Limits of all calls.
#[derive(Debug, Clone, Copy)]
pub struct GatewayLimits {
    /// Number of calls that run and wait.
    pub size: GateSize,
    /// Maximum nesting of arguments and structured results.
    pub max_depth: usize,
}

/// The limits of a number of calls, with the default nesting.
impl From<GateSize> for GatewayLimits {
    fn from(size: GateSize) -> Self {
        Self { size, max_depth: DEFAULT_DEPTH }
    }
}

/// Observers of calls.
#[derive(Default)]
pub struct Observers {
    /// Observers of whole calls: see [`CallTiming`].
    pub of_calls: Vec<Arc<dyn CallObserver>>,
    /// Observers of upstream requests: see [`UpstreamTiming`].
    pub of_upstream_requests: Vec<Arc<dyn CallObserver>>,
}

impl Gateway {
    /// Creates a gateway over a registry that may change, with the given layers, outermost first.
    #[must_use]
    pub fn new(registry: watch::Receiver<Arc<Registry>>, layers: Vec<Box<dyn Layer>>) -> Self {
        Self { registry, functions: Arc::new(NoFunctionLookup), layers }
    }

    /// Adds hosted functions, which [`CallTarget::Function`] reaches.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn FunctionLookup>) -> Self {
        Self { functions, ..self }
    }

    /// Returns every layer in order. `long_work` runs work that would block a thread of connections; `results` are the
    /// layers that store large results, if a caller needs that, outermost first.
    #[must_use]
    pub fn layers(
        observers: Observers,
        limits: impl Into<GatewayLimits>,
        long_work: Option<LongWork>,
        results: impl IntoIterator<Item = Box<dyn Layer>>,
    ) -> Vec<Box<dyn Layer>> {
        let GatewayLimits { size, max_depth } = limits.into();
        let mut layers: Vec<Box<dyn Layer>> = vec![
            // Outermost, so that refusals are counted and the time of waiting is part of the call's.
            Box::new(CallTiming::new(observers.of_calls)),
            // It refuses before anything is spent on the call.
            Box::new(AccessPolicy),
            // Before validation of arguments, which is work too.
            Box::new(ConcurrencyLimit::new(CallGate::new(size))),
            // Before validation, which refuses a number that is given as text.
            Box::new(TextArguments),
            // After the access policy, so that no error reveals the schema of a hidden tool.
            Box::new(ArgumentValidation::by(long_work.clone()).nested_at_most(max_depth)),
        ];
        // Outside of everything that repeats a call, so that only the final result is stored.
        layers.extend(results);
        layers.extend([
            // After validation: pinned arguments are not in the schema that callers see.
            Box::new(ArgumentDefaults) as Box<dyn Layer>,
            // One deadline, set when the call arrived, for waiting and for all attempts together.
            Box::new(DeadlineLayer),
            // Within the deadline, and before a large result is stored.
            Box::new(ResultValidation::by(long_work).nested_at_most(max_depth)),
            // Innermost: the time of the upstream request alone, with the final trace context.
            Box::new(UpstreamTiming::new(observers.of_upstream_requests)),
            // Retries and circuit breakers are part of the backends that need them: only the protocol shows what may be
            // repeated, and when (see `crate::retry`).
        ]);
        layers
    }

    /// Runs a call: finds the entry of its name, and passes the layers to its backend.
    ///
    /// # Errors
    /// If the gateway cannot run the call or its backend does not answer. A tool that ran and failed is an outcome.
    pub async fn invoke(&self, mut call: Call) -> CallResult {
        let entry = self.find(&mut call).await;
        let entry =
            entry.inspect_err(|error| self.layers.iter().for_each(|layer| layer.unknown(&call, error)))?;
        let limit = Instant::now().checked_add(entry.handler.limits.timeout);
        call.deadline = [call.deadline, limit].into_iter().flatten().min();
        call.handler_deadline = limit;
        let ends_at_limit = call.deadline == limit;
        let expects_objects = call.client.expects_objects();
        let layers = NextLayer::new(&self.layers, &entry).following_links(&self.registry);
        match contained(&entry, layers.run(call)).await {
            Ok(answer) => Ok(finished(answer, &entry, expects_objects)),
            Err(error) if ends_at_limit && limit.is_some_and(|limit| limit <= Instant::now()) => {
                Err(error.timed_out_after(entry.handler.limits.timeout))
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a call of a caller that can only receive a result. A task that its server starts is cancelled.
    ///
    /// # Errors
    /// As [`Self::invoke`], or [`ErrorCode::MissingCapability`] if the tool requests input or continues as a task.
    pub async fn invoke_to_end(&self, call: Call) -> Result<CallOutput, ToolError> {
        let about_task = Call { params: Object::new(), ..call.clone() };
        let reason = match self.invoke(call).await? {
            Outcome::Done(output) => return Ok(output),
            Outcome::NeedsInput(_) => "the tool requests input from its caller, which only MCP supports",
            Outcome::Task(started) => {
                self.cancel_task(about_task, started).await;
                "the tool continues as a task, which only MCP supports"
            }
        };
        Err(ToolError::new(ErrorCode::MissingCapability, reason))
    }

    /// Requests the cancellation of a task. A failure leaves the task to its server.
    async fn cancel_task(&self, call: Call, started: StartedTask) {
        let id = started.body.get_str("taskId").map(Arc::from);
        let (Some(id), Some(TaskOwner { tool, handler })) = (id, started.owner) else { return };
        let task = TaskReference { tool, handler, id, action: TaskAction::Cancel };
        let cancellation = Call { target: CallTarget::Task(task), ..call };
        let _not_in_time = timeout(CANCEL_TIME, self.invoke(cancellation)).await;
    }

    /// Finds the entry of a call. A call that stands for another becomes that one, so that every layer applies to the
    /// intended call. This happens once: the intended call is an ordinary one.
    async fn find(&self, call: &mut Call) -> Result<Arc<RegistryEntry>, ToolError> {
        if let CallTarget::Function(name) = &call.target {
            return self.functions.find(name).await;
        }
        let registry = self.settled_for(&call.caller).await;
        let entry = match &call.target {
            CallTarget::Tool(name) => registry.tool_or_nearest(name)?,
            target => registry.resolve(target)?,
        };
        let is_tool = matches!(call.target, CallTarget::Tool(_));
        let backend = Some(&entry.handler.backend).filter(|_| is_tool);
        match backend.and_then(|backend| backend.forward(&entry.own, call, &registry)) {
            None => Ok(entry.clone()),
            Some(forwarded) => {
                *call = forwarded;
                registry.resolve(&call.target).cloned()
            }
        }
    }

    /// Reports that the roots of a client have changed.
    pub fn roots_changed(&self, caller: &Caller) {
        for backend in Registry::view_for(self.registry(), caller).backends() {
            backend.roots_changed(caller);
        }
    }

    /// Returns the registry once the handlers have had their time to answer after the start.
    pub async fn settled(&self) -> Arc<Registry> {
        let registry = self.registry();
        if registry.is_settled() {
            return registry;
        }
        let mut changes = self.registry.clone();
        // A registry that cannot change any more counts as settled.
        changes.wait_for(|registry| registry.is_settled()).await.map_or(registry, |settled| settled.clone())
    }

    /// Returns the caller's view once the handlers have had their time to answer.
    pub async fn settled_for(&self, caller: &Caller) -> Arc<Registry> {
        Registry::view_for(self.settled().await, caller)
    }

    /// Returns the current registry.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.borrow().clone()
    }

    /// Returns the current registry, and every change of it.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Registry>> {
        self.registry.clone()
    }
}

/// Adds the owner to a task that was started, and makes an object of the result of a tool for a client that expects one.
fn finished(outcome: Outcome, entry: &RegistryEntry, expects_objects: bool) -> Outcome {
    let owner = || TaskOwner { tool: entry.name.clone(), handler: entry.handler.name.clone() };
    match outcome {
        Outcome::Task(started) => Outcome::Task(StartedTask { owner: Some(owner()), ..started }),
        Outcome::Done(mut output) if expects_objects => {
            if let Some(tool) = &entry.tool {
                output_schema::wrap_result(&mut output, tool.output_form());
            }
            Outcome::Done(output)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
