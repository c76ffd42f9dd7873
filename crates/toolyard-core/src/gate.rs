//! A limit on concurrent calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::error::{ErrorCode, ToolError};

/// The size of a [`CallGate`].
#[derive(Debug, Clone, Copy)]
pub struct GateSize {
    /// Maximum number of running calls.
    pub running: usize,
    /// Maximum number of waiting calls. Further calls are refused at once.
    pub waiting: usize,
}

/// A limit on concurrent calls, first come first served.
#[derive(Debug)]
pub struct CallGate {
    permits: Semaphore,
    waiting: AtomicUsize,
    size: GateSize,
}

impl CallGate {
    /// Creates a gate without calls.
    #[must_use]
    pub fn new(size: GateSize) -> Self {
        let permits = Semaphore::new(size.running.min(Semaphore::MAX_PERMITS));
        Self { permits, waiting: AtomicUsize::new(0), size }
    }

    /// Waits for a permit, at most until `deadline`.
    ///
    /// # Errors
    /// [`ErrorCode::Overloaded`], at once if too many calls wait already.
    pub(crate) async fn enter(&self, deadline: Option<Instant>) -> Result<SemaphorePermit<'_>, ToolError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let _place = self.queue().ok_or_else(overloaded)?;
        let permit = by(deadline, self.permits.acquire()).await;
        permit.and_then(Result::ok).ok_or_else(overloaded)
    }

    /// Waits until all calls from before have left. Calls that have released their permit while their client is asked
    /// are not waited for.
    pub async fn emptied(&self) {
        let all = self.size.running.min(Semaphore::MAX_PERMITS);
        // Permits are counted in 32 bits where several are taken at once. The gate is never closed.
        let _closed = self.permits.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await.map(drop);
    }

    /// Takes a permit if one is free.
    pub(crate) fn try_enter(&self) -> bool {
        self.permits.try_acquire().map(SemaphorePermit::forget).is_ok()
    }

    /// Waits for a permit, whatever the length of the queue. It is returned with [`CallGate::leave`].
    pub(crate) async fn enter_again(&self) {
        // The gate is never closed.
        let _closed = self.permits.acquire().await.map(SemaphorePermit::forget);
    }

    /// Returns a permit that was forgotten.
    pub(crate) fn leave(&self) {
        self.permits.add_permits(1);
    }

    fn queue(&self) -> Option<GatePermit<'_>> {
        let place = GatePermit { waiting: &self.waiting };
        (self.waiting.fetch_add(1, Ordering::Relaxed) < self.size.waiting).then_some(place)
    }
}

fn overloaded() -> ToolError {
    ToolError::new(ErrorCode::Overloaded, "Too many calls are running: try again later")
}

/// A position in the queue, released on drop.
struct GatePermit<'a> {
    waiting: &'a AtomicUsize,
}

impl Drop for GatePermit<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the result of a future, or `None` after the deadline.
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
    async fn permits_are_returned() {
        let gate = CallGate::new(GateSize { running: 2, waiting: 1 });
        let running = gate.enter(None).await.unwrap();
        let patience = Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, gate.emptied()).await.is_err(), "one is inside");
        drop(running);
        tokio::time::timeout(patience, gate.emptied()).await.unwrap();
        assert!(gate.enter(None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn gate_queues_then_refuses() {
        let gate = CallGate::new(GateSize { running: 1, waiting: 1 });
        let patience = || Some(Instant::now() + Duration::from_secs(1));
        let running = gate.enter(patience()).await.unwrap();
        let (queued, refused) = tokio::join!(gate.enter(patience()), gate.enter(patience()));
        assert_eq!(queued.unwrap_err().code(), ErrorCode::Overloaded, "patience ran out");
        assert_eq!(refused.unwrap_err().code(), ErrorCode::Overloaded, "the queue was full");
        drop(running);
        assert!(gate.enter(patience()).await.is_ok());
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }
}
