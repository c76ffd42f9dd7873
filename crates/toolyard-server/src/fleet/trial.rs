//! Servers on trial: started to see what they offer, before anything calls them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{BackendPhase, Catalog};
use toolyard_manifest as manifest;

use super::{ServingHandler, error_output, redacted};

/// A server to try.
pub struct ServerTrial {
    /// The declaration of the server.
    pub declared: manifest::HandlerConfig,
    /// Maximum time of the trial.
    pub time: Duration,
    /// Receives the outcome. The trial ends if the receiver is dropped.
    pub done: oneshot::Sender<Result<TriedServer, TrialError>>,
}

/// A server that has come up. Dropping this value stops it unless the fleet has taken it over.
#[derive(Debug)]
pub struct TriedServer {
    /// Number of its tools.
    pub tools: usize,
    _guard: oneshot::Sender<()>,
}

/// The reason why a server did not come up. It is stopped by then.
#[derive(Debug, PartialEq, Eq)]
pub enum TrialError {
    /// It did not answer in time.
    TooSlow {
        /// Last lines of its error output, without secrets, or nothing.
        output: String,
    },
    /// It failed.
    Failed {
        /// The reason, which contains no secrets.
        reason: String,
        /// As above.
        output: String,
    },
}

impl TrialError {
    /// Returns the error of a server without error output.
    pub(super) const fn failed(reason: String) -> Self {
        Self::Failed { reason, output: String::new() }
    }

    fn with_output(self, shown: String) -> Self {
        match self {
            Self::TooSlow { .. } => Self::TooSlow { output: shown },
            Self::Failed { reason, .. } => Self::Failed { reason, output: shown },
        }
    }
}

/// Servers on trial, or up and not yet in the fleet.
#[derive(Default)]
pub(super) struct RunningTrials {
    slots: Vec<(manifest::HandlerConfig, TrialSlot)>,
    running: JoinSet<()>,
}

/// Holds a server on trial until it is taken.
#[derive(Clone)]
struct TrialSlot(Arc<Mutex<Option<ServingHandler>>>);

impl TrialSlot {
    fn take(&self) -> Option<ServingHandler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    async fn stop(&self) {
        if let Some(serving) = self.take() {
            serving.handler.backend.stop().await;
        }
    }
}

impl RunningTrials {
    /// Tries a server that has just been started.
    pub(super) fn begin(&mut self, serving: ServingHandler, trial: ServerTrial) {
        let ServerTrial { declared, time, mut done } = trial;
        let (catalog, secrets) = (serving.catalog.clone(), serving.handler.secrets.clone());
        let (backend, given) = (serving.handler.backend.clone(), error_output::given_values(&declared));
        let slot = TrialSlot(Arc::new(Mutex::new(Some(serving))));
        self.slots.retain(|(_, slot)| !slot.is_empty());
        self.slots.push((declared, slot.clone()));
        self.running.spawn(async move {
            let outcome = tokio::select! {
                outcome = outcome(catalog, time, |catalog| redacted(catalog, &secrets, &given)) => outcome,
                () = done.closed() => return slot.stop().await,
            };
            let failure = match outcome {
                Ok(tools) => {
                    let (guard, guard_dropped) = oneshot::channel();
                    let is_received = done.send(Ok(TriedServer { tools, _guard: guard })).is_ok();
                    // Nothing is ever sent: the receiver ends when the sender is dropped.
                    let _dropped = if is_received { guard_dropped.await } else { Ok(()) };
                    None
                }
                Err(why) => {
                    let output = error_output::shown(&backend.error_output(), &secrets, &given);
                    Some((done, why.with_output(output)))
                }
            };
            slot.stop().await;
            if let Some((done, why)) = failure {
                // The receiver may be dropped.
                let _left = done.send(Err(why));
            }
        });
    }

    /// Takes the tried server with this declaration for the fleet.
    pub(super) fn take(&mut self, declared: &manifest::HandlerConfig) -> Option<ServingHandler> {
        let number = self.slots.iter().position(|(declaration, _)| declaration == declared)?;
        self.slots.remove(number).1.take()
    }

    /// Waits until one trial ends. `None`: there are no trials.
    pub(super) async fn next(&mut self) -> Option<()> {
        self.running.join_next().await.map(drop)
    }

    /// Stops all servers on trial.
    pub(super) async fn stop(&mut self) {
        self.running.shutdown().await;
        for (_, slot) in &self.slots {
            slot.stop().await;
        }
    }
}

/// Returns the number of a server's tools once it has answered.
async fn outcome(
    mut catalog: watch::Receiver<Arc<Catalog>>,
    time: Duration,
    redacted: impl Fn(Arc<Catalog>) -> Arc<Catalog>,
) -> Result<usize, TrialError> {
    let first_answer = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting);
    let first_answer =
        timeout(time, first_answer).await.map_err(|_| TrialError::TooSlow { output: String::new() })?;
    let catalog = first_answer.map_err(|_| TrialError::failed("the server has stopped".to_owned()))?.clone();
    let catalog = redacted(catalog);
    match &catalog.phase {
        BackendPhase::Unavailable { reason } => Err(TrialError::failed(reason.message.clone())),
        BackendPhase::Connecting | BackendPhase::Ready => Ok(catalog.tools.len()),
    }
}
