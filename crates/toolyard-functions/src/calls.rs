//! Log of function calls. Calls do not wait for it.
//!
//! - [`LogEntry`]: the record of a call; [`CallOutcome`]: its outcome; [`LogQuery`], [`LogPage`]: reading the log;
//! - `CallLog`: queues entries up to a limit and writes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use toolyard_core::ErrorCode;
use toolyard_core::access::CallPrice;
use toolyard_core::store::{KeySpace, LogRecord, RecordQuery, Store, StoreError};
use toolyard_core::timestamp::iso_8601;

use crate::invoke::{InvocationResult, InvokeError};
use crate::loaded_version::LoadedVersion;

/// Space of the log.
pub(crate) const CALLS: KeySpace = KeySpace("function-calls");

/// Maximum length of the logged output, in bytes: the beginning.
const MAX_OUTPUT_BYTES: usize = 16 << 10;

/// Maximum length of the logged error, in bytes.
const MAX_ERROR_BYTES: usize = 2 << 10;

/// Time to collect entries before a write.
const COLLECT_TIME: Duration = Duration::from_millis(100);

/// Maximum number of entries per write.
const BATCH_SIZE: usize = 500;

/// First and longest wait after a failed write. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Interval of checks for expired entries.
const TRIM_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Interval of checks of the log's size.
const SIZE_INTERVAL: Duration = Duration::from_secs(60);

/// Bounds of the stored log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBounds {
    /// Lifetime of entries. `None`: for ever.
    pub(crate) retention: Option<Duration>,
    /// Maximum size in bytes; the oldest entries are removed beyond it.
    pub(crate) bytes: u64,
}

/// Maximum number of entries per page.
const MAX_PAGE_SIZE: usize = 1000;

/// A logged call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Start time, in ISO 8601.
    pub time: String,
    /// Id of the function.
    pub function: String,
    /// Version, such as `1.2.0` or `draft`.
    pub version: String,
    /// Id of the call.
    pub request_id: String,
    /// Outcome of the call.
    pub outcome: CallOutcome,
    /// Duration, in milliseconds.
    pub duration_ms: f64,
    /// Size of the reply, in bytes.
    pub bytes: u64,
    /// Cost of the call.
    pub cost: String,
    /// Beginning of the printed output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Error of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The outcome of a call in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The function replied.
    Ok,
    /// The function replied with an error.
    Error,
    /// The function failed without a reply.
    Failed,
    /// The call exceeded its time limit.
    Timeout,
    /// The maximum number of calls was running and waiting.
    Overloaded,
    /// The function could not run.
    Unavailable,
    /// The caller cancelled the call.
    Cancelled,
    /// The quota of the key was exhausted. The function was not called.
    QuotaExhausted,
    /// The rate limit of the key was exceeded. The function was not called.
    RateLimited,
}

impl CallOutcome {
    /// All outcomes.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Error,
        Self::Failed,
        Self::Timeout,
        Self::Overloaded,
        Self::Unavailable,
        Self::Cancelled,
        Self::QuotaExhausted,
        Self::RateLimited,
    ];

    /// Name of the outcome in the log, the documentation and the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::QuotaExhausted => "quota_exhausted",
            Self::RateLimited => "rate_limited",
        }
    }

    /// Outcome of a call that the gateway refused with this code.
    pub(crate) const fn of_error_code(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Timeout => Self::Timeout,
            ErrorCode::Overloaded => Self::Overloaded,
            ErrorCode::Unavailable => Self::Unavailable,
            ErrorCode::Cancelled => Self::Cancelled,
            ErrorCode::QuotaExhausted => Self::QuotaExhausted,
            ErrorCode::RateLimited => Self::RateLimited,
            _ => Self::Failed,
        }
    }
}

impl From<&InvokeError> for CallOutcome {
    fn from(error: &InvokeError) -> Self {
        match error {
            InvokeError::TimedOut(_) => Self::Timeout,
            InvokeError::Busy => Self::Overloaded,
            InvokeError::Unavailable(_) => Self::Unavailable,
        }
    }
}

impl LogEntry {
    /// Creates an entry without costs for a function, version and request id.
    fn new(
        time: SystemTime,
        (function, version, request_id): (&str, &str, &str),
        outcome: CallOutcome,
    ) -> Self {
        Self {
            time: iso_8601(time),
            function: function.to_owned(),
            version: version.to_owned(),
            request_id: request_id.to_owned(),
            outcome,
            duration_ms: 0.0,
            bytes: 0,
            cost: CallPrice::default().to_string(),
            output: String::new(),
            error: None,
        }
    }
}

