//! The state of the embeddings endpoint, as its responses show it.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::TextEmbedderError;

/// First and longest time without requests after a failure. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5 * 60));

/// State of the embeddings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingReport {
    /// Number of tools in the index.
    pub tools: usize,
    /// Number of tools with a vector.
    pub vectors: usize,
    /// Reason why the last request for tools failed.
    pub tool_error: Option<Arc<str>>,
    /// Reason why the last request for a query failed.
    pub query_error: Option<Arc<str>>,
}

/// Number of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingRequests {
    /// Requests with vectors as results.
    pub succeeded: u64,
    /// Other requests.
    pub failed: u64,
}

impl Add for EmbeddingRequests {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { succeeded: self.succeeded + other.succeeded, failed: self.failed + other.failed }
    }
}

/// The outcomes of one kind of requests. Only a change is logged.
pub(super) struct EndpointHealth {
    /// The kind of texts.
    texts: &'static str,
    failure: Mutex<Option<EndpointFailure>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

struct EndpointFailure {
    error: Arc<str>,
    /// Number of failures without a success between them.
    count: u32,
    next_attempt: Instant,
}

impl EndpointHealth {
    pub(super) fn new(texts: &'static str) -> Self {
        Self { texts, failure: Mutex::default(), succeeded: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    pub(super) fn succeed(&self) {
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        if self.failure().take().is_some() {
            tracing::info!(texts = self.texts, "the embedding endpoint works again");
        }
    }

    /// Counts a request whose texts were refused, which is no fault of the endpoint.
    pub(super) fn refuse(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn fail(&self, error: &TextEmbedderError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut failure = self.failure();
        let count = failure.as_ref().map_or(0, |failure| failure.count).saturating_add(1);
        let (first, longest) = BACKOFF;
        let time = first.saturating_mul(2_u32.saturating_pow((count - 1).min(16))).min(longest);
        let next_attempt = Instant::now() + time;
        *failure = Some(EndpointFailure { error: error.to_string().into(), count, next_attempt });
        drop(failure);
        if count == 1 {
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, texts = self.texts, "embeddings fail: tools are ranked by words");
        }
    }

    /// Returns the time of the next attempt, which may have passed.
    pub(super) fn next_attempt(&self) -> Instant {
        self.failure().as_ref().map_or_else(Instant::now, |failure| failure.next_attempt)
    }

    /// Returns true unless the endpoint has failed recently. After a failure, it is true for one caller.
    pub(super) fn may_be_asked(&self) -> bool {
        let mut failure = self.failure();
        let Some(failure) = &mut *failure else { return true };
        let now = Instant::now();
        let is_due = failure.next_attempt <= now;
        if is_due {
            failure.next_attempt = now + BACKOFF.0;
        }
        is_due
    }

    pub(super) fn error(&self) -> Option<Arc<str>> {
        self.failure().as_ref().map(|failure| failure.error.clone())
    }

    pub(super) fn requests(&self) -> EmbeddingRequests {
        let [succeeded, failed] = [&self.succeeded, &self.failed].map(|count| count.load(Ordering::Relaxed));
        EmbeddingRequests { succeeded, failed }
    }

    fn failure(&self) -> MutexGuard<'_, Option<EndpointFailure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
