//! The audit trail: an append-only record of calls and operators' actions.
//!
//! - `record`: the format of a record;
//! - `observer`: queues calls as they end, without blocking them;
//! - `writer`: writes queued records to the store, and to a file if configured; `service` starts and stops it;
//! - [`query`]: reads the trail.

mod observer;
pub mod query;
mod record;
mod service;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use toolyard_core::store::KeySpace;

pub(crate) use observer::actor_of;
use record::QueuedRecord;
pub use record::{AuditAction, AuditActor, AuditEvent, AuditedToolChange};
pub use service::AuditService;
pub use writer::AuditWriter;

/// Space of the trail in the store.
pub const AUDIT: KeySpace = KeySpace("audit");

/// Content and retention of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// True if arguments are recorded and not only their digest.
    pub arguments: bool,
    /// Names of argument members to redact at any depth, in lower case.
    pub redact: Vec<String>,
    /// A file to which each record is appended as well.
    pub file: Option<PathBuf>,
    /// Retention of records in the store. `None`: for ever.
    pub retention: Option<Duration>,
}

/// Queues records, which an [`AuditWriter`] writes.
pub struct AuditQueue {
    queue: Mutex<Vec<QueuedRecord>>,
    capacity: usize,
    /// Bytes held by queued records.
    queued_bytes: AtomicUsize,
    lost: AtomicU64,
    /// Records taken from the queue that are not in the store yet.
    unwritten: AtomicUsize,
    next_number: AtomicU64,
    /// Prefix that distinguishes request ids of this process from those of others.
    node: String,
    not_empty: Notify,
}

/// Maximum bytes of arguments in the queue. Beyond it arguments are replaced by their digest at once.
const MAX_QUEUED_BYTES: usize = 64 << 20;

impl AuditQueue {
    /// Creates a queue for `capacity` records.
    #[must_use]
    pub fn new(capacity: usize) -> Arc<Self> {
        let mut node = [0; 4];
        // Without random bytes, requests of two processes may have the same id.
        let _zeroes = getrandom::fill(&mut node);
        Arc::new(Self {
            queue: Mutex::default(),
            capacity,
            queued_bytes: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            unwritten: AtomicUsize::new(0),
            next_number: AtomicU64::new(0),
            node: crate::keys::key::hex(&node),
            not_empty: Notify::new(),
        })
    }

    /// Number of records lost since the start because the queue was full or the gateway stopped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Queues an action other than a call.
    pub fn record_event(&self, event: AuditEvent) {
        self.push(QueuedRecord::Event(event));
    }

    /// Queues a change of a tool.
    pub fn record_change(&self, change: AuditedToolChange) {
        self.push(QueuedRecord::Change(Box::new(change)));
    }

    fn push(&self, mut record: QueuedRecord) {
        let bytes = record.bytes();
        if self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_QUEUED_BYTES {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            record.digest();
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let (length, is_full) = (queue.len(), queue.len() >= self.capacity);
        if !is_full {
            queue.push(record);
        } else {
            self.queued_bytes.fetch_sub(record.bytes(), Ordering::Relaxed);
        }
        drop(queue);
        match (is_full, length) {
            (true, _) => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
            // The writer sleeps only while the queue is empty.
            (false, 0) => self.not_empty.notify_one(),
            (false, _) => {}
        }
    }

    /// Takes all queued records. The taker reports their outcome: [`AuditQueue::mark_written`] or
    /// [`AuditQueue::mark_lost`].
    fn take(&self) -> Vec<QueuedRecord> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let records = std::mem::take(&mut *queue);
        self.unwritten.fetch_add(records.len(), Ordering::Relaxed);
        drop(queue);
        self.queued_bytes.fetch_sub(records.iter().map(QueuedRecord::bytes).sum(), Ordering::Relaxed);
        records
    }

    /// Counts taken records as written.
    fn mark_written(&self, records: usize) {
        self.unwritten.fetch_sub(records, Ordering::Relaxed);
    }

    /// Counts taken records as lost.
    fn mark_lost(&self, records: usize) {
        self.mark_written(records);
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Discards all unwritten records at shutdown. Returns their number.
    fn discard_unwritten(&self) -> usize {
        drop(self.take());
        let records = self.unwritten.load(Ordering::Relaxed);
        self.mark_lost(records);
        records
    }

    fn next_request_id(&self) -> String {
        format!("{}-{}", self.node, self.next_number.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::layers::CallObserver;
    use toolyard_core::{Call, ErrorCode, Json, ToolError};

    use super::*;

    #[test]
    fn queued_arguments_are_limited_in_bytes() {
        const SIZE: usize = 4 << 20;
        let audit = AuditQueue::new(1000);
        let arguments = Json::string(&"x".repeat(SIZE));
        for _ in 0..MAX_QUEUED_BYTES / SIZE + 2 {
            let error = ToolError::new(ErrorCode::Unavailable, "Unknown tool");
            audit.unknown(&Call::tool("t", arguments.clone()), &error);
        }
        let queue = audit.queue.lock().unwrap();
        let queued_bytes: Vec<_> = queue.iter().map(QueuedRecord::bytes).collect();
        assert_eq!(queued_bytes.len(), MAX_QUEUED_BYTES / SIZE + 2, "each call is noted");
        let sum: usize = queued_bytes.iter().sum();
        assert!(sum <= MAX_QUEUED_BYTES && sum == audit.queued_bytes.load(Ordering::Relaxed), "{sum}");
        assert_eq!(queued_bytes.last(), Some(&0), "the last ones are digests");
        drop(queue);
        audit.take();
        assert_eq!(audit.queued_bytes.load(Ordering::Relaxed), 0);
    }
}