/// Filter and limit of log entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Version of the function.
    pub version: Option<String>,
    /// Outcome of the call.
    pub outcome: Option<String>,
    /// Id of the call.
    pub request_id: Option<String>,
    /// Earliest start time.
    pub since: Option<SystemTime>,
    /// End of the time range, exclusive.
    pub until: Option<SystemTime>,
    /// Start of the next page: [`LogPage::next`] of the previous one.
    pub before: Option<u64>,
    /// Maximum number of entries. Default: 100.
    pub limit: Option<usize>,
}

/// Log entries, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogPage {
    /// Entries.
    pub entries: Vec<LogEntry>,
    /// Start of the next page, if there may be one.
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
    let limit = limit.unwrap_or(100).min(MAX_PAGE_SIZE);
    let records = store.read(CALLS, RecordQuery { tags, since, until, before, limit }).await?;
    let next = records.last().filter(|_| records.len() == limit).map(|record| record.number);
    // Entries in a later format are skipped.
    let entries = records.iter().filter_map(|record| serde_json::from_str(&record.body).ok()).collect();
    Ok(LogPage { entries, next })
}

/// A running call, which is logged on drop: as cancelled, unless `end` was called.
pub(crate) struct CallRecorder<'a> {
    call_log: &'a CallLog,
    time: SystemTime,
    started_at: Instant,
    entry: Option<LogEntry>,
}

impl<'a> CallRecorder<'a> {
    pub(crate) fn begin(call_log: &'a CallLog, loaded: &LoadedVersion, request_id: &str) -> Self {
        let time = SystemTime::now();
        let mut entry =
            LogEntry::new(time, (&loaded.id, &loaded.version, request_id), CallOutcome::Cancelled);
        entry.cost = loaded.price.to_string();
        Self { call_log, time, started_at: Instant::now(), entry: Some(entry) }
    }

    pub(crate) fn end(mut self, ended: &Result<InvocationResult, InvokeError>, price: CallPrice) {
        let Some(entry) = &mut self.entry else { return };
        match ended {
            Ok(invoked) => {
                entry.outcome = match invoked.failure {
                    Some(_) => CallOutcome::Failed,
                    None if invoked.reply.is_failure() => CallOutcome::Error,
                    None => CallOutcome::Ok,
                };
                entry.bytes = invoked.reply.to_json().as_bytes().len() as u64;
                entry.cost = invoked.cost.to_string();
                entry.output = beginning(&invoked.log, MAX_OUTPUT_BYTES);
                let failure = invoked.failure.as_ref();
                entry.error = failure.map(|failure| beginning(&failure.to_string(), MAX_ERROR_BYTES));
            }
            Err(error) => {
                entry.outcome = error.into();
                entry.cost = if error.may_have_run() { price } else { CallPrice::default() }.to_string();
                entry.error = Some(match error {
                    InvokeError::Unavailable(why) => beginning(&format!("{error}: {why}"), MAX_ERROR_BYTES),
                    _ => error.to_string(),
                });
            }
        }
    }
}

impl Drop for CallRecorder<'_> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.duration_ms = millis(self.started_at.elapsed());
            self.call_log.push(self.time, entry);
        }
    }
}

