//! Limits running and waiting calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{CallResult, Layer, NextLayer};
use crate::call::Call;
use crate::client::{Client, ClientWrapper, InputRequest, InputRequestError};
use crate::error::ToolError;
use crate::gate::CallGate;
use crate::json::Json;
use crate::registry::CallLimits;

/// Lets a call pass two gates: its handler's, so that one slow server does not use up all permits, and the gateway's.
/// While a client is asked its call releases the permits, because people may take any time to answer. A call that another
/// one makes while it runs takes no permit that its parent holds.
pub struct ConcurrencyLimit {
    gateway: Arc<CallGate>,
}

impl ConcurrencyLimit {
    /// Creates the layer with the gateway's gate.
    #[must_use]
    pub fn new(gateway: CallGate) -> Self {
        Self { gateway: Arc::new(gateway) }
    }
}

impl Layer for ConcurrencyLimit {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn call<'a>(&'a self, mut call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let limits = &next.entry.handler.limits;
            if let Some(parent) = call.parent.as_ref().and_then(|parent| parent.running_in.clone()) {
                let needs_permit = parent != next.entry.handler.name;
                let _handler =
                    if needs_permit { Some(limits.gate.enter(call.deadline).await?) } else { None };
                return next.run(call).await;
            }
            if !call.client.can_be_asked() {
                // The handler's gate first: a call that waits for a slow server must not hold a permit of the gateway.
                let _handler = limits.gate.enter(call.deadline).await?;
                let _gateway = self.gateway.enter(call.deadline).await?;
                return next.run(call).await;
            }
            let places = Arc::new(CallPermits::new(limits.clone(), self.gateway.clone()));
            places.enter(call.deadline).await?;
            call.client = Arc::new(PermitReleasingClient { client: call.client, places });
            next.run(call).await
        })
    }
}

/// The permits of one call, released when it ends and while its client is asked.
#[derive(Debug)]
struct CallPermits {
    limits: Arc<CallLimits>,
    gateway: Arc<CallGate>,
    state: Mutex<PermitState>,
}

#[derive(Debug, Default)]
struct PermitState {
    handler: bool,
    gateway: bool,
    /// Number of open questions.
    asking: usize,
}

impl CallPermits {
    fn new(limits: Arc<CallLimits>, gateway: Arc<CallGate>) -> Self {
        Self { limits, gateway, state: Mutex::default() }
    }

    async fn enter(&self, deadline: Option<Instant>) -> Result<(), ToolError> {
        self.limits.gate.enter(deadline).await?.forget();
        self.state().handler = true;
        self.gateway.enter(deadline).await?.forget();
        self.state().gateway = true;
        Ok(())
    }

    /// Waits for the permits again. A call that was admitted before is never refused, whatever the length of the queue.
    async fn enter_again(&self) {
        if !self.state().handler {
            self.limits.gate.enter_again().await;
            let mut state = self.state();
            // Another question of the same call may have begun or ended meanwhile.
            if state.asking > 0 || std::mem::replace(&mut state.handler, true) {
                self.limits.gate.leave();
            }
        }
        if !self.state().gateway {
            self.gateway.enter_again().await;
            let mut state = self.state();
            if state.asking > 0 || std::mem::replace(&mut state.gateway, true) {
                self.gateway.leave();
            }
        }
    }

    /// Takes free permits, for a question that was dropped and cannot wait.
    fn try_enter(&self) {
        let mut state = self.state();
        state.handler = state.handler || self.limits.gate.try_enter();
        // Never the gateway's without the handler's: calls of a slow server would block the others.
        state.gateway = state.gateway || (state.handler && self.gateway.try_enter());
    }

    fn leave(&self) {
        let mut state = self.state();
        if std::mem::take(&mut state.handler) {
            self.limits.gate.leave();
        }
        if std::mem::take(&mut state.gateway) {
            self.gateway.leave();
        }
    }

    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermits {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A client whose call releases its permits while it is asked.
#[derive(Debug)]
struct PermitReleasingClient {
    client: Arc<dyn Client>,
    places: Arc<CallPermits>,
}

impl ClientWrapper for PermitReleasingClient {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        async move {
            let asking = PausedPermits::begin(&self.places);
            let answer = self.client.ask(ask).await;
            drop(asking);
            self.places.enter_again().await;
            answer
        }
        .boxed()
    }
}

/// An open question, during which the permits are released.
struct PausedPermits<'a>(&'a CallPermits);

impl<'a> PausedPermits<'a> {
    fn begin(places: &'a CallPermits) -> Self {
        places.state().asking += 1;
        places.leave();
        Self(places)
    }
}

impl Drop for PausedPermits<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.asking = state.asking.saturating_sub(1);
        let last = state.asking == 0;
        drop(state);
        if last {
            self.0.try_enter();
        }
    }
}
