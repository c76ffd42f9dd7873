//! What was noted goes to the store, and to a file where the manifest wants one.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use toolyard_core::store::{Record, Store};

use super::record::{By, Deed, Event, Seen};
use super::{AUDIT, Audit, AuditOptions};

/// Records that come together are written together: the store is asked a few times a second, whatever happens.
const TOGETHER: Duration = Duration::from_millis(100);

/// How many are written at a time.
const BATCH: usize = 500;

/// The first wait after the store was in trouble, and the longest. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// How often it is looked for what is older than it is to be kept.
const TRIM_EVERY: Duration = Duration::from_secs(60 * 60);

/// Losses are spoken of this often at most.
const ALOUD_EVERY: Duration = Duration::from_secs(60);

/// Writes what an [`Audit`] has noted.
pub struct Writer {
    audit: Arc<Audit>,
    store: Arc<dyn Store>,
    options: AuditOptions,
    /// Records that were taken, and are not in the store yet.
    taken: Vec<Record>,
    /// How many of these are in the file already.
    filed: usize,
    /// Losses that the trail knows of.
    told: u64,
    told_at: Option<Instant>,
    trimmed_at: Option<Instant>,
}

impl Writer {
    /// A writer of the trail.
    #[must_use]
    pub fn new(audit: Arc<Audit>, store: Arc<dyn Store>, options: AuditOptions) -> Self {
        let (told_at, trimmed_at) = (None, None);
        Self { audit, store, options, taken: Vec::new(), filed: 0, told: 0, told_at, trimmed_at }
    }

    /// Writes what is noted, until it is told to stop, and then what is left, if the store takes it. A write that has
    /// begun is not given up for the stop: it could be done all the same, and then be done twice.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut wait = BACKOFF.0;
        loop {
            if self.taken.is_empty() {
                tokio::select! {
                    () = self.audit.something.notified() => sleep(TOGETHER).await,
                    () = sleep(TRIM_EVERY) => {}
                    _ = &mut stop => break,
                }
            }
            match self.write().await {
                Ok(_) => wait = BACKOFF.0,
                Err(()) => {
                    tokio::select! {
                        () = sleep(wait) => {}
                        _ = &mut stop => break,
                    }
                    wait = (wait * 2).min(BACKOFF.1);
                }
            }
            self.trim().await;
        }
        // What was lost since it was last spoken of is said now, or never.
        self.told_at = None;
        // What came while it was written is left as well.
        while let Ok(true) = self.write().await {}
    }

    /// Writes what waits now; says whether there was anything. What comes meanwhile waits for more to go with it. What the store
    /// does not take stays here, and the queue fills.
    async fn write(&mut self) -> Result<bool, ()> {
        if self.taken.is_empty() {
            let seen = self.take();
            if !seen.is_empty() {
                self.taken = self.digested(seen).await;
                self.filed = 0;
            }
        }
        let is_something = !self.taken.is_empty();
        self.file().await;
        while !self.taken.is_empty() {
            let batch: Vec<_> = self.taken.iter().take(BATCH).cloned().collect();
            let count = batch.len();
            if let Err(error) = self.store.append(AUDIT, batch).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, waiting = self.taken.len(), "the audit trail cannot be written");
                return Err(());
            }
            self.taken.drain(..count);
            self.audit.settle(count);
            self.filed = self.filed.saturating_sub(count);
        }
        Ok(is_something)
    }

    /// What waits, and behind it that something is missing in the trail. That does not go through the queue, which is
    /// full just then.
    fn take(&mut self) -> Vec<Seen> {
        let mut seen = self.audit.take();
        if let Some(event) = self.told() {
            self.audit.unwritten.fetch_add(1, Ordering::Relaxed);
            seen.push(Seen::Event(event));
        }
        seen
    }

    /// What was seen as it is written. Digests of large arguments take their time.
    async fn digested(&self, seen: Vec<Seen>) -> Vec<Record> {
        let (records, options) = (seen.len(), self.options.clone());
        let digested = spawn_blocking(move || seen.iter().map(|seen| seen.written(&options)).collect());
        digested.await.unwrap_or_else(|error| {
            self.audit.lose(records);
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                records,
                "records of the audit trail are lost: they cannot be written down"
            );
            Vec::new()
        })
    }

    /// Adds what was taken to the file. A file that cannot be written is spoken of, and the store has the records all the
    /// same.
    async fn file(&mut self) {
        let Some(file) = self.options.file.clone().filter(|_| self.filed < self.taken.len()) else { return };
        let lines: String =
            self.taken[self.filed..].iter().flat_map(|record| [record.body.as_str(), "\n"]).collect();
        self.filed = self.taken.len();
        let shown = file.display().to_string();
        let added = spawn_blocking(move || add(&file, &lines)).await;
        if let Err(error) = added.unwrap_or_else(|_| Err(io::Error::other("the task broke"))) {
            tracing::error!(
                file = shown,
                error = &error as &dyn std::error::Error,
                "the file of the audit trail cannot be written"
            );
        }
    }

    /// What the trail is to say of what is missing in it, which is said aloud, too. `None` where it has said all, or
    /// something a short time ago.
    fn told(&mut self) -> Option<Event> {
        let lost = self.audit.lost.load(Ordering::Relaxed);
        if lost == self.told || self.told_at.is_some_and(|at| at.elapsed() < ALOUD_EVERY) {
            return None;
        }
        let missing = lost - self.told;
        (self.told, self.told_at) = (lost, Some(Instant::now()));
        tracing::error!(missing, "the audit trail is not complete: more was called than could be written");
        Some(Event { by: By::default(), deed: Deed::RecordsLost, object: missing.to_string() })
    }

    async fn trim(&mut self) {
        let Some(retention) = self.options.retention else { return };
        if self.trimmed_at.is_some_and(|at| at.elapsed() < TRIM_EVERY) {
            return;
        }
        self.trimmed_at = Some(Instant::now());
        let Some(before) = SystemTime::now().checked_sub(retention) else { return };
        match self.store.trim(AUDIT, before).await {
            Ok(0) => {}
            Ok(records) => tracing::info!(records, "old records of the audit trail are removed"),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "old records of the audit trail stay"
                );
            }
        }
    }
}

/// Adds lines to a file that may have been moved away since the last ones, as those who rotate logs do.
fn add(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(lines.as_bytes())
}