/// Converts to milliseconds, rounded to microseconds.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the beginning of a text with at most so many bytes.
fn beginning(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Queue and writer of log entries.
pub(crate) struct CallLog {
    queue: Mutex<VecDeque<LogRecord>>,
    capacity: usize,
    lost: AtomicU64,
    queued: Notify,
}

impl CallLog {
    /// Creates a log whose queue has at most so many entries.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let (queue, lost) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { queue, capacity: most, lost, queued: Notify::new() })
    }

    /// Number of entries lost since the start, because the queue was full or the process ended.
    pub(crate) fn lost_entries(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Logs a call that started at `begun` and did not reach its function.
    pub(crate) fn record_refusal(
        &self,
        of: (&str, &str, &str),
        begun: Instant,
        outcome: CallOutcome,
        error: &str,
    ) {
        let took = begun.elapsed();
        let time = SystemTime::now().checked_sub(took).unwrap_or_else(SystemTime::now);
        let mut entry = LogEntry::new(time, of, outcome);
        entry.duration_ms = millis(took);
        entry.error = Some(beginning(error, MAX_ERROR_BYTES));
        self.push(time, entry);
    }

    fn push(&self, time: SystemTime, entry: LogEntry) {
        let tags = vec![
            ("function", entry.function.clone().into()),
            ("version", entry.version.clone().into()),
            ("outcome", entry.outcome.as_str().into()),
            ("request", entry.request_id.clone().into()),
        ];
        // Serialization of an entry cannot fail.
        let body = serde_json::to_string(&entry).unwrap_or_default();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < self.capacity {
            queue.push_back(LogRecord { time, tags, body });
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        drop(queue);
        self.queued.notify_one();
    }

    /// Writes queued entries until it is told to stop, and then the remaining ones if the store accepts them.
    pub(crate) async fn write(
        self: Arc<Self>,
        store: Arc<dyn Store>,
        bounds: LogBounds,
        mut stop: oneshot::Receiver<()>,
    ) {
        let mut pending: Arc<[LogRecord]> = Arc::default();
        let mut wait = BACKOFF.0;
        let (mut trimmed_at, mut measured_at) = (None, None);
        let mut is_stopping = false;
        while !is_stopping {
            tokio::select! {
                biased;
                _ = &mut stop => is_stopping = true,
                () = self.wait_for_entries(), if pending.is_empty() => {}
                () = sleep(wait), if !pending.is_empty() => wait = (wait * 2).min(BACKOFF.1),
            }
            if self.append(&*store, &mut pending).await {
                wait = BACKOFF.0;
            }
            if is_due(&mut trimmed_at, TRIM_INTERVAL) {
                trim(&*store, bounds.retention).await;
            }
            if is_due(&mut measured_at, SIZE_INTERVAL) {
                trim_to_size(&*store, bounds.bytes).await;
            }
        }
        // Entries that were queued while others waited for another attempt.
        if pending.is_empty() {
            let _is_written = self.append(&*store, &mut pending).await;
        }
        let queued = self.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.lost.fetch_add((pending.len() + queued) as u64, Ordering::Relaxed);
    }

    /// Waits until entries have been collected for a write, or expired ones may exist.
    async fn wait_for_entries(&self) {
        tokio::select! {
            () = self.queued.notified() => sleep(COLLECT_TIME).await,
            () = sleep(TRIM_INTERVAL) => {}
        }
    }

    /// Writes the pending and queued entries; returns true if the store accepted them. Rejected entries stay
    /// pending.
    async fn append(&self, store: &dyn Store, pending: &mut Arc<[LogRecord]>) -> bool {
        let mut queued = self.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
        loop {
            if pending.is_empty() {
                *pending = self.take_batch(queued);
                queued -= pending.len();
            }
            if pending.is_empty() {
                return true;
            }
            if let Err(error) = store.append(CALLS, pending.clone()).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, waiting = pending.len(), "cannot write the log of function calls");
                return false;
            }
            *pending = Arc::default();
        }
    }

    /// Takes the oldest entries from the queue, at most `limit` and one batch.
    fn take_batch(&self, limit: usize) -> Arc<[LogRecord]> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let count = queue.len().min(limit).min(BATCH_SIZE);
        queue.drain(..count).collect()
    }
}

/// Returns true, and sets the time, if the last time is at least `interval` ago.
fn is_due(last: &mut Option<Instant>, interval: Duration) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= interval);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

async fn trim(store: &dyn Store, retention: Option<Duration>) {
    let Some(before) = retention.and_then(|retention| SystemTime::now().checked_sub(retention)) else {
        return;
    };
    if let Err(error) = store.trim(CALLS, before).await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "cannot remove expired entries from the log of function calls");
    }
}

async fn trim_to_size(store: &dyn Store, bytes: u64) {
    match store.trim_to_size(CALLS, bytes).await {
        Ok(0) => {}
        Ok(entries) => tracing::warn!(
            entries,
            bytes,
            "removed the oldest entries from the log of function calls, which had reached `functions.logBytes`"
        ),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot remove the oldest entries from the log of function calls");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the words in backquotes in the first column of the table with this head.
    fn first_column<'a>(page: &'a str, head: &str) -> BTreeSet<&'a str> {
        let rows = page.lines().skip_while(|line| *line != head).take_while(|line| line.starts_with('|'));
        rows.filter_map(|row| row.split('|').nth(1))
            .flat_map(|column| column.split('`').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn all_outcomes_are_documented() {
        let outcomes: BTreeSet<_> = CallOutcome::ALL.map(CallOutcome::as_str).into();
        let page = include_str!("../../../docs/functions.md");
        assert_eq!(first_column(page, "| outcome | |"), outcomes);
        let api: serde_json::Value =
            serde_json::from_str(include_str!("../../../schema/openapi.json")).unwrap();
        let documented = &api["components"]["schemas"]["FunctionCall"]["properties"]["outcome"]["enum"];
        let documented: BTreeSet<_> =
            documented.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(documented, outcomes);
        for outcome in CallOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}
