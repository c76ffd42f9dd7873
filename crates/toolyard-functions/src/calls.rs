//! What was called: a log of each function's calls, which no call waits for.
//!
//! - [`LogEntry`]: what is kept of a call; [`LogQuery`], [`LogPage`]: how it is read;
//! - `Journal`: takes note, within bounds, and writes what it has noted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use toolyard_core::access::Price;
use toolyard_core::store::{Query, Record, Space, Store, StoreError};
use toolyard_core::timestamp::iso_8601;

use crate::edition::Edition;
use crate::invoke::{InvokeError, Invoked};

/// Where the log is.
pub(crate) const CALLS: Space = Space("function-calls");

/// What is kept of what a call printed, in bytes: the beginning.
const LONGEST_OUTPUT: usize = 16 << 10;

/// What is kept of why a call failed, in bytes.
const LONGEST_ERROR: usize = 2 << 10;

/// Records that come together are written together.
const TOGETHER: Duration = Duration::from_millis(100);

/// How many are written at a time.
const BATCH: usize = 500;

/// The first wait after the store was in trouble, and the longest. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// How often it is looked for what is older than it is to be kept.
const TRIM_EVERY: Duration = Duration::from_secs(60 * 60);

/// How many entries are given at most.
const MOST: usize = 1000;

/// A call, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// When it began, in ISO 8601.
    pub time: String,
    /// The function.
    pub function: String,
    /// Its version, such as `1.2.0` or `draft`.
    pub version: String,
    /// The call's own id.
    pub request_id: String,
    /// `ok`; `error`, where the function says that it failed; `failed`, where it could not say anything; or why it was not
    /// answered: `timeout`, `overloaded`, `unavailable`, `cancelled`; or why it did not come to its function: `quota_exhausted`,
    /// `rate_limited`.
    pub outcome: String,
    /// How long it took.
    pub duration_ms: f64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// What it cost.
    pub cost: String,
    /// What it has printed: the beginning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl LogEntry {
    /// A call that costs nothing: of a function, in a version, with an id.
    fn new(time: SystemTime, (function, version, request_id): (&str, &str, &str), outcome: &str) -> Self {
        Self {
            time: iso_8601(time),
            function: function.to_owned(),
            version: version.to_owned(),
            request_id: request_id.to_owned(),
            outcome: outcome.to_owned(),
            duration_ms: 0.0,
            bytes: 0,
            cost: Price::default().to_string(),
            output: String::new(),
            error: None,
        }
    }
}

/// Which entries somebody wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Those of this version.
    pub version: Option<String>,
    /// Those that ended so.
    pub outcome: Option<String>,
    /// The one of this id.
    pub request_id: Option<String>,
    /// Then or later.
    pub since: Option<SystemTime>,
    /// Before then.
    pub until: Option<SystemTime>,
    /// The next page: what [`LogPage::next`] says.
    pub before: Option<u64>,
    /// How many at most; a hundred where it is not said.
    pub limit: Option<usize>,
}

/// Entries, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogPage {
    /// The entries.
    pub entries: Vec<LogEntry>,
    /// Where the next page begins, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Reads a page of a function's log.
pub(crate) async fn read(store: &dyn Store, id: &str, wanted: LogQuery) -> Result<LogPage, StoreError> {
    let LogQuery { version, outcome, request_id, since, until, before, limit } = wanted;
    let tags = [
        ("function", Some(id.to_owned())),
        ("version", version),
        ("outcome", outcome),
        ("request", request_id),
    ];
    let tags = tags.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect();
    let limit = limit.unwrap_or(100).min(MOST);
    let kept = store.read(CALLS, Query { tags, since, until, before, limit }).await?;
    let next = kept.last().filter(|_| kept.len() == limit).map(|record| record.number);
    // What a later program has written otherwise is passed over.
    let entries = kept.iter().filter_map(|record| serde_json::from_str(&record.body).ok()).collect();
    Ok(LogPage { entries, next })
}

/// A call that runs. It is noted when this ends: as cancelled, where it is dropped.
pub(crate) struct Noted<'a> {
    journal: &'a Journal,
    time: SystemTime,
    begun: Instant,
    entry: Option<LogEntry>,
}

impl<'a> Noted<'a> {
    pub(crate) fn begin(journal: &'a Journal, edition: &Edition, request_id: &str) -> Self {
        let time = SystemTime::now();
        let mut entry = LogEntry::new(time, (&edition.id, &edition.version, request_id), "cancelled");
        entry.cost = edition.price.to_string();
        Self { journal, time, begun: Instant::now(), entry: Some(entry) }
    }

