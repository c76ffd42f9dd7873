//! Phases of handlers, and of all of them together.

use serde::Serialize;
use toolyard_core::BackendPhase;
use toolyard_core::cause::CauseCode;

use crate::fleet::HandlerStatus;

/// Overall phase of all registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum OverallPhase {
    /// Some handlers are still connecting, and none has failed.
    Pending,
    /// All handlers are ready.
    Ready,
    /// Some handlers are not ready.
    Degraded,
    /// No handler is ready.
    Failed,
}

/// Returns the number of ready handlers and of handlers that wait for their tools.
pub(super) fn count(statuses: &[HandlerStatus]) -> (usize, usize) {
    let ready = statuses.iter().filter(|standing| standing.phase == BackendPhase::Ready).count();
    (ready, statuses.iter().filter(|standing| is_pending(&standing.phase)).count())
}

/// True if a handler waits for its tools: it is connecting, or has no cluster to find its Services in.
pub(super) fn is_pending(phase: &BackendPhase) -> bool {
    match phase {
        BackendPhase::Connecting => true,
        BackendPhase::Unavailable { reason } => reason.code == CauseCode::NoCluster,
        BackendPhase::Ready => false,
    }
}

impl OverallPhase {
    /// Returns the phase of these handlers.
    pub(super) fn of(statuses: &[HandlerStatus]) -> Self {
        match count(statuses) {
            (ready, _) if ready == statuses.len() => Self::Ready,
            (ready, waiting) if ready + waiting == statuses.len() => Self::Pending,
            (0, 0) => Self::Failed,
            _ => Self::Degraded,
        }
    }
}
