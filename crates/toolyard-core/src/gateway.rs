//! The one door.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::call::{Call, Caller, Target};
use crate::error::ToolError;
use crate::function::{Functions, NoFunctions};
use crate::gate::{Gate, GateSize};
use crate::layers::{
    Answer, Arguments, Concurrency, Deadline, Layer, Leg, Meter, Next, Observer, Policy, Shape, contained,
};
use crate::outcome::{Outcome, Owner, Started};
use crate::registry::{Entry, Registry};

/// The door that every call passes, whatever it came by: search for `invoke` to find all frontends.
pub struct Gateway {
    registry: watch::Receiver<Arc<Registry>>,
    functions: Arc<dyn Functions>,
    layers: Vec<Box<dyn Layer>>,
}

/// Who is told of calls.
#[derive(Default)]
pub struct Observers {
    /// Of whole calls: see [`Meter`].
    pub of_calls: Vec<Arc<dyn Observer>>,
    /// Of their way to their owners and back: see [`Leg`].
    pub of_legs: Vec<Arc<dyn Observer>>,
}

impl Gateway {
    /// A gateway over a registry that may change, with the given layers, outermost first.
    #[must_use]
    pub fn new(registry: watch::Receiver<Arc<Registry>>, layers: Vec<Box<dyn Layer>>) -> Self {
        Self { registry, functions: Arc::new(NoFunctions), layers }
    }

    /// The same with hosted functions, which [`Target::Function`] reaches.
    #[must_use]
    pub fn with_functions(self, functions: Arc<dyn Functions>) -> Self {
        Self { functions, ..self }
    }

    /// Every layer in its order. `results` sees to it that results fit who reads them, where somebody does.
    #[must_use]
    pub fn layers(
        observers: Observers,
        size: GateSize,
        results: Option<Box<dyn Layer>>,
    ) -> Vec<Box<dyn Layer>> {
        let mut layers: Vec<Box<dyn Layer>> = vec![
            // Outermost, so that refusals are counted and the time of waiting is part of the call's.
            Box::new(Meter::new(observers.of_calls)),
            // It refuses before anything is spent on the call.
            Box::new(Policy),
            // Before the arguments are looked at: checking them is work too.
            Box::new(Concurrency::new(Gate::new(size))),
            // Behind policy, so that the schema of a hidden tool does not show in what it complains about.
            Box::new(Arguments),
        ];
        // Outside of whatever repeats a call, so that only the final result is stored.
        layers.extend(results);
        layers.extend([
            // Behind the check: what is pinned is not in the schema that callers see.
            Box::new(Shape) as Box<dyn Layer>,
            // One budget, set when the call came in: for waiting, and for all the attempts together.
            Box::new(Deadline),
            // Innermost: what its owner takes, and the last word about the context of the trace.
            Box::new(Leg::new(observers.of_legs)),
            // Retry and breaker come next, in the backends that want them: what may be repeated, and when,
            // shows in the protocol only (see `crate::retry`).
        ]);
        layers
    }

    /// Runs a call: finds the one who owns the name, and goes through the layers to it.
    ///
    /// # Errors
    /// When the yard cannot run the call or its backend does not answer. A tool that ran and failed is
    /// an outcome.
    pub async fn invoke(&self, mut call: Call) -> Answer {
        let entry = self.find(&mut call).await;
        let entry =
            entry.inspect_err(|error| self.layers.iter().for_each(|layer| layer.unknown(&call, error)))?;
        let limit = Instant::now().checked_add(entry.handler.limits.timeout);
        call.deadline = [call.deadline, limit].into_iter().flatten().min();
        let answer = contained(&entry, Next::new(&self.layers, &entry).run(call)).await?;
        Ok(owned(answer, &entry))
    }

    /// What a call is to reach, for whoever makes it. One that stands for another becomes that one, so that every layer holds
    /// for what is meant: once, because what is meant is a call like all others.
    async fn find(&self, call: &mut Call) -> Result<Arc<Entry>, ToolError> {
        if let Target::Function(name) = &call.target {
            return self.functions.find(name).await;
        }
        let registry = self.settled_for(&call.caller).await;
        let entry = registry.resolve(&call.target)?;
        let is_tool = matches!(call.target, Target::Tool(_));
        let backend = Some(&entry.handler.backend).filter(|_| is_tool);
        match backend.and_then(|backend| backend.forward(&entry.own, call, &registry)) {
            None => Ok(entry.clone()),
            Some(meant) => {
                *call = meant;
                registry.resolve(&call.target).cloned()
            }
        }
    }

    /// A client has other folders than it had.
    pub fn roots_changed(&self, caller: &Caller) {
        for backend in Registry::seen_by(self.registry(), caller).backends() {
            backend.roots_changed(caller);
        }
    }

    /// What there is, once the handlers have had their time to answer after the start.
    pub async fn settled(&self) -> Arc<Registry> {
        let registry = self.registry();
        if registry.is_settled() {
            return registry;
        }
        let mut changes = self.registry.clone();
        // A registry that will not change any more is as settled as it gets.
        changes.wait_for(|registry| registry.is_settled()).await.map_or(registry, |settled| settled.clone())
    }

    /// What there is for this caller, once the handlers have had their time to answer.
    pub async fn settled_for(&self, caller: &Caller) -> Arc<Registry> {
        Registry::seen_by(self.settled().await, caller)
    }

    /// What there is now.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.borrow().clone()
    }

    /// What there is now, and every change of it.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Registry>> {
        self.registry.clone()
    }
}

/// A task that was begun is known by who goes on with it.
fn owned(outcome: Outcome, entry: &Entry) -> Outcome {
    let owner = || Owner { tool: entry.name.clone(), handler: entry.handler.name.clone() };
    match outcome {
        Outcome::Task(started) => Outcome::Task(Started { owner: Some(owner()), ..started }),
        other => other,
    }
}

#[cfg(test)]
mod tests;
