//! Work on stored texts that would block a thread of connections: a limited number at a time, each within a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Duration, timeout};

/// Runs a limited number of pieces of work at a time.
#[derive(Debug, Clone)]
pub struct BlockingRunner {
    pub(super) permits: Arc<Semaphore>,
    time: Duration,
}

/// The reason why work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkError {
    /// The time is over.
    TooSlow,
    /// The work panicked, or the server stops.
    Fault,
}

/// A permit for work, which lasts until all of the work is done, even after a timeout.
#[derive(Debug, Clone)]
pub(super) struct WorkPermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl BlockingRunner {
    /// Returns a runner of `concurrent` pieces of work at a time, each of which may take `time`.
    pub(super) fn new(concurrent: usize, time: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(concurrent.max(1))), time }
    }

    /// Waits for a permit, as long as a piece of work may take.
    pub(super) async fn permit(&self) -> Result<WorkPermit, WorkError> {
        match timeout(self.time, self.permits.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(WorkPermit { _permit: Arc::new(permit) }),
            Ok(Err(_)) => Err(WorkError::Fault),
            Err(_) => Err(WorkError::TooSlow),
        }
    }

    /// Waits for a permit and runs work on a blocking thread. The time of the work begins with the permit.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let permit = self.permit().await?;
        self.in_time(permit.run(work)).await
    }

    /// Runs work that needs no permit on a blocking thread.
    pub(super) async fn run_freely<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        self.in_time(blocking(work)).await
    }

    /// Waits for the end of work, as long as it may take.
    pub(super) async fn in_time<T, E: From<WorkError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        timeout(self.time, work).await.unwrap_or_else(|_| Err(WorkError::TooSlow.into()))
    }
}

impl WorkPermit {
    /// Runs work on a blocking thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let permit = self.clone();
        blocking(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkError> {
    spawn_blocking(work).await.map_err(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "work on a text in working memory broke off");
        WorkError::Fault
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_fails_its_own_work_only() {
        let runner = BlockingRunner::new(1, Duration::from_secs(60));
        let failed: Result<(), _> = runner.run(|| panic!("a fault")).await;
        assert_eq!(failed, Err(WorkError::Fault));
        assert_eq!(runner.run(|| 7).await, Ok(7));
    }
}
