//! Totals over all calls.

use std::sync::atomic::{AtomicU64, Ordering};

use toolyard_core::layers::{CallEnding, CallObserver, ObservedCall};
use toolyard_core::{Call, ErrorCode, RegistryEntry};

/// Counts calls by outcome.
#[derive(Debug, Default)]
pub struct CallCounters {
    succeeded: AtomicU64,
    tool_failed: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
}

/// Totals of calls by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls whose tool succeeded.
    pub succeeded: u64,
    /// Calls whose tool reported an error.
    pub tool_failed: u64,
    /// Calls that the gateway or the upstream refused or did not answer.
    pub refused: u64,
    /// Calls that their callers cancelled.
    pub cancelled: u64,
}

impl CallCounters {
    /// Returns the current totals.
    #[must_use]
    pub fn read(&self) -> CallCounts {
        CallCounts {
            succeeded: self.succeeded.load(Ordering::Relaxed),
            tool_failed: self.tool_failed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
        }
    }
}

impl CallObserver for CallCounters {
    fn begin<'a>(&'a self, _call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        Some(Box::new(CountedCall { counters: self, entry }))
    }
}

struct CountedCall<'a> {
    counters: &'a CallCounters,
    entry: &'a RegistryEntry,
}

impl ObservedCall for CountedCall<'_> {
    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let verdict = ended.verdict();
        let counter = match verdict {
            Ok(true) => &self.counters.succeeded,
            Ok(false) => &self.counters.tool_failed,
            Err(ErrorCode::Cancelled) => &self.counters.cancelled,
            Err(_) => &self.counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(tool = %self.entry.name, took = ?ended.took, ?verdict, "call ended");
    }
}
