//! What is known of all calls together.

use std::sync::atomic::{AtomicU64, Ordering};

use toolyard_core::Code;
use toolyard_core::layers::{Finished, Observer};

/// Counts calls by how they ended.
#[derive(Debug, Default)]
pub struct Counters {
    succeeded: AtomicU64,
    tool_failed: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The tool ran and did not say that it failed.
    pub succeeded: u64,
    /// The tool ran and said that it failed.
    pub tool_failed: u64,
    /// The gateway or the server refused or did not answer.
    pub refused: u64,
    /// The caller withdrew the call.
    pub cancelled: u64,
}

impl Counters {
    /// The counts now.
    #[must_use]
    pub fn read(&self) -> Counts {
        Counts {
            succeeded: self.succeeded.load(Ordering::Relaxed),
            tool_failed: self.tool_failed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
        }
    }
}

impl Observer for Counters {
    fn finished(&self, call: Finished<'_>) {
        let counter = match call.verdict {
            Ok(true) => &self.succeeded,
            Ok(false) => &self.tool_failed,
            Err(Code::Cancelled) => &self.cancelled,
            Err(_) => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(tool = %call.entry.name, took = ?call.took, verdict = ?call.verdict, "a call is over");
    }
}