    pub(crate) fn end(mut self, ended: &Result<Invoked, InvokeError>, price: Price) {
        let Some(entry) = &mut self.entry else { return };
        match ended {
            Ok(invoked) => {
                let is_failure = invoked.reply.is_failure();
                let outcome = match invoked.failure {
                    Some(_) => "failed",
                    None if is_failure => "error",
                    None => "ok",
                };
                entry.outcome = outcome.to_owned();
                entry.bytes = invoked.reply.to_json().as_bytes().len() as u64;
                entry.cost = invoked.cost.to_string();
                entry.output = beginning(&invoked.log, LONGEST_OUTPUT);
                let failure = invoked.failure.as_ref();
                entry.error = failure.map(|failure| beginning(&failure.to_string(), LONGEST_ERROR));
            }
            Err(error) => {
                entry.outcome = error.word().to_owned();
                entry.cost = if error.may_have_run() { price } else { Price::default() }.to_string();
                entry.error = Some(match error {
                    InvokeError::Unavailable(why) => beginning(&format!("{error}: {why}"), LONGEST_ERROR),
                    _ => error.to_string(),
                });
            }
        }
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.duration_ms = millis(self.begun.elapsed());
            self.journal.push(self.time, entry);
        }
    }
}

/// In milliseconds, as far as anybody reads them.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The beginning of a text, of at most so many bytes.
fn beginning(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Takes note of calls, and writes what it has noted.
pub(crate) struct Journal {
    queue: Mutex<Vec<Record>>,
    most: usize,
    lost: AtomicU64,
    something: Notify,
}

impl Journal {
    /// A journal of which so many entries may wait.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let (queue, lost) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { queue, most, lost, something: Notify::new() })
    }

    /// How many entries were lost since the start: so many waited already, or the end came.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Notes a call, of a function, in a version, with an id, that began then and did not come to its function.
    pub(crate) fn refused(&self, of: (&str, &str, &str), begun: Instant, outcome: &str, error: &str) {
        let took = begun.elapsed();
        let time = SystemTime::now().checked_sub(took).unwrap_or_else(SystemTime::now);
        let mut entry = LogEntry::new(time, of, outcome);
        entry.duration_ms = millis(took);
        entry.error = Some(beginning(error, LONGEST_ERROR));
        self.push(time, entry);
    }

    fn push(&self, time: SystemTime, entry: LogEntry) {
        let tags = vec![
            ("function", entry.function.clone()),
            ("version", entry.version.clone()),
            ("outcome", entry.outcome.clone()),
            ("request", entry.request_id.clone()),
        ];
        // Nothing in it can fail to be written.
        let body = serde_json::to_string(&entry).unwrap_or_default();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < self.most {
            queue.push(Record { time, tags, body });
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        drop(queue);
        self.something.notify_one();
    }

    /// Writes what is noted, until it is told to stop, and then what is left, if the store takes it.
    pub(crate) async fn write(
        self: Arc<Self>,
        store: Arc<dyn Store>,
        retention: Option<Duration>,
        mut stop: oneshot::Receiver<()>,
    ) {
        let mut taken = Vec::new();
        let mut wait = BACKOFF.0;
        let mut trimmed_at = None;
        loop {
            if taken.is_empty() {
                tokio::select! {
                    () = self.something.notified() => sleep(TOGETHER).await,
                    () = sleep(TRIM_EVERY) => {}
                    _ = &mut stop => break,
                }
            }
            if self.append(&*store, &mut taken).await {
                wait = BACKOFF.0;
            } else {
                tokio::select! {
                    () = sleep(wait) => {}
                    _ = &mut stop => break,
                }
                wait = (wait * 2).min(BACKOFF.1);
            }
            trim(&*store, retention, &mut trimmed_at).await;
        }
        let _said = self.append(&*store, &mut taken).await;
        self.lost.fetch_add(taken.len() as u64, Ordering::Relaxed);
    }

    /// Writes what was taken before, and what waits now; whether the store took it. What it does not take stays.
    async fn append(&self, store: &dyn Store, taken: &mut Vec<Record>) -> bool {
        if taken.is_empty() {
            *taken = std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner));
        }
        while !taken.is_empty() {
            let batch: Vec<_> = taken.iter().take(BATCH).cloned().collect();
            let count = batch.len();
            if let Err(error) = store.append(CALLS, batch).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, waiting = taken.len(), "the log of function calls cannot be written");
                return false;
            }
            taken.drain(..count);
        }
        true
    }
}

async fn trim(store: &dyn Store, retention: Option<Duration>, trimmed_at: &mut Option<Instant>) {
    let Some(before) = retention.and_then(|retention| SystemTime::now().checked_sub(retention)) else {
        return;
    };
    if trimmed_at.is_some_and(|at| at.elapsed() < TRIM_EVERY) {
        return;
    }
    *trimmed_at = Some(Instant::now());
    if let Err(error) = store.trim(CALLS, before).await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "old entries of the log of function calls stay");
    }
}
