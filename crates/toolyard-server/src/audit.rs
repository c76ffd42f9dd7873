//! The audit trail: an append-only record of calls and operators' actions.
//!
//! - `record`: the format of a record; `arguments`: arguments in it;
//! - `observer`: queues calls as they end, without blocking them;
//! - `writer`: writes queued records to the store, and to a file if configured; `service` starts and stops it;
//! - [`query`]: reads the trail.

mod arguments;
mod observer;
pub mod query;
mod record;
mod service;
mod writer;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use toolyard_core::store::{KeySpace, LogRecord};
use toolyard_store::DurableCount;

pub(crate) use observer::actor_of;
use record::QueuedRecord;
pub use record::{AuditAction, AuditActor, AuditEvent, AuditedRun, AuditedToolChange};
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
    /// Maximum size of the trail in the store, in bytes. The oldest records are removed beyond it.
    pub bytes: u64,
}

/// Bounds and content of an [`AuditQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditQueueOptions {
    /// Maximum number of records that are not written yet.
    pub records: usize,
    /// Maximum bytes that they hold.
    pub bytes: usize,
    /// True if small arguments are kept too, because the trail has the arguments and not only digests of long ones.
    pub arguments: bool,
}

/// Queues records, which an [`AuditWriter`] writes.
pub struct AuditQueue {
    queue: Mutex<VecDeque<QueuedRecord>>,
    options: AuditQueueOptions,
    /// Number of records that are not in the store yet, and the bytes that they hold.
    unwritten: AtomicUsize,
    unwritten_bytes: AtomicUsize,
    lost: AtomicU64,
    /// Number of records that are neither in the store nor counted as lost there.
    unrecorded: UnrecordedCount,
    /// Number of records that were removed because the trail reached its size.
    removed: AtomicU64,
    next_number: AtomicU64,
    /// Prefix that distinguishes request ids of this process from those of others.
    node: String,
    not_empty: Notify,
    /// Written records, for the followers of the trail.
    written: broadcast::Sender<Arc<str>>,
}

/// A count of records that are missing in the trail.
#[derive(Debug)]
enum UnrecordedCount {
    /// It ends with the process.
    Memory(AtomicU64),
    /// It survives a kill of the process.
    Durable(DurableCount),
}

impl UnrecordedCount {
    fn count(&self) -> &AtomicU64 {
        match self {
            Self::Memory(count) => count,
            Self::Durable(count) => count.count(),
        }
    }
}

/// Number of records that a follower may be behind; then it misses the oldest ones.
const FOLLOWED_RECORDS: usize = 1024;

/// Records that were taken from the queue, and the bytes that they hold there until they are written or lost.
#[derive(Debug, Default)]
struct TakenRecords {
    records: Vec<QueuedRecord>,
    bytes: usize,
}

impl AuditQueue {
    /// Creates a queue. `unrecorded` counts the records that are missing in the trail, and begins with those of
    /// processes that were killed: they are lost.
    #[must_use]
    pub fn new(options: AuditQueueOptions, unrecorded: Option<DurableCount>) -> Arc<Self> {
        let unrecorded =
            unrecorded.map_or(UnrecordedCount::Memory(AtomicU64::new(0)), UnrecordedCount::Durable);
        let lost = unrecorded.count().load(Ordering::Relaxed);
        let mut node = [0; 4];
        // Without random bytes, requests of two processes may have the same id.
        let _zeroes = getrandom::fill(&mut node);
        Arc::new(Self {
            queue: Mutex::default(),
            options,
            unwritten: AtomicUsize::new(0),
            unwritten_bytes: AtomicUsize::new(0),
            lost: AtomicU64::new(lost),
            unrecorded,
            removed: AtomicU64::new(0),
            next_number: AtomicU64::new(0),
            node: crate::keys::key::hex(&node),
            not_empty: Notify::new(),
            written: broadcast::Sender::new(FOLLOWED_RECORDS),
        })
    }

    /// Number of records that are lost: since the start because the queue was full or the gateway stopped, and before it
    /// because the gateway was killed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Number of records removed since the start because the trail reached its size.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }

    /// Returns the records that are written from now on, as JSON.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.written.subscribe()
    }

    /// Queues an action other than a call.
    pub fn record_event(&self, event: AuditEvent) {
        self.push(QueuedRecord::Event(event));
    }

    /// Queues a change of a tool.
    pub fn record_change(&self, change: AuditedToolChange) {
        self.push(QueuedRecord::Change(Box::new(change)));
    }

    /// Queues a run of a scheduled task.
    pub fn record_run(&self, run: AuditedRun) {
        self.push(QueuedRecord::Run(Box::new(run)));
    }

    /// Queues a record. If its arguments do not fit, it has their digest instead; if that does not fit, it is lost.
    fn push(&self, mut record: QueuedRecord) {
        self.unrecorded.count().fetch_add(1, Ordering::Relaxed);
        if !self.reserve(record.bytes()) {
            record.digest();
            if !self.reserve(record.bytes()) {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queue.is_empty();
        queue.push_back(record);
        drop(queue);
        // The writer sleeps only while the queue is empty.
        if was_empty {
            self.not_empty.notify_one();
        }
    }

    /// Reserves room for one more record. Returns false if there is none.
    fn reserve(&self, bytes: usize) -> bool {
        let AuditQueueOptions { records: max_records, bytes: max_bytes, .. } = self.options;
        let records = self.unwritten.fetch_add(1, Ordering::Relaxed) + 1;
        let sum = self.unwritten_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let fits = records <= max_records && sum <= max_bytes;
        if !fits {
            self.release(1, bytes);
        }
        fits
    }

    fn release(&self, records: usize, bytes: usize) {
        self.unwritten.fetch_sub(records, Ordering::Relaxed);
        self.unwritten_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes at most `limit` of the oldest records from the queue. The taker reports their outcome:
    /// [`AuditQueue::mark_written`] or [`AuditQueue::mark_lost`].
    fn take(&self, limit: usize) -> TakenRecords {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let count = queue.len().min(limit);
        let records: Vec<_> = queue.drain(..count).collect();
        drop(queue);
        let bytes = records.iter().map(QueuedRecord::bytes).sum();
        TakenRecords { records, bytes }
    }

    /// Number of records in the queue.
    fn queue_length(&self) -> usize {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until there are queued records. They may have arrived during the last write, which left them here.
    async fn wait_for_records(&self) {
        while self.queue_length() == 0 {
            self.not_empty.notified().await;
        }
    }

    /// Counts taken records as written, and the lost ones that they report.
    fn mark_written(&self, records: usize, bytes: usize, reported: u64) {
        self.release(records, bytes);
        self.unrecorded.count().fetch_sub(records as u64 + reported, Ordering::Relaxed);
    }

    /// Passes written records to the followers of the trail.
    fn announce(&self, records: &[LogRecord]) {
        if self.written.receiver_count() > 0 {
            for record in records {
                // The last follower may have left.
                let _unfollowed = self.written.send(record.body.as_str().into());
            }
        }
    }

    /// Counts taken records as lost.
    fn mark_lost(&self, records: usize, bytes: usize) {
        self.release(records, bytes);
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Discards all unwritten records at shutdown. Returns their number.
    fn discard_unwritten(&self) -> usize {
        drop(self.take(usize::MAX));
        let records = self.unwritten.swap(0, Ordering::Relaxed);
        self.unwritten_bytes.store(0, Ordering::Relaxed);
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
        records
    }

    fn next_request_id(&self) -> String {
        format!("{}-{}", self.node, self.next_number.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
