//! Bounds the calls that run, and those that wait to run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Answer, Layer, Next};
use crate::call::Call;
use crate::error::{Code, ToolError};

/// How many calls pass a [`Gate`].
#[derive(Debug, Clone, Copy)]
pub struct GateSize {
    /// Calls that run at once.
    pub running: usize,
    /// Calls that wait for one of them to end. One more is refused at once.
    pub waiting: usize,
}

/// A bound on calls that run at once, first come first served.
#[derive(Debug)]
pub struct Gate {
    permits: Semaphore,
    waiting: AtomicUsize,
    size: GateSize,
}

impl Gate {
    /// A gate that nothing has passed yet.
    #[must_use]
    pub fn new(size: GateSize) -> Self {
        let permits = Semaphore::new(size.running.min(Semaphore::MAX_PERMITS));
        Self { permits, waiting: AtomicUsize::new(0), size }
    }

    /// Waits for a place, `patience` at most.
    async fn enter(&self, patience: Duration) -> Result<SemaphorePermit<'_>, ToolError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let _place = self.queue().ok_or_else(overloaded)?;
        match tokio::time::timeout(patience, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(overloaded()),
        }
    }

    fn queue(&self) -> Option<Place<'_>> {
        let place = Place { waiting: &self.waiting };
        (self.waiting.fetch_add(1, Ordering::Relaxed) < self.size.waiting).then_some(place)
    }
}

fn overloaded() -> ToolError {
    ToolError::new(Code::Overloaded, "Too many calls are running: try again later")
}

/// A place in the queue, given back when it is dropped.
struct Place<'a> {
    waiting: &'a AtomicUsize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

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
            let limits = &next.entry.handler.limits;
            // The handler first: who waits for a slow server must not hold a place of the gateway.
            let _handler = limits.gate.enter(limits.timeout).await?;
            let _gateway = self.gateway.enter(limits.timeout).await?;
            next.run(call).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_gate_queues_then_refuses() {
        let gate = Gate::new(GateSize { running: 1, waiting: 1 });
        let patience = Duration::from_secs(1);
        let running = gate.enter(patience).await.unwrap();
        let (queued, refused) = tokio::join!(gate.enter(patience), gate.enter(patience));
        assert_eq!(queued.unwrap_err().code(), Code::Overloaded, "patience ran out");
        assert_eq!(refused.unwrap_err().code(), Code::Overloaded, "the queue was full");
        drop(running);
        assert!(gate.enter(patience).await.is_ok());
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }
}
