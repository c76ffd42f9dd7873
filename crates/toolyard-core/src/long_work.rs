//! Work that would block a thread of connections: run elsewhere, a bounded number at a time, with turns for each owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::call::Call;
use crate::turns::FairTurns;

/// Runs work of up to some seconds on a thread where it blocks no connection. The server provides it.
pub type BackgroundSpawner = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Returns the owner of a call: calls of one owner share its turns.
pub type OwnerOf = fn(&Call) -> Arc<str>;

/// Maximum number of concurrent pieces of work. Others wait within the deadline of their calls.
pub(crate) const AT_ONCE: usize = 2;

/// Permits for long work. Clones share them.
#[derive(Clone)]
pub struct LongWork {
    background: BackgroundSpawner,
    owner_of: OwnerOf,
    turns: FairTurns,
}

/// The work was not done: its thread is gone, or it panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work in the background broke off")]
pub struct WorkAborted;

/// Signals to running work that its call is over.
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Returns the flag, which becomes `true`.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

/// Stops the work when its call is dropped.
#[derive(Default)]
struct StopOnDrop(StopSignal);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl LongWork {
    /// Creates permits for background work, with an owner for each principal and one for all callers without a
    /// principal.
    #[must_use]
    pub fn new(background: BackgroundSpawner) -> Self {
        Self { background, owner_of: principal, turns: FairTurns::new(AT_ONCE) }
    }

    /// Changes the owners of the same permits.
    #[must_use]
    pub fn owned_by(self, owner_of: OwnerOf) -> Self {
        Self { owner_of, ..self }
    }

    /// Runs work for a call when its owner has a turn. Dropping the future ends the wait or signals the work to stop;
    /// the permit is free once it has stopped.
    ///
    /// # Errors
    /// If the work was not done.
    pub async fn run<T: Send + 'static>(
        &self,
        call: &Call,
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
    ) -> Result<T, WorkAborted> {
        let turn = self.turns.take(&(self.owner_of)(call)).await.ok_or(WorkAborted)?;
        let (done, result) = oneshot::channel();
        let dropped = StopOnDrop::default();
        let stop = dropped.0.clone();
        (self.background)(Box::new(move || {
            let made = work(stop);
            drop(turn);
            // The receiver is gone if the call is over.
            let _ = done.send(made);
        }));
        result.await.map_err(|_| WorkAborted)
    }
}

fn principal(call: &Call) -> Arc<str> {
    call.caller.principal.clone().unwrap_or_default()
}
