//! What was noted goes to the store, and to a file where the manifest wants one.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use toolyard_core::store::{Record, Store};

use super::record::{By, Deed, Event};
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

    /// Writes, for as long as it is polled.
    pub async fn run(&mut self) {
        let mut wait = BACKOFF.0;
        loop {
            if self.taken.is_empty() {
                tokio::select! {
                    () = self.audit.something.notified() => sleep(TOGETHER).await,
                    () = sleep(TRIM_EVERY) => {}
                }
            }
            match self.write().await {
                Ok(_) => wait = BACKOFF.0,
                Err(()) => {
                    sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF.1);
                }
            }
            self.trim().await;
        }
    }

    /// Writes what is left, if the store takes it.
    pub async fn finish(mut self) {
        // There is no later on for what is missing.
        self.told_at = None;
        loop {
            match self.write().await {
                // What came while it was written is left as well.
                Ok(true) => {}
                Ok(false) => return,
                Err(()) => {
                    tracing::error!(records = self.taken.len(), "records of the audit trail are lost");
                    return;
                }
            }
        }
    }

    /// Writes what waits now; says whether there was anything. What comes meanwhile waits for more to go with it. What the store
    /// does not take stays here, and the queue fills.
    async fn write(&mut self) -> Result<bool, ()> {
        if self.taken.is_empty() {
            self.take().await;
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
            self.filed = self.filed.saturating_sub(count);
        }
        Ok(is_something)
    }

    /// Takes what waits, as records.
    async fn take(&mut self) {
        let (seen, options) = (self.audit.take(), self.options.clone());
        // Not by way of the queue, which may be full: that is why something is missing.
        let missing = self.missing();
        if seen.is_empty() && missing.is_none() {
            return;
        }
        // Digests of large arguments take their time.
        let written = spawn_blocking(move || seen.iter().map(|seen| seen.written(&options)).collect());
        self.taken = written.await.unwrap_or_default();
        self.taken.extend(missing.as_ref().map(Event::written));
        self.filed = 0;
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

    /// Says aloud that something is missing in the trail; what the trail is to have of it.
    fn missing(&mut self) -> Option<Event> {
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
