//! Who called what: a trail that is added to, and never changed.
//!
//! - `record`: what is kept of a call;
//! - `observer`: calls are noted as they end, and nothing waits for that;
//! - `writer`: what was noted goes to the store, and to a file where the manifest wants one; `trail` starts and stops it;
//! - [`query`]: the trail is read.

mod observer;
pub mod query;
mod record;
mod trail;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use toolyard_core::store::Space;

pub(crate) use observer::by;
use record::Seen;
pub use record::{By, Deed, Event};
pub use trail::Trail;
pub use writer::Writer;

/// Where the trail stands in the store.
pub const AUDIT: Space = Space("audit");

/// What is kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// Whether the arguments are kept, and not only their digest.
    pub arguments: bool,
    /// Members of arguments that nobody is to see, at whatever depth, in lower case.
    pub redact: Vec<String>,
    /// A file that each record is added to as well.
    pub file: Option<PathBuf>,
    /// How long records are kept in the store. `None`: for ever.
    pub retention: Option<Duration>,
}

/// Takes note of calls. What it has noted is written by a [`Writer`].
pub struct Audit {
    queue: Mutex<Vec<Seen>>,
    most: usize,
    /// Bytes that are held for what waits.
    held: AtomicUsize,
    lost: AtomicU64,
    /// Records that were taken from the queue, and are not in the store yet.
    unwritten: AtomicUsize,
    numbers: AtomicU64,
    /// What tells the requests of this process from those of another.
    node: String,
    something: Notify,
}

/// Bytes of arguments that may be held for what waits. Beyond that they are made a digest of at once.
const MOST_HELD: usize = 64 << 20;

impl Audit {
    /// An audit of which so many records may wait.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        let mut node = [0; 4];
        // Where the system gives no random bytes, requests of two processes may have the same number.
        let _zeroes = getrandom::fill(&mut node);
        Arc::new(Self {
            queue: Mutex::default(),
            most,
            held: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            unwritten: AtomicUsize::new(0),
            numbers: AtomicU64::new(0),
            node: crate::keys::key::hex(&node),
            something: Notify::new(),
        })
    }

    /// How many records were lost since the start: so many waited already, or the gateway ended.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Notes something that is no call.
    pub fn note(&self, event: Event) {
        self.push(Seen::Event(event));
    }

    fn push(&self, mut seen: Seen) {
        let bytes = seen.bytes();
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_HELD {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
            seen.digest();
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let (length, is_full) = (queue.len(), queue.len() >= self.most);
        if !is_full {
            queue.push(seen);
        } else {
            self.held.fetch_sub(seen.bytes(), Ordering::Relaxed);
        }
        drop(queue);
        match (is_full, length) {
            (true, _) => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
            // The writer sleeps only while nothing is there.
            (false, 0) => self.something.notify_one(),
            (false, _) => {}
        }
    }

    /// Everything that waits. Whoever takes it says what became of it: [`Audit::settle`], or [`Audit::lose`].
    fn take(&self) -> Vec<Seen> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *queue);
        self.unwritten.fetch_add(taken.len(), Ordering::Relaxed);
        drop(queue);
        self.held.fetch_sub(taken.iter().map(Seen::bytes).sum(), Ordering::Relaxed);
        taken
    }

    /// So many of those that were taken are written.
    fn settle(&self, records: usize) {
        self.unwritten.fetch_sub(records, Ordering::Relaxed);
    }

    /// So many of those that were taken will never be written.
    fn lose(&self, records: usize) {
        self.settle(records);
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Gives up what is not written yet, at the end. How much that was.
    fn give_up(&self) -> usize {
        drop(self.take());
        let records = self.unwritten.load(Ordering::Relaxed);
        self.lose(records);
        records
    }

    fn number(&self) -> String {
        format!("{}-{}", self.node, self.numbers.fetch_add(1, Ordering::Relaxed))
    }
}
