//! Bounds the calls that run, and those that wait to run.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::gate::Gate;

/// The layer that lets a call through two gates: its handler's, so that one slow server does not
/// take every place, and the gateway's.
pub struct Concurrency {
    gateway: Gate,
}

impl Concurrency {
    /// The layer for a gateway that runs as many calls as `gateway` lets through.
    #[must_use]
    pub fn new(gateway: Gate) -> Self {
        Self { gateway }
    }
}

impl Layer for Concurrency {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            // The handler first: who waits for a slow server must not hold a place of the gateway.
            let _handler = next.entry.handler.limits.gate.enter(call.deadline).await?;
            let _gateway = self.gateway.enter(call.deadline).await?;
            next.run(call).await
        })
    }
}
