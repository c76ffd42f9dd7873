//! What is known of all calls together.

use std::sync::atomic::{AtomicU64, Ordering};

use toolyard_core::layers::{Ended, Observation, Observer};
use toolyard_core::{Call, Code, Entry};

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
    fn begin<'a>(&'a self, _call: &mut Call, entry: &'a Entry) -> Box<dyn Observation + 'a> {
        Box::new(Counted { counters: self, entry })
    }
}

struct Counted<'a> {
    counters: &'a Counters,
    entry: &'a Entry,
}

impl Observation for Counted<'_> {
    fn end(self: Box<Self>, ended: Ended<'_>) {
        let verdict = ended.verdict();
        let counter = match verdict {
            Ok(true) => &self.counters.succeeded,
            Ok(false) => &self.counters.tool_failed,
            Err(Code::Cancelled) => &self.counters.cancelled,
            Err(_) => &self.counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(tool = %self.entry.name, took = ?ended.took, ?verdict, "a call is over");
    }
}
