//! Bounds the calls that run, and those that wait to run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::client::{Ask, AskError, Client, ClientWrapper};
use crate::error::ToolError;
use crate::gate::Gate;
use crate::json::Json;
use crate::registry::Limits;

/// The layer that lets a call through two gates: its handler's, so that one slow server does not
/// take every place, and the gateway's. While a client is asked, its call gives its places to others: people
/// think for as long as they like.
pub struct Concurrency {
    gateway: Arc<Gate>,
}

impl Concurrency {
    /// The layer for a gateway that runs as many calls as `gateway` lets through.
    #[must_use]
    pub fn new(gateway: Gate) -> Self {
        Self { gateway: Arc::new(gateway) }
    }
}

impl Layer for Concurrency {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let limits = &next.entry.handler.limits;
            if !call.client.can_be_asked() {
                // The handler first: who waits for a slow server must not hold a place of the gateway.
                let _handler = limits.gate.enter(call.deadline).await?;
                let _gateway = self.gateway.enter(call.deadline).await?;
                return next.run(call).await;
            }
            let places = Arc::new(Places::new(limits.clone(), self.gateway.clone()));
            places.enter(call.deadline).await?;
            call.client = Arc::new(Patient { client: call.client, places });
            next.run(call).await
        })
    }
}

/// The places of one call. They are given back when it ends, and while its client is asked.
#[derive(Debug)]
struct Places {
    limits: Arc<Limits>,
    gateway: Arc<Gate>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    handler: bool,
    gateway: bool,
    /// Questions that are open.
    asking: usize,
}

impl Places {
    fn new(limits: Arc<Limits>, gateway: Arc<Gate>) -> Self {
        Self { limits, gateway, held: Mutex::default() }
    }

    async fn enter(&self, deadline: Option<Instant>) -> Result<(), ToolError> {
        self.limits.gate.enter(deadline).await?.forget();
        self.held().handler = true;
        self.gateway.enter(deadline).await?.forget();
        self.held().gateway = true;
        Ok(())
    }

    /// Waits for places again. Whoever was let in before is not turned away, so that no queue is too long.
    async fn enter_again(&self) {
        if !self.held().handler {
            self.limits.gate.enter_again().await;
            let mut held = self.held();
            // Another question of the same call may have begun, or ended, meanwhile.
            if held.asking > 0 || std::mem::replace(&mut held.handler, true) {
                self.limits.gate.leave();
            }
        }
        if !self.held().gateway {
            self.gateway.enter_again().await;
            let mut held = self.held();
            if held.asking > 0 || std::mem::replace(&mut held.gateway, true) {
                self.gateway.leave();
            }
        }
    }

    /// Takes places that are free: a question that was dropped cannot wait for them any more.
    fn try_enter(&self) {
        let mut held = self.held();
        held.handler = held.handler || self.limits.gate.try_enter();
        // Never the gateway's without the handler's: a slow server's calls would keep the others out.
        held.gateway = held.gateway || (held.handler && self.gateway.try_enter());
    }

    fn leave(&self) {
        let mut held = self.held();
        if std::mem::take(&mut held.handler) {
            self.limits.gate.leave();
        }
        if std::mem::take(&mut held.gateway) {
            self.gateway.leave();
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A client that can be asked without anybody else having to wait for its answer.
#[derive(Debug)]
struct Patient {
    client: Arc<dyn Client>,
    places: Arc<Places>,
}

impl ClientWrapper for Patient {
    fn inner(&self) -> &dyn Client {
        &*self.client
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        async move {
            let asking = Asking::begin(&self.places);
            let answer = self.client.ask(ask).await;
            drop(asking);
            self.places.enter_again().await;
            answer
        }
        .boxed()
    }
}

/// An open question.
struct Asking<'a>(&'a Places);

impl<'a> Asking<'a> {
    fn begin(places: &'a Places) -> Self {
        places.held().asking += 1;
        places.leave();
        Self(places)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.asking = held.asking.saturating_sub(1);
        let last = held.asking == 0;
        drop(held);
        if last {
            self.0.try_enter();
        }
    }
}
