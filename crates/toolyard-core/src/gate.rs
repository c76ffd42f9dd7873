//! A bound on calls that run at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

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

    /// Waits for a place, until `deadline` at most.
    ///
    /// # Errors
    /// [`Code::Overloaded`], at once where too many wait already.
    pub(crate) async fn enter(&self, deadline: Option<Instant>) -> Result<SemaphorePermit<'_>, ToolError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let _place = self.queue().ok_or_else(overloaded)?;
        let permit = by(deadline, self.permits.acquire()).await;
        permit.and_then(Result::ok).ok_or_else(overloaded)
    }

    /// Waits until nobody is inside: whoever came before has left. Those who have given their place back while they
    /// ask their client are not waited for.
    pub async fn emptied(&self) {
        let all = self.size.running.min(Semaphore::MAX_PERMITS);
        // Permits are counted in 32 bits where several are taken at once. The gate is never closed.
        let _closed = self.permits.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await.map(drop);
    }

    /// Takes a place if one is free.
    pub(crate) fn try_enter(&self) -> bool {
        self.permits.try_acquire().map(SemaphorePermit::forget).is_ok()
    }

    /// Waits for a place, however many wait already. The place is given back with [`Gate::leave`].
    pub(crate) async fn enter_again(&self) {
        // The gate is never closed.
        let _closed = self.permits.acquire().await.map(SemaphorePermit::forget);
    }

    /// Gives back a place whose permit was forgotten.
    pub(crate) fn leave(&self) {
        self.permits.add_permits(1);
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

/// What comes of a future by the deadline, where there is one.
pub(crate) async fn by<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_gate_is_empty_when_all_have_left() {
        let gate = Gate::new(GateSize { running: 2, waiting: 1 });
        let running = gate.enter(None).await.unwrap();
        let patience = Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, gate.emptied()).await.is_err(), "one is inside");
        drop(running);
        tokio::time::timeout(patience, gate.emptied()).await.unwrap();
        assert!(gate.enter(None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_queues_then_refuses() {
        let gate = Gate::new(GateSize { running: 1, waiting: 1 });
        let patience = || Some(Instant::now() + Duration::from_secs(1));
        let running = gate.enter(patience()).await.unwrap();
        let (queued, refused) = tokio::join!(gate.enter(patience()), gate.enter(patience()));
        assert_eq!(queued.unwrap_err().code(), Code::Overloaded, "patience ran out");
        assert_eq!(refused.unwrap_err().code(), Code::Overloaded, "the queue was full");
        drop(running);
        assert!(gate.enter(patience()).await.is_ok());
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }
}
